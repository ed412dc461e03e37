import { job } from '../jobs/job.js'
import { deleteExpiredExecutions } from './execution-queries.js'

/** Rows per statement: some ten milliseconds. */
const BATCH = 5_000

/** Executions leave the analytics when their team's traces leave. */
export const toolExecutionRetentionJob = job('tool_execution_retention', async (_payload, deps) => {
  const now = new Date(deps.now())
  while ((await deleteExpiredExecutions(deps.sql, now, BATCH)) === BATCH);
})
