import { sweepExpiredJob } from '../auth/sweep-expired.job.js'
import { reconcileJob } from '../ledger/reconcile.job.js'
import { sendMailJob } from '../mail/send-mail.job.js'
import { budgetAlertsJob } from '../notifications/budget-alerts.job.js'
import { weeklyDigestJob } from '../notifications/weekly-digest.job.js'
import { toolExecutionRetentionJob } from '../tools/tool-execution-retention.job.js'
import { foldRollupsJob } from '../traces/fold-rollups.job.js'
import { tracePartitionsJob } from '../traces/trace-partitions.job.js'
import { traceRetentionJob } from '../traces/trace-retention.job.js'
import type { Job } from './job.js'

/** Every job of the service. */
export const jobList: readonly Job[] = [
  budgetAlertsJob,
  reconcileJob,
  sendMailJob,
  sweepExpiredJob,
  toolExecutionRetentionJob,
  foldRollupsJob,
  tracePartitionsJob,
  traceRetentionJob,
  weeklyDigestJob,
]

/** When jobs run by the clock, in cron's five fields, UTC; one line a job. */
export const crontab: readonly string[] = [
  `* * * * * ${reconcileJob.name}`,
  `* * * * * ${budgetAlertsJob.name}`,
  `17 * * * * ${sweepExpiredJob.name}`,
  `27 * * * * ${toolExecutionRetentionJob.name}`,
  `* * * * * ${foldRollupsJob.name}`,
  `7 * * * * ${tracePartitionsJob.name}`,
  `37 * * * * ${traceRetentionJob.name}`,
  // Made up for within a day when nothing ran on Monday morning.
  `0 8 * * 1 ${weeklyDigestJob.name} ?fill=1d`,
]
