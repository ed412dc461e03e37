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
import { provePassword } from './sign-in.js'
import { createPerson } from './sign-up.js'

export interface Acceptance {
  token: string
  /** The signed-in person, who joins whatever the invite's address is: holding the link is what counts. */
  session: Principal | null
  name?: string | undefined
  password?: string | undefined
  /** The client's, for the limit of sign-in attempts. */
  address: string
}

/**
 * Joins a team by an invite, once, and opens a session in it (spec 4, section 3).
 *
 * @throws AppError NOT_FOUND `Invite not found.` for one that is unknown, expired, withdrawn or used; VALIDATION_ERROR
 *   `Required` for a new user without a password; UNAUTHORIZED when the address has an account and there is neither a
 *   session nor that account's password; CONFLICT for a member of the team.
 */
export async function acceptInvite(
  deps: Deps,
  input: Acceptance,
): Promise<{ user: UserRow; team: TeamOfUser; token: string }> {
  const tokenHash = hashToken(input.token)
  const pending = await findInviteByHash(deps.sql, tokenHash, new Date(deps.now()))
  if (pending === null) throw notFound('Invite')
  const joiner = await whoJoins(deps, pending, input)
  return inTransaction(deps.sql, async tx => {
    const nowMs = deps.now()
    const invite = await lockInviteByHash(tx, tokenHash, new Date(nowMs))
    if (invite === null) throw notFound('Invite')
    const user = 'id' in joiner ? joiner : await createPerson(tx, { ...joiner, email: invite.email }, nowMs)
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

interface Newcomer {
  name: string | null
  passwordHash: string
}

/**
 * The account that joins, or what a new one is made of. An account may prove itself by its password: one that was
 * removed from its last team cannot sign in, and would be locked out of every later invite.
 */
async function whoJoins(deps: Deps, invite: PendingInvite, input: Acceptance): Promise<UserRow | Newcomer> {
  const { session, name, password, address } = input
  if (session !== null) return signedInUser(deps.sql, session)
  if ((await findUserByEmail(deps.sql, invite.email)) === null) {
    if (password === undefined) throw validation('Required')
    return { name: name ?? null, passwordHash: await hashPassword(password) }
  }
  if (password === undefined) throw unauthorized('This email has an account. Sign in to accept the invite.')
  return provePassword(deps, { email: invite.email, password, address })
}

async function signedInUser(sql: Sql, session: Principal): Promise<UserRow> {
  const user = session.userId === null ? null : await findUserById(sql, session.userId)
  if (user === null) throw unauthorized()
  return user
}
