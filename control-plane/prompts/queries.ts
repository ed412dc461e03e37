import { containing } from '../db/like.js'
import type { Sql } from '../db/sql.js'

/** An active prompt; a deleted one is never read. */
export interface PromptRow {
  id: string
  name: string
  description: string | null
  teamId: string
  createdBy: string | null
  createdAt: Date
}

const columns = (sql: Sql) => sql`id, name, description, team_id, created_by, created_at`

export async function insertPrompt(tx: Sql, row: PromptRow): Promise<void> {
  await tx`
    insert into prompts (team_id, id, name, description, created_by, created_at)
    values (${row.teamId}, ${row.id}, ${row.name}, ${row.description}, ${row.createdBy}, ${row.createdAt})`
}

/** One page, newest first, and how many there are in all. @param search part of the name, in any letter case. */
export async function listPromptRows(
  sql: Sql,
  teamId: string,
  search: string | undefined,
  page: { limit: number; offset: number },
): Promise<{ rows: PromptRow[]; total: number }> {
  const named = search === undefined || search === '' ? sql`` : sql`and name ilike ${containing(search)}`
  const where = sql`team_id = ${teamId} and deleted_at is null ${named}`
  const [rows, counts] = await Promise.all([
    sql<PromptRow[]>`
      select ${columns(sql)} from prompts where ${where}
      order by created_at desc, id desc limit ${page.limit} offset ${page.offset}`,
    sql<{ total: number }[]>`select count(*)::int as total from prompts where ${where}`,
  ])
  return { rows: [...rows], total: counts[0]?.total ?? 0 }
}

export async function findPromptById(sql: Sql, teamId: string, promptId: string): Promise<PromptRow | null> {
  const [row] = await sql<PromptRow[]>`
    select ${columns(sql)} from prompts
    where team_id = ${teamId} and id = ${promptId} and deleted_at is null`
  return row ?? null
}

/** The newest active prompt of the name (spec 4, section 9). */
export async function findPromptByName(sql: Sql, teamId: string, name: string): Promise<PromptRow | null> {
  const [row] = await sql<PromptRow[]>`
    select ${columns(sql)} from prompts
    where team_id = ${teamId} and name = ${name} and deleted_at is null
    order by created_at desc, id desc limit 1`
  return row ?? null
}

/** As findPromptById; orders the writers of the prompt's versions, aliases and bindings until the transaction ends. */
export async function lockPrompt(tx: Sql, teamId: string, promptId: string): Promise<PromptRow | null> {
  const [row] = await tx<PromptRow[]>`
    select ${columns(tx)} from prompts
    where team_id = ${teamId} and id = ${promptId} and deleted_at is null for no key update`
  return row ?? null
}

export async function updatePromptRow(
  tx: Sql,
  teamId: string,
  promptId: string,
  values: Pick<PromptRow, 'name' | 'description'>,
): Promise<void> {
  await tx`
    update prompts set name = ${values.name}, description = ${values.description}
    where team_id = ${teamId} and id = ${promptId}`
}

export async function softDeletePrompt(tx: Sql, teamId: string, promptId: string, at: Date): Promise<void> {
  await tx`update prompts set deleted_at = ${at} where team_id = ${teamId} and id = ${promptId}`
}

export interface PromptAliasRow {
  id: string
  alias: string
  versionId: string
  versionNumber: number
  updatedAt: Date
}

/** Production, staging, then by name. */
export async function listPromptAliasRows(
  sql: Sql,
  teamId: string,
  promptId: string,
): Promise<PromptAliasRow[]> {
  return sql<PromptAliasRow[]>`
    select a.id, a.alias, a.version_id, v.version_number, a.updated_at
    from prompt_aliases a join prompt_versions v on v.team_id = a.team_id and v.id = a.version_id
    where a.team_id = ${teamId} and a.prompt_id = ${promptId}
    order by a.alias <> 'production', a.alias <> 'staging', a.alias collate "C"`
}

/** The number of the version that an alias serves; null: there is no such alias. */
export async function findServedVersionNumber(
  sql: Sql,
  teamId: string,
  promptId: string,
  alias: string,
): Promise<number | null> {
  const [row] = await sql<{ versionNumber: number }[]>`
    select v.version_number
    from prompt_aliases a join prompt_versions v on v.team_id = a.team_id and v.id = a.version_id
    where a.team_id = ${teamId} and a.prompt_id = ${promptId} and a.alias = ${alias}`
  return row?.versionNumber ?? null
}

/** Points an alias at a version; a new one gets `id`, one that is there keeps its own. @returns the alias's id. */
export async function upsertPromptAlias(
  tx: Sql,
  teamId: string,
  promptId: string,
  row: Omit<PromptAliasRow, 'versionNumber'>,
): Promise<string> {
  const [stored] = await tx<{ id: string }[]>`
    insert into prompt_aliases (team_id, prompt_id, alias, id, version_id, updated_at)
    values (${teamId}, ${promptId}, ${row.alias}, ${row.id}, ${row.versionId}, ${row.updatedAt})
    on conflict (team_id, prompt_id, alias)
    do update set version_id = excluded.version_id, updated_at = excluded.updated_at
    returning id`
  return stored?.id ?? row.id
}

export async function deletePromptAliasRow(
  tx: Sql,
  teamId: string,
  promptId: string,
  alias: string,
): Promise<void> {
  await tx`
    delete from prompt_aliases where team_id = ${teamId} and prompt_id = ${promptId} and alias = ${alias}`
}
