import { job } from '../jobs/job.js'
import { sendWeeklyDigests } from './weekly-digest.js'

/** On Mondays; see the crontab. */
export const weeklyDigestJob = job('weekly_digest', (_payload, deps) => sendWeeklyDigests(deps))
