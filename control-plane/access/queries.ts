import type { Role } from '../../shared/contract/common.js'
import type { Sql } from '../db/sql.js'

export interface SessionRow {
  id: string
  teamId: string
  userId: string
  role: Role
}

/** A live session of a person who is still a member of its team; the role is the current one. */
export async function findSessionByHash(sql: Sql, tokenHash: string, now: Date): Promise<SessionRow | null> {
  const [row] = await sql<SessionRow[]>`
    select s.id, s.team_id, s.user_id, m.role
    from sessions s join members m on m.team_id = s.team_id and m.user_id = s.user_id
    where s.token_hash = ${tokenHash} and s.expires_at > ${now}`
  return row ?? null
}

export interface ApiKeyRow {
  id: string
  teamId: string
  /** Null for a team-scoped key. */
  userId: string | null
  role: Role | null
}

/** A live API key. A personal one needs its user's membership: it dies with it (spec 4, section 3). */
export async function findApiKeyByHash(sql: Sql, keyHash: string): Promise<ApiKeyRow | null> {
  const [row] = await sql<ApiKeyRow[]>`
    select k.id, k.team_id, k.user_id, m.role
    from api_keys k left join members m on m.team_id = k.team_id and m.user_id = k.user_id
    where k.key_hash = ${keyHash} and k.revoked_at is null and (k.user_id is null or m.role is not null)`
  return row ?? null
}

export async function findVirtualKeyByHash(
  sql: Sql,
  keyHash: string,
): Promise<{ id: string; teamId: string } | null> {
  const [row] = await sql<{ id: string; teamId: string }[]>`
    select id, team_id from virtual_keys where key_hash = ${keyHash} and revoked_at is null`
  return row ?? null
}
