import type { Role } from '../../shared/contract/common.js'
import type { Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { enqueueMail } from '../mail/send-mail.job.js'
import { compose } from './compose.js'
import { notify } from './notify.js'
import type { Recipient } from './queries.js'

type MailDeps = Pick<Deps, 'config' | 'jobs'>

interface Membership {
  teamId: string
  teamName: string
}

/** To owners and admins, but not to the person who joined (spec 4, section 9). */
export function mailJoined(
  deps: MailDeps,
  tx: Sql,
  { teamId, teamName }: Membership,
  joined: { userId: string; email: string; name: string | null; role: Role },
): Promise<void> {
  const who = joined.name === null ? joined.email : `${joined.name} (${joined.email})`
  const notice = {
    subject: `${joined.name ?? joined.email} joined ${teamName} on agh`,
    paragraphs: [`${who} joined the team "${teamName}" as ${joined.role}.`],
  }
  return notify(deps, tx, teamId, 'membership', 'managers', notice, joined.userId)
}

/** To the person. */
export function mailRoleChanged(
  deps: MailDeps,
  tx: Sql,
  { teamId, teamName }: Membership,
  change: { userId: string; from: Role; to: Role },
): Promise<void> {
  const notice = {
    subject: `Your role in ${teamName} on agh is now ${change.to}`,
    paragraphs: [`Your role in the team "${teamName}" was changed from ${change.from} to ${change.to}.`],
  }
  return notify(deps, tx, teamId, 'membership', { userId: change.userId }, notice)
}

/** To the person, whatever they have switched off (spec 1, Events). */
export async function mailRemoved(
  deps: MailDeps,
  tx: Sql,
  { teamName }: Membership,
  removed: Recipient,
): Promise<void> {
  const notice = {
    subject: `You are no longer a member of ${teamName} on agh`,
    paragraphs: [
      `Your membership of the team "${teamName}" has ended. Your API keys and sessions in it no longer work.`,
    ],
  }
  await enqueueMail(deps.jobs, tx, compose(deps, notice, removed, null))
}
