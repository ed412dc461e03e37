import { AppError, forbidden, unauthorized } from '../../shared/errors/app-error.js'
import { inTransaction } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { verifyPassword } from './password.js'
import {
  deleteSignInAttempt,
  findLatestTeamId,
  findNthAttemptFrom,
  findNthFailure,
  findUserByEmail,
  forgiveSignInAttempt,
  insertSignInAttempt,
  listTeamsOfUser,
  type TeamOfUser,
  type UserRow,
} from './queries.js'
import { openSession } from './session.js'

/** Spec 4, section 9: 10 failures in 15 minutes per account, 100 attempts a minute per address. */
const accountLimit = { attempts: 10, windowMs: 15 * 60_000 }
const addressLimit = { attempts: 100, windowMs: 60_000 }

export interface SignedIn {
  user: UserRow
  team: TeamOfUser
  teams: TeamOfUser[]
  /** The session cookie's value. */
  token: string
}

export interface PasswordProof {
  email: string
  password: string
  /** The client's, for the limit of attempts. */
  address: string
}

/**
 * Checks a password and opens a session in the team where the person worked last.
 *
 * @throws AppError as `provePassword`; FORBIDDEN for a person who is in no team any more.
 */
export async function signIn(deps: Deps, input: PasswordProof): Promise<SignedIn> {
  const user = await provePassword(deps, input)
  const teams = await listTeamsOfUser(deps.sql, user.id)
  const latest = await findLatestTeamId(deps.sql, user.id)
  const team = teams.find(candidate => candidate.id === latest) ?? teams[0]
  if (team === undefined) throw forbidden('This account is in no team.')
  const token = await inTransaction(deps.sql, tx =>
    openSession(tx, { userId: user.id, teamId: team.id }, deps.now()),
  )
  return { user, team, teams, token }
}

/**
 * The account that an email and its password are of.
 *
 * An attempt counts as a failure from before the password is looked at until it has proved right: a hundred parallel
 * guesses get no further than ten in a row. An unknown account takes as long as a known one, and is limited alike.
 *
 * @throws AppError UNAUTHORIZED `Invalid email or password.`; RATE_LIMITED with Retry-After.
 */
export async function provePassword(deps: Deps, input: PasswordProof): Promise<UserRow> {
  const account = input.email.trim().toLowerCase().slice(0, 254)
  const attempt = await admitAttempt(deps, account, input.address)
  const found = await findUserByEmail(deps.sql, account)
  const right = await verifyPassword(input.password.slice(0, 1025), found?.passwordHash ?? null)
  if (found === null || !right) throw unauthorized('Invalid email or password.')
  await forgiveSignInAttempt(deps.sql, attempt)
  const { passwordHash: _, ...user } = found
  return user
}

/** @returns the id of the attempt, which counts as failed. */
async function admitAttempt(deps: Deps, account: string, address: string): Promise<string> {
  const nowMs = deps.now()
  const id = await insertSignInAttempt(deps.sql, { account, address, at: new Date(nowMs) })
  const since = (limit: { windowMs: number }) => new Date(nowMs - limit.windowMs)
  const [failure, flood] = await Promise.all([
    findNthFailure(deps.sql, account, since(accountLimit), accountLimit.attempts, id),
    findNthAttemptFrom(deps.sql, address, since(addressLimit), addressLimit.attempts, id),
  ])
  const freeAtMs = Math.max(
    failure === null ? 0 : failure.getTime() + accountLimit.windowMs,
    flood === null ? 0 : flood.getTime() + addressLimit.windowMs,
  )
  if (freeAtMs <= nowMs) return id
  // A refused attempt is no guess: it must not keep the account locked for longer, nor a flood of them fill a table.
  await deleteSignInAttempt(deps.sql, id)
  const retryAfterSeconds = Math.max(1, Math.ceil((freeAtMs - nowMs) / 1000))
  throw new AppError('RATE_LIMITED', 'Too many sign-in attempts. Try again later.', {
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}
