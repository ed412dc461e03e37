import { job } from '../jobs/job.js'
import { createPartitionsAhead } from './partitions.js'

/** Hourly: a control plane that stood still for months has its weeks again within the hour. */
export const tracePartitionsJob = job('trace_partitions', async (_payload, deps) => {
  const created = await createPartitionsAhead(deps.sql, deps.now())
  if (created > 0) deps.log.info({ created }, 'trace partitions were created')
})
