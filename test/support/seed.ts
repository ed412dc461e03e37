import { randomUUID } from 'node:crypto'
import { type Role, roles } from '../../shared/contract/common.js'
import {
  API_KEY_PREFIX,
  hashToken,
  lastFour,
  mintKey,
  mintToken,
  VIRTUAL_KEY_PREFIX,
} from '../../shared/secrets/token.js'
import type { ControlPlane, Credential } from './control-plane.js'

/** A person in a team, with both of a person's credentials. */
export interface SeededPerson {
  userId: string
  email: string
  role: Role
  session: Credential
  sessionId: string
  personalKey: Credential
  personalKeyId: string
}

export interface SeededTeam {
  teamId: string
  name: string
  owner: SeededPerson
  admin: SeededPerson
  editor: SeededPerson
  viewer: SeededPerson
  /** A team-scoped API key. */
  teamKey: Credential
  teamKeyId: string
  virtualKey: Credential
  virtualKeyId: string
}

type Seeder = Pick<ControlPlane, 'deps'>

/**
 * A team with one person of each role, a team-scoped key and an unrestricted virtual key, written straight into the
 * tables: hashing a password for each would cost more than the tests themselves. Call it twice for a foreign team.
 */
export async function team(cp: Seeder, name = `Team ${randomUUID().slice(0, 8)}`): Promise<SeededTeam> {
  const { sql, now } = cp.deps
  const teamId = randomUUID()
  await sql`insert into teams ${sql({ id: teamId, name, createdAt: new Date(now()) })}`
  const people = {} as Record<Role, SeededPerson>
  for (const role of roles) people[role] = await person(cp, teamId, role)
  const teamKey = await apiKey(cp, teamId, null)
  const virtual = await virtualKey(cp, teamId)
  return {
    teamId,
    name,
    ...people,
    teamKey: teamKey.credential,
    teamKeyId: teamKey.id,
    virtualKey: virtual.credential,
    virtualKeyId: virtual.id,
  }
}

/** One more member of a team. They have no password: sign in through their cookie. */
export async function person(cp: Seeder, teamId: string, role: Role): Promise<SeededPerson> {
  const { sql, now } = cp.deps
  const userId = randomUUID()
  const email = `${role}-${userId.slice(0, 8)}@agh.test`
  const at = new Date(now())
  await sql`insert into users ${sql({ id: userId, email, name: `The ${role}`, passwordHash: 'none', createdAt: at })}`
  await sql`insert into members ${sql({ teamId, userId, role, joinedAt: at })}`
  const session = await signIn(cp, teamId, userId)
  const key = await apiKey(cp, teamId, userId)
  return {
    userId,
    email,
    role,
    session: session.credential,
    sessionId: session.id,
    personalKey: key.credential,
    personalKeyId: key.id,
  }
}

async function signIn({ deps }: Seeder, teamId: string, userId: string) {
  const token = mintToken()
  const id = randomUUID()
  const at = deps.now()
  const [createdAt, expiresAt] = [new Date(at), new Date(at + 86_400_000)]
  await deps.sql`insert into sessions ${deps.sql({ id, tokenHash: hashToken(token), userId, teamId, createdAt, expiresAt })}`
  return { id, credential: { cookie: `agh_session=${token}` } }
}

/** @param userId null: a team-scoped key. */
export async function apiKey({ deps }: Seeder, teamId: string, userId: string | null) {
  const key = mintKey(API_KEY_PREFIX)
  const id = randomUUID()
  const row = { teamId, id, name: 'Seeded', keyHash: hashToken(key), lastFour: lastFour(key), userId }
  await deps.sql`insert into api_keys ${deps.sql({ ...row, createdBy: userId, createdAt: new Date(deps.now()) })}`
  return { id, credential: { key } }
}

/** An unrestricted virtual key. */
export async function virtualKey({ deps }: Seeder, teamId: string) {
  const key = mintKey(VIRTUAL_KEY_PREFIX)
  const id = randomUUID()
  const row = { teamId, id, name: 'Seeded', keyHash: hashToken(key), lastFour: lastFour(key) }
  await deps.sql`insert into virtual_keys ${deps.sql({ ...row, createdAt: new Date(deps.now()) })}`
  return { id, credential: { key } }
}
