import type { Sql } from '../db/sql.js'

export interface SecretRow {
  name: string
  updatedAt: Date
}

export interface SealedSecret {
  /** Bound into the seal. */
  id: string
  name: string
  sealedValue: string
}

/** Sets or replaces; id and seal belong together and change together. */
export async function upsertSecret(
  sql: Sql,
  teamId: string,
  row: SealedSecret & { updatedAt: Date },
): Promise<void> {
  await sql`
    insert into secrets (team_id, name, id, sealed_value, updated_at)
    values (${teamId}, ${row.name}, ${row.id}, ${row.sealedValue}, ${row.updatedAt})
    on conflict (team_id, name) do update
      set id = excluded.id, sealed_value = excluded.sealed_value, updated_at = excluded.updated_at`
}

/** By name, as their letters go. */
export async function listSecretRows(sql: Sql, teamId: string): Promise<SecretRow[]> {
  return sql<SecretRow[]>`
    select name, updated_at from secrets where team_id = ${teamId} order by name collate "C"`
}

/** @returns false: no such secret. */
export async function deleteSecretRow(sql: Sql, teamId: string, name: string): Promise<boolean> {
  const result = await sql`delete from secrets where team_id = ${teamId} and name = ${name}`
  return result.count === 1
}

/** Those of the names that the team has a secret of. */
export async function knownSecrets(sql: Sql, teamId: string, names: readonly string[]): Promise<Set<string>> {
  if (names.length === 0) return new Set()
  const rows = await sql<{ name: string }[]>`
    select name from secrets where team_id = ${teamId} and name = any(${[...names]}::text[])`
  return new Set(rows.map(row => row.name))
}

export async function findSealedSecrets(
  sql: Sql,
  teamId: string,
  names: readonly string[],
): Promise<SealedSecret[]> {
  return sql<SealedSecret[]>`
    select id, name, sealed_value from secrets
    where team_id = ${teamId} and name = any(${[...names]}::text[])`
}
