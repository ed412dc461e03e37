import { containing } from '../db/like.js'
import type { Sql } from '../db/sql.js'

/** A tool with what is computed about it at read time (spec 1, tool). */
export interface ToolRow {
  id: string
  teamId: string
  name: string
  description: string | null
  createdBy: string | null
  createdAt: Date
  versionCount: number
  latestVersionNumber: number | null
  /** Of the version that `production` serves; null without one. */
  executorType: 'client' | 'http' | null
  /** `production` first. */
  aliases: { alias: string; versionNumber: number }[]
}

export type StoredTool = Pick<ToolRow, 'id' | 'name' | 'description'>

const readAt = (sql: Sql) => sql`
  select t.id, t.team_id, t.name, t.description, t.created_by, t.created_at,
    v.version_count, v.latest_version_number, a.aliases, a.executor_type
  from tools t
  cross join lateral (
    select count(*)::integer as version_count, max(version_number) as latest_version_number
    from tool_versions where team_id = t.team_id and tool_id = t.id) v
  cross join lateral (
    select coalesce(json_agg(json_build_object('alias', ta.alias, 'versionNumber', tv.version_number)
        order by (ta.alias = 'production') desc, ta.alias collate "C"), '[]') as aliases,
      max(tv.executor ->> 'type') filter (where ta.alias = 'production') as executor_type
    from tool_aliases ta
    join tool_versions tv on tv.team_id = ta.team_id and tv.id = ta.version_id
    where ta.team_id = t.team_id and ta.tool_id = t.id) a`

/** @throws the driver's error when an active tool of the team has the name (unique). */
export async function insertTool(
  sql: Sql,
  row: Pick<ToolRow, 'id' | 'teamId' | 'name' | 'description' | 'createdBy' | 'createdAt'>,
): Promise<void> {
  await sql`
    insert into tools (team_id, id, name, description, created_by, created_at)
    values (${row.teamId}, ${row.id}, ${row.name}, ${row.description}, ${row.createdBy}, ${row.createdAt})`
}

/** An active tool. */
export async function findTool(sql: Sql, teamId: string, id: string): Promise<ToolRow | null> {
  const [row] = await sql<ToolRow[]>`
    ${readAt(sql)} where t.team_id = ${teamId} and t.id = ${id} and t.deleted_at is null`
  return row ?? null
}

/** Active tools, newest first. @param search part of the name, in any letter case; null: all. */
export async function listToolRows(
  sql: Sql,
  teamId: string,
  search: string | null,
  page: { limit: number; offset: number },
): Promise<ToolRow[]> {
  return sql<ToolRow[]>`
    ${readAt(sql)} where ${isListed(sql, teamId, search)}
    order by t.created_at desc, t.id desc limit ${page.limit} offset ${page.offset}`
}

export async function countTools(sql: Sql, teamId: string, search: string | null): Promise<number> {
  const [row] = await sql<{ total: number }[]>`
    select count(*)::integer as total from tools t where ${isListed(sql, teamId, search)}`
  return row?.total ?? 0
}

const isListed = (sql: Sql, teamId: string, search: string | null) => sql`
  t.team_id = ${teamId} and t.deleted_at is null
  ${search === null ? sql`` : sql`and t.name ilike ${containing(search)}`}`

/**
 * An active tool whose row stays as it is until the transaction ends: writers of a tool's versions and aliases wait for
 * each other here.
 */
export async function lockTool(sql: Sql, teamId: string, id: string): Promise<StoredTool | null> {
  const [row] = await sql<StoredTool[]>`
    select id, name, description from tools
    where team_id = ${teamId} and id = ${id} and deleted_at is null for update`
  return row ?? null
}

/** @throws the driver's error, as insertTool. */
export async function updateToolRow(sql: Sql, teamId: string, row: StoredTool): Promise<void> {
  await sql`
    update tools set name = ${row.name}, description = ${row.description}
    where team_id = ${teamId} and id = ${row.id}`
}

export async function softDeleteTool(sql: Sql, teamId: string, id: string, at: Date): Promise<void> {
  await sql`update tools set deleted_at = ${at} where team_id = ${teamId} and id = ${id}`
}
