import type { ProviderKind } from '../../../shared/contract/common.js'
import type { Sql } from '../../db/sql.js'

export interface VirtualKeySettings {
  name: string
  allowedModels: string[] | null
  allowedProviders: ProviderKind[] | null
  maxRpm: number | null
  maxTpm: number | null
  cacheTtlSeconds: number | null
}

export interface VirtualKeyRow extends VirtualKeySettings {
  id: string
  keyLastFour: string
  createdAt: Date
  revokedAt: Date | null
}

export interface NewVirtualKey extends VirtualKeyRow {
  teamId: string
  keyHash: string
  createdBy: string | null
}

/** Never the hash: what these functions return is answered to people. */
const masked = (
  sql: Sql,
) => sql`id, name, last_four as key_last_four, allowed_models, allowed_providers, max_rpm,
  max_tpm, cache_ttl_seconds, created_at, revoked_at`

export async function insertVirtualKey(sql: Sql, row: NewVirtualKey): Promise<VirtualKeyRow> {
  const [stored] = await sql<VirtualKeyRow[]>`
    insert into virtual_keys
      (team_id, id, name, key_hash, last_four, allowed_models, allowed_providers, max_rpm, max_tpm,
        cache_ttl_seconds, created_by, created_at)
    values (${row.teamId}, ${row.id}, ${row.name}, ${row.keyHash}, ${row.keyLastFour}, ${row.allowedModels},
      ${row.allowedProviders}, ${row.maxRpm}, ${row.maxTpm}, ${row.cacheTtlSeconds}, ${row.createdBy},
      ${row.createdAt})
    returning ${masked(sql)}`
  return stored as VirtualKeyRow
}

/** Active and revoked, newest first. */
export async function listVirtualKeyRows(sql: Sql, teamId: string): Promise<VirtualKeyRow[]> {
  return sql<VirtualKeyRow[]>`
    select ${masked(sql)} from virtual_keys where team_id = ${teamId} order by created_at desc, id desc`
}

/** An active key; the row stays as it is until the transaction ends. */
export async function lockActiveVirtualKey(
  sql: Sql,
  teamId: string,
  id: string,
): Promise<VirtualKeyRow | null> {
  const [row] = await sql<VirtualKeyRow[]>`
    select ${masked(sql)} from virtual_keys
    where team_id = ${teamId} and id = ${id} and revoked_at is null for update`
  return row ?? null
}

export async function updateVirtualKeyRow(
  sql: Sql,
  teamId: string,
  id: string,
  settings: VirtualKeySettings,
): Promise<VirtualKeyRow> {
  const [row] = await sql<VirtualKeyRow[]>`
    update virtual_keys set name = ${settings.name}, allowed_models = ${settings.allowedModels},
      allowed_providers = ${settings.allowedProviders}, max_rpm = ${settings.maxRpm},
      max_tpm = ${settings.maxTpm}, cache_ttl_seconds = ${settings.cacheTtlSeconds}
    where team_id = ${teamId} and id = ${id}
    returning ${masked(sql)}`
  return row as VirtualKeyRow
}

/** @returns null: no active key of the team has this id. */
export async function revokeVirtualKeyRow(
  sql: Sql,
  teamId: string,
  id: string,
  at: Date,
): Promise<VirtualKeyRow | null> {
  const [row] = await sql<VirtualKeyRow[]>`
    update virtual_keys set revoked_at = ${at} where team_id = ${teamId} and id = ${id} and revoked_at is null
    returning ${masked(sql)}`
  return row ?? null
}

export async function findVirtualKeyScope(
  sql: Sql,
  teamId: string,
  id: string,
): Promise<Pick<VirtualKeySettings, 'allowedModels' | 'allowedProviders'> | null> {
  const [row] = await sql<Pick<VirtualKeySettings, 'allowedModels' | 'allowedProviders'>[]>`
    select allowed_models, allowed_providers from virtual_keys
    where team_id = ${teamId} and id = ${id} and revoked_at is null`
  return row ?? null
}
