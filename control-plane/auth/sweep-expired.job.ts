import { job } from '../jobs/job.js'
import { deleteExpired } from './queries.js'

export const sweepExpiredJob = job('sweep_expired', (_payload, deps) =>
  deleteExpired(deps.sql, new Date(deps.now())),
)
