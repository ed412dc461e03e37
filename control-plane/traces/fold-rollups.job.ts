import { job } from '../jobs/job.js'
import { foldRollups } from './fold-rollups.js'

/** Every minute: what a question has to add up itself stays small. */
export const foldRollupsJob = job('fold_rollups', async (_payload, deps) => {
  const folded = await foldRollups(deps.sql)
  if (folded > 0) deps.log.debug({ folded }, 'sums of traces were folded')
})
