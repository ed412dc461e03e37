import { randomUUID } from 'node:crypto'
import { conflict, forbidden } from '../../shared/errors/app-error.js'
import { inTransaction, type Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { hashPassword } from './password.js'
import {
  hasUsers,
  insertMember,
  insertTeam,
  insertUser,
  lockFirstUser,
  type TeamOfUser,
  type UserRow,
} from './queries.js'
import { openSession } from './session.js'

export interface NewPerson {
  /** Lower case. */
  email: string
  name: string | null
  passwordHash: string
}

/**
 * Creates an account, a team that it owns, and a session (spec 4, section 3; SIGNUP of section 1).
 *
 * @throws AppError FORBIDDEN when sign-up is closed or only the first user may; CONFLICT when the address is taken.
 */
export async function signUp(
  deps: Deps,
  input: { email: string; password: string; name?: string | undefined; teamName?: string | undefined },
): Promise<{ user: UserRow; team: TeamOfUser; token: string }> {
  await checkOpen(deps, deps.sql)
  const person = {
    email: input.email,
    name: input.name ?? null,
    passwordHash: await hashPassword(input.password),
  }
  return inTransaction(deps.sql, async tx => {
    if (deps.config.SIGNUP === 'first') {
      await lockFirstUser(tx)
      await checkOpen(deps, tx)
    }
    const created = await createPersonWithTeam(tx, person, input.teamName, deps.now())
    const token = await openSession(tx, { userId: created.user.id, teamId: created.team.id }, deps.now())
    return { ...created, token }
  })
}

async function checkOpen(deps: Deps, sql: Sql): Promise<void> {
  if (deps.config.SIGNUP === 'closed') throw forbidden('Sign-up is closed.')
  if (deps.config.SIGNUP === 'first' && (await hasUsers(sql))) throw forbidden('Sign-up is by invite only.')
}

/** @throws AppError CONFLICT when the address is taken. */
export async function createPerson(tx: Sql, person: NewPerson, nowMs: number): Promise<UserRow> {
  const id = randomUUID()
  if (!(await insertUser(tx, { id, ...person, createdAt: new Date(nowMs) }))) {
    throw conflict('An account with this email exists already.')
  }
  return { id, email: person.email, name: person.name }
}

/** @throws AppError CONFLICT when the address is taken. */
export async function createPersonWithTeam(
  tx: Sql,
  person: NewPerson,
  teamName: string | undefined,
  nowMs: number,
): Promise<{ user: UserRow; team: TeamOfUser }> {
  const user = await createPerson(tx, person, nowMs)
  const owner = person.name ?? person.email.split('@')[0]
  const team = { id: randomUUID(), name: teamName ?? `${owner}'s team` }
  await insertTeam(tx, { ...team, createdAt: new Date(nowMs) })
  await insertMember(tx, { teamId: team.id, userId: user.id, role: 'owner', joinedAt: new Date(nowMs) })
  return { user, team: { ...team, role: 'owner' } }
}
