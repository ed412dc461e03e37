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

/**
 * When a job runs by the clock, in cron's five fields, UTC. Under its own key: one that fails, or that no worker has come
 * to, is replaced by the next. Without it each minute adds another with 25 attempts of its own, until nothing but them is
 * worked on and no mail goes out.
 */
const at = (time: string, { name }: Job, options = ''): string => `${time} ${name} ?jobKey=${name}${options}`

/** One line a job. */
export const crontab: readonly string[] = [
  at('* * * * *', reconcileJob),
  at('* * * * *', budgetAlertsJob),
  at('17 * * * *', sweepExpiredJob),
  at('27 * * * *', toolExecutionRetentionJob),
  at('* * * * *', foldRollupsJob),
  at('7 * * * *', tracePartitionsJob),
  at('37 * * * *', traceRetentionJob),
  // Made up for within a day when nothing ran on Monday morning.
  at('0 8 * * 1', weeklyDigestJob, '&fill=1d'),
]
