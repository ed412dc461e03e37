import { conflict, notFound, unauthorized, validation } from '../../shared/errors/app-error.js'
import { hashToken } from '../../shared/secrets/token.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import { inTransaction, type Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { mailJoined } from '../notifications/membership-mails.js'
import { hashPassword } from './password.js'
import {
  findInviteByHash,
  findTeamName,
  findUserByEmail,
  findUserById,
  insertMember,
  lockInviteByHash,
  markInviteAccepted,
  type PendingInvite,
  type TeamOfUser,
  type UserRow,
} from './queries.js'
import { openSession } from './session.js'
import { createPerson } from './sign-up.js'

export interface Acceptance {
  token: string
  /** The signed-in person, who joins whatever the invite's address is: holding the link is what counts. */
  session: Principal | null
  name?: string | undefined
  password?: string | undefined
}

/**
 * Joins a team by an invite, once, and opens a session in it (spec 4, section 3).
 *
 * @throws AppError NOT_FOUND `Invite not found.` for one that is unknown, expired, withdrawn or used; VALIDATION_ERROR
 *   `Required` for a new user without a password; UNAUTHORIZED when the address has an account and nobody is signed
 *   in; CONFLICT for a member of the team.
 */
export async function acceptInvite(
  deps: Deps,
  input: Acceptance,
): Promise<{ user: UserRow; team: TeamOfUser; token: string }> {
  const tokenHash = hashToken(input.token)
  const pending = await findInviteByHash(deps.sql, tokenHash, new Date(deps.now()))
  if (pending === null) throw notFound('Invite')
  const newcomer = input.session === null ? await newcomerFor(deps, pending, input) : null
  return inTransaction(deps.sql, async tx => {
    const nowMs = deps.now()
    const invite = await lockInviteByHash(tx, tokenHash, new Date(nowMs))
    if (invite === null) throw notFound('Invite')
    const user =
      newcomer === null
        ? await signedInUser(tx, input.session)
        : await createPerson(tx, { ...newcomer, email: invite.email }, nowMs)
    const { teamId, role } = invite
    if (!(await insertMember(tx, { teamId, userId: user.id, role, joinedAt: new Date(nowMs) }))) {
      throw conflict('Already a member of this team.')
    }
    await markInviteAccepted(tx, invite.id, new Date(nowMs))
    await record(tx, { teamId, userId: user.id }, nowMs, 'member_joined', { role, inviteId: invite.id })
    const teamName = (await findTeamName(tx, teamId)) ?? ''
    await mailJoined(deps, tx, { teamId, teamName }, { ...user, userId: user.id, role })
    const token = await openSession(tx, { userId: user.id, teamId }, nowMs)
    return { user, team: { id: teamId, name: teamName, role }, token }
  })
}

async function newcomerFor(deps: Deps, invite: PendingInvite, input: Acceptance) {
  if ((await findUserByEmail(deps.sql, invite.email)) !== null) {
    throw unauthorized('This email has an account. Sign in to accept the invite.')
  }
  if (input.password === undefined) throw validation('Required')
  return { name: input.name ?? null, passwordHash: await hashPassword(input.password) }
}

async function signedInUser(tx: Sql, session: Principal | null): Promise<UserRow> {
  const user = session?.userId == null ? null : await findUserById(tx, session.userId)
  if (user === null) throw unauthorized()
  return user
}
