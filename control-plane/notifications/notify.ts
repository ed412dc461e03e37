import type { NotificationCategory } from '../../shared/contract/notifications.js'
import type { Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { enqueueMail } from '../mail/send-mail.job.js'
import { compose, type Notice } from './compose.js'
import { listRecipients } from './queries.js'

/**
 * Queues a notice for each member who wants its category, in the transaction that makes it necessary: a change that is
 * rolled back tells nobody.
 *
 * @param only owners and admins, or one person. @param except who caused it and needs no mail about it.
 */
export async function notify(
  deps: Pick<Deps, 'config' | 'jobs'>,
  tx: Sql,
  teamId: string,
  category: NotificationCategory,
  only: 'managers' | { userId: string },
  notice: Notice,
  except?: string,
): Promise<void> {
  for (const to of await listRecipients(tx, teamId, category, only)) {
    if (to.userId !== except)
      await enqueueMail(deps.jobs, tx, compose(deps, notice, to, { teamId, category }))
  }
}
