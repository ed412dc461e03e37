import type { Sql } from '../db/sql.js'

export interface NewApiKey {
  teamId: string
  id: string
  name: string
  keyHash: string
  lastFour: string
  /** Null: a team-scoped key. */
  userId: string | null
  createdBy: string
  createdAt: Date
}

export async function insertApiKey(tx: Sql, key: NewApiKey): Promise<void> {
  await tx`insert into api_keys ${tx(key)}`
}

export interface ApiKeyListItem {
  id: string
  name: string
  lastFour: string
  createdAt: Date
  teamScoped: boolean
}

/** The active keys of a team, newest first. @param ownerId only this person's personal keys; null: all. */
export async function listApiKeys(
  sql: Sql,
  teamId: string,
  ownerId: string | null,
): Promise<ApiKeyListItem[]> {
  const mine = ownerId === null ? sql`` : sql`and user_id = ${ownerId}`
  return await sql<ApiKeyListItem[]>`
    select id, name, last_four, created_at, user_id is null as team_scoped from api_keys
    where team_id = ${teamId} and revoked_at is null ${mine}
    order by created_at desc, id`
}

/** @param ownerId only this person's personal key; null: any of the team. @returns null: no such active key. */
export async function revokeApiKey(
  tx: Sql,
  teamId: string,
  keyId: string,
  ownerId: string | null,
  at: Date,
): Promise<Pick<ApiKeyListItem, 'teamScoped'> | null> {
  const mine = ownerId === null ? tx`` : tx`and user_id = ${ownerId}`
  const [row] = await tx<Pick<ApiKeyListItem, 'teamScoped'>[]>`
    update api_keys set revoked_at = ${at}
    where team_id = ${teamId} and id = ${keyId} and revoked_at is null ${mine}
    returning user_id is null as team_scoped`
  return row ?? null
}

/** Revokes a person's keys in a team. @returns their ids. */
export async function revokePersonalKeys(
  tx: Sql,
  teamId: string,
  userId: string,
  at: Date,
): Promise<string[]> {
  const rows = await tx<{ id: string }[]>`
    update api_keys set revoked_at = ${at}
    where team_id = ${teamId} and user_id = ${userId} and revoked_at is null returning id`
  return rows.map(row => row.id)
}
