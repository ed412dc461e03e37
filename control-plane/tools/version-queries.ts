import type { Executor, ToolVersionSource } from '../../shared/contract/tools.js'
import type { Sql } from '../db/sql.js'

export interface ToolVersionRow {
  id: string
  toolId: string
  versionNumber: number
  description: string | null
  changelog: string | null
  source: ToolVersionSource
  parametersSchema: Record<string, unknown>
  executor: Executor
  createdBy: string | null
  createdAt: Date
}

export type ListedToolVersion = Omit<ToolVersionRow, 'parametersSchema' | 'executor'>

export interface ToolAliasRow {
  id: string
  alias: string
  versionId: string
  versionNumber: number
  updatedAt: Date
}

const listed = (sql: Sql) => sql`
  v.id, v.tool_id, v.version_number, v.description, v.changelog, v.source, v.created_by, v.created_at`
const whole = (sql: Sql) => sql`${listed(sql)}, v.parameters_schema, v.executor`

/** Call it with the tool locked. */
export async function nextVersionNumber(sql: Sql, teamId: string, toolId: string): Promise<number> {
  const [row] = await sql<{ next: number }[]>`
    select coalesce(max(version_number), 0) + 1 as next from tool_versions
    where team_id = ${teamId} and tool_id = ${toolId}`
  return row?.next ?? 1
}

export async function insertToolVersion(sql: Sql, teamId: string, row: ToolVersionRow): Promise<void> {
  await sql`
    insert into tool_versions
      (team_id, id, tool_id, version_number, description, changelog, source, parameters_schema, executor,
        created_by, created_at)
    values (${teamId}, ${row.id}, ${row.toolId}, ${row.versionNumber}, ${row.description}, ${row.changelog},
      ${row.source}, ${JSON.stringify(row.parametersSchema)}::text::json,
      ${JSON.stringify(row.executor)}::text::json, ${row.createdBy}, ${row.createdAt})`
}

export async function findToolVersion(
  sql: Sql,
  teamId: string,
  toolId: string,
  versionNumber: number,
): Promise<ToolVersionRow | null> {
  const [row] = await sql<ToolVersionRow[]>`
    select ${whole(sql)} from tool_versions v
    where v.team_id = ${teamId} and v.tool_id = ${toolId} and v.version_number = ${versionNumber}`
  return row ?? null
}

/** The version that an alias points at. */
export async function findServedVersion(
  sql: Sql,
  teamId: string,
  toolId: string,
  alias: string,
): Promise<ToolVersionRow | null> {
  const [row] = await sql<ToolVersionRow[]>`
    select ${whole(sql)} from tool_aliases a
    join tool_versions v on v.team_id = a.team_id and v.id = a.version_id
    where a.team_id = ${teamId} and a.tool_id = ${toolId} and a.alias = ${alias}`
  return row ?? null
}

/** Newest first. */
export async function listToolVersionRows(
  sql: Sql,
  teamId: string,
  toolId: string,
  page: { limit: number; offset: number },
): Promise<ListedToolVersion[]> {
  return sql<ListedToolVersion[]>`
    select ${listed(sql)} from tool_versions v
    where v.team_id = ${teamId} and v.tool_id = ${toolId}
    order by v.version_number desc limit ${page.limit} offset ${page.offset}`
}

/** Makes the alias or moves it; a moved alias keeps its id. Call it with the tool locked. */
export async function upsertToolAlias(
  sql: Sql,
  teamId: string,
  toolId: string,
  row: ToolAliasRow,
): Promise<ToolAliasRow> {
  const [stored] = await sql<{ id: string }[]>`
    insert into tool_aliases (team_id, tool_id, alias, id, version_id, updated_at)
    values (${teamId}, ${toolId}, ${row.alias}, ${row.id}, ${row.versionId}, ${row.updatedAt})
    on conflict (team_id, tool_id, alias)
      do update set version_id = excluded.version_id, updated_at = excluded.updated_at
    returning id`
  return { ...row, id: stored?.id ?? row.id }
}
