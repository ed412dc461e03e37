import type { Sql } from '../db/sql.js'
import type { Jobs } from '../jobs/enqueue.js'
import { job } from '../jobs/job.js'
import type { Mail } from './mailer.js'

/** Hands one message over; tried again for three days when the mail server is away. */
export const sendMailJob = job<Mail>('send_mail', (mail, deps) => deps.mail.send(mail))

/** Queues a mail in the transaction that makes it necessary. */
export const enqueueMail = (jobs: Jobs, tx: Sql, mail: Mail): Promise<void> =>
  jobs.enqueue(tx, sendMailJob.name, { ...mail })
