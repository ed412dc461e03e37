import type { ProviderKind } from '../../../shared/contract/common.js'
import { isUuid } from '../../../shared/contract/common.js'
import type { ModelPricing } from '../../../shared/contract/models.js'
import type { Sql } from '../../db/sql.js'

/** A registered model with the provider of its connection. */
export interface ModelRow {
  id: string
  publicName: string
  connectionId: string
  provider: ProviderKind
  upstreamModel: string
  pricing: ModelPricing | null
  maxOutputTokens: number | null
  contextWindow: number | null
  createdAt: Date
  updatedAt: Date
}

export type ModelValues = Omit<ModelRow, 'provider' | 'id' | 'createdAt'>

type StoredRow = Omit<ModelRow, 'pricing'> & {
  inputPerMtok: string | null
  outputPerMtok: string | null
  cachedInputPerMtok: string | null
  cacheWritePerMtok: string | null
}

const columns = (sql: Sql) => sql`
  m.id, m.public_name, m.connection_id, c.provider, m.upstream_model, m.input_per_mtok, m.output_per_mtok,
  m.cached_input_per_mtok, m.cache_write_per_mtok, m.max_output_tokens, m.context_window, m.created_at, m.updated_at`

/** @throws the driver's error on a taken publicName (unique) or a missing connection (foreign key). */
export async function insertModel(
  sql: Sql,
  teamId: string,
  row: ModelValues & { id: string; createdAt: Date },
): Promise<ModelRow> {
  const price = row.pricing
  const [stored] = await sql<StoredRow[]>`
    with m as (
      insert into models
        (team_id, id, public_name, connection_id, upstream_model, input_per_mtok, output_per_mtok,
          cached_input_per_mtok, cache_write_per_mtok, max_output_tokens, context_window, created_at, updated_at)
      values (${teamId}, ${row.id}, ${row.publicName}, ${row.connectionId}, ${row.upstreamModel},
        ${price?.inputPerMTok ?? null}, ${price?.outputPerMTok ?? null}, ${price?.cachedInputPerMTok ?? null},
        ${price?.cacheWritePerMTok ?? null}, ${row.maxOutputTokens}, ${row.contextWindow}, ${row.createdAt},
        ${row.updatedAt})
      returning *)
    select ${columns(sql)} from m join connections c on c.team_id = m.team_id and c.id = m.connection_id`
  return modelRow(stored as StoredRow)
}

/** Newest first. */
export async function listModelRows(sql: Sql, teamId: string): Promise<ModelRow[]> {
  const rows = await sql<StoredRow[]>`
    select ${columns(sql)} from models m join connections c on c.team_id = m.team_id and c.id = m.connection_id
    where m.team_id = ${teamId} order by m.created_at desc, m.id desc`
  return rows.map(modelRow)
}

/** @param reference the uuid or the publicName; a publicName that looks like another model's uuid loses to it. */
export async function findModel(sql: Sql, teamId: string, reference: string): Promise<ModelRow | null> {
  return find(sql, teamId, reference, sql``)
}

/** As findModel; the row stays as it is until the transaction ends. */
export async function lockModel(sql: Sql, teamId: string, reference: string): Promise<ModelRow | null> {
  return find(sql, teamId, reference, sql`for update of m`)
}

async function find(sql: Sql, teamId: string, reference: string, lock: ReturnType<Sql>) {
  const id = isUuid(reference) ? reference : null
  const [row] = await sql<StoredRow[]>`
    select ${columns(sql)} from models m join connections c on c.team_id = m.team_id and c.id = m.connection_id
    where m.team_id = ${teamId} and (m.id = ${id}::uuid or m.public_name = ${reference})
    order by (m.id = ${id}::uuid) desc nulls last limit 1 ${lock}`
  return row === undefined ? null : modelRow(row)
}

/** @throws the driver's error, as insertModel. */
export async function updateModelRow(
  sql: Sql,
  teamId: string,
  id: string,
  row: ModelValues,
): Promise<ModelRow> {
  const price = row.pricing
  const [stored] = await sql<StoredRow[]>`
    with m as (
      update models set public_name = ${row.publicName}, connection_id = ${row.connectionId},
        upstream_model = ${row.upstreamModel}, input_per_mtok = ${price?.inputPerMTok ?? null},
        output_per_mtok = ${price?.outputPerMTok ?? null},
        cached_input_per_mtok = ${price?.cachedInputPerMTok ?? null},
        cache_write_per_mtok = ${price?.cacheWritePerMTok ?? null}, max_output_tokens = ${row.maxOutputTokens},
        context_window = ${row.contextWindow}, updated_at = ${row.updatedAt}
      where team_id = ${teamId} and id = ${id}
      returning *)
    select ${columns(sql)} from m join connections c on c.team_id = m.team_id and c.id = m.connection_id`
  return modelRow(stored as StoredRow)
}

export async function deleteModelRow(sql: Sql, teamId: string, id: string): Promise<void> {
  await sql`delete from models where team_id = ${teamId} and id = ${id}`
}

function modelRow(stored: StoredRow): ModelRow {
  const { inputPerMtok, outputPerMtok, cachedInputPerMtok, cacheWritePerMtok, ...row } = stored
  if (inputPerMtok === null || outputPerMtok === null) return { ...row, pricing: null }
  const optional = (text: string | null) => (text === null ? null : Number(text))
  return {
    ...row,
    pricing: {
      inputPerMTok: Number(inputPerMtok),
      outputPerMTok: Number(outputPerMtok),
      cachedInputPerMTok: optional(cachedInputPerMtok),
      cacheWritePerMTok: optional(cacheWritePerMtok),
    },
  }
}
