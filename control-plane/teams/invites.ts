import { randomUUID } from 'node:crypto'
import type { Role } from '../../shared/contract/common.js'
import { conflict, notFound, unauthorized } from '../../shared/errors/app-error.js'
import { hashToken, mintToken } from '../../shared/secrets/token.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import { inTransaction } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { enqueueMail } from '../mail/send-mail.job.js'
import { inviteMail } from './invite-mail.js'
import { checkMayGive } from './members.js'
import {
  deletePendingInvitesTo,
  findMember,
  findMemberByEmail,
  findTeamById,
  insertInvite,
  lockTeam,
} from './queries.js'

const INVITE_MS = 7 * 86_400_000

export interface CreatedInvite {
  id: string
  email: string
  role: Role
  url: string
  expiresAt: Date
}

/**
 * Invites a person; the mail is queued in the same transaction. The link works for seven days, once.
 *
 * @throws AppError FORBIDDEN for a role that the actor may not give, CONFLICT for a member.
 */
export async function createInvite(
  deps: Deps,
  actor: Principal,
  input: { email: string; role: Role },
): Promise<CreatedInvite> {
  const { teamId } = actor
  const nowMs = deps.now()
  const token = mintToken()
  const url = `${deps.config.appUrl}/invites/${token}`
  const created = { id: randomUUID(), ...input, expiresAt: new Date(nowMs + INVITE_MS) }
  await inTransaction(deps.sql, async tx => {
    // The request may have waited while its person was lowered or removed.
    await lockTeam(tx, teamId)
    const sender = await findMember(tx, teamId, actor.userId ?? '')
    if (sender === null) throw unauthorized()
    checkMayGive(sender, input.role)
    const team = await findTeamById(tx, teamId)
    if (team === null) throw notFound('Team')
    if ((await findMemberByEmail(tx, teamId, input.email)) !== null)
      throw conflict('Already a member of this team.')
    await deletePendingInvitesTo(tx, teamId, input.email)
    await insertInvite(tx, {
      ...created,
      teamId,
      tokenHash: hashToken(token),
      invitedBy: actor.userId ?? '',
      createdAt: new Date(nowMs),
    })
    const { id: inviteId, email, role } = created
    await record(tx, actor, nowMs, 'member_invited', { inviteId, email, role })
    await enqueueMail(deps.jobs, tx, inviteMail({ ...created, url, teamName: team.name }))
  })
  return { ...created, url }
}
