import { job } from '../jobs/job.js'
import { deleteExpiredTraces } from './retention.js'

/** Hourly: on a machine that is off at night a daily hour might never come. */
export const traceRetentionJob = job('trace_retention', async (_payload, deps) => {
  const done = await deleteExpiredTraces(deps.sql, deps.now())
  if (done.droppedWeeks.length > 0 || done.deletedTraces > 0)
    deps.log.info(done, 'expired traces were deleted')
})
