import type { ProviderKind } from '../../../shared/contract/common.js'
import type { ConnectionConfig } from '../../../shared/contract/connections.js'
import type { Sql } from '../../db/sql.js'

export interface ConnectionRow {
  id: string
  provider: ProviderKind
  label: string
  keyLastFour: string
  config: ConnectionConfig
  createdBy: string | null
  createdAt: Date
  updatedAt: Date
}

export interface NewConnection extends ConnectionRow {
  teamId: string
  sealedKey: string
}

/** Never the sealed key: what these functions return is answered to people. */
const masked = (sql: Sql) =>
  sql`id, provider, label, key_last_four, config, created_by, created_at, updated_at`

export async function insertConnection(sql: Sql, row: NewConnection): Promise<ConnectionRow> {
  const [stored] = await sql<ConnectionRow[]>`
    insert into connections
      (team_id, id, provider, label, sealed_key, key_last_four, config, created_by, created_at, updated_at)
    values (${row.teamId}, ${row.id}, ${row.provider}, ${row.label}, ${row.sealedKey}, ${row.keyLastFour},
      ${sql.json(row.config as never)}, ${row.createdBy}, ${row.createdAt}, ${row.updatedAt})
    returning ${masked(sql)}`
  return stored as ConnectionRow
}

export async function listConnectionRows(sql: Sql, teamId: string): Promise<ConnectionRow[]> {
  return sql<ConnectionRow[]>`
    select ${masked(sql)} from connections where team_id = ${teamId} order by created_at desc, id desc`
}

export async function findConnection(sql: Sql, teamId: string, id: string): Promise<ConnectionRow | null> {
  const [row] = await sql<ConnectionRow[]>`
    select ${masked(sql)} from connections where team_id = ${teamId} and id = ${id}`
  return row ?? null
}

/** As findConnection; the row stays as it is until the transaction ends, and no model can be put on it. */
export async function lockConnection(sql: Sql, teamId: string, id: string): Promise<ConnectionRow | null> {
  const [row] = await sql<ConnectionRow[]>`
    select ${masked(sql)} from connections where team_id = ${teamId} and id = ${id} for update`
  return row ?? null
}

export interface ConnectionChange {
  label: string
  config: ConnectionConfig
  /** Undefined: the stored key stays. */
  key: { sealedKey: string; keyLastFour: string } | undefined
  updatedAt: Date
}

export async function updateConnectionRow(
  sql: Sql,
  teamId: string,
  id: string,
  change: ConnectionChange,
): Promise<ConnectionRow> {
  const [row] = await sql<ConnectionRow[]>`
    update connections set label = ${change.label}, config = ${sql.json(change.config as never)},
      sealed_key = coalesce(${change.key?.sealedKey ?? null}, sealed_key),
      key_last_four = coalesce(${change.key?.keyLastFour ?? null}, key_last_four),
      updated_at = ${change.updatedAt}
    where team_id = ${teamId} and id = ${id}
    returning ${masked(sql)}`
  return row as ConnectionRow
}

export async function deleteConnectionRow(sql: Sql, teamId: string, id: string): Promise<void> {
  await sql`delete from connections where team_id = ${teamId} and id = ${id}`
}

/** publicNames of the models on a connection, in order. */
export async function listModelNamesOn(sql: Sql, teamId: string, connectionId: string): Promise<string[]> {
  const rows = await sql<{ publicName: string }[]>`
    select public_name from models where team_id = ${teamId} and connection_id = ${connectionId}
    order by public_name`
  return rows.map(row => row.publicName)
}
