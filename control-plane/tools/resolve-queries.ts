import { isNameable } from '../db/nameable.js'
import type { Sql } from '../db/sql.js'

/** What one wanted reference met; the tool's columns are null when the team has no such active tool. */
export interface ResolvedRow {
  toolId: string | null
  name: string
  toolDescription: string | null
  versionId: string | null
  versionNumber: number
  description: string | null
  parametersSchema: Record<string, unknown>
  executorType: 'client' | 'http'
}

/** Either an alias or a version number serves the tool. */
export interface Wanted {
  /** The tool's name or id. */
  tool: string
  alias: string | null
  versionNumber: number | null
}

/** One row for each of `wanted`, in its order. */
export async function findWantedVersions(
  sql: Sql,
  teamId: string,
  by: 'name' | 'id',
  wanted: readonly Wanted[],
): Promise<ResolvedRow[]> {
  const isWanted = by === 'name' ? sql`t.name = w.tool` : sql`t.id = w.tool::uuid`
  const versionNumbers = wanted.map(one => one.versionNumber?.toString() ?? null)
  return sql<ResolvedRow[]>`
    select t.id as tool_id, t.name, t.description as tool_description, v.id as version_id, v.version_number,
      v.description, v.parameters_schema, v.executor ->> 'type' as executor_type
    from unnest(${wanted.map(one => comparable(one.tool))}::text[],
        ${wanted.map(one => comparable(one.alias))}::text[],
        (${versionNumbers}::text[])::integer[]) with ordinality as w (tool, alias, version_number, place)
    left join tools t on t.team_id = ${teamId} and t.deleted_at is null and ${isWanted}
    left join tool_aliases a on a.team_id = t.team_id and a.tool_id = t.id and a.alias = w.alias
    left join tool_versions p
      on p.team_id = t.team_id and p.tool_id = t.id and p.version_number = w.version_number
    left join tool_versions v on v.team_id = t.team_id and v.id = coalesce(a.version_id, p.id)
    order by w.place`
}

/** null, which equals nothing, for what nothing can be called. */
const comparable = (text: string | null) => (text !== null && isNameable(text) ? text : null)
