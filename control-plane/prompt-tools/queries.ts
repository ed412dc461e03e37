import type { Sql } from '../db/sql.js'

/** The prompt alias of the default rows, which every alias without a row of its own for a tool inherits. */
export const DEFAULT_ALIAS = ''

/** What a binding stands for: an alias of the tool, a version of it, or (both null) that the tool is off. */
export interface Target {
  toolAlias: string | null
  pinnedVersionNumber: number | null
}

export interface BindingRow extends Target {
  /** '': the default row. */
  promptAlias: string
  toolId: string
  toolName: string
  isToolDeleted: boolean
  position: number
}

const columns = (sql: Sql) => sql`
  b.prompt_alias, b.tool_id, t.name as tool_name, t.deleted_at is not null as is_tool_deleted, b.tool_alias,
  b.pinned_version_number, b.position`
const joined = (sql: Sql) => sql`
  prompt_tool_bindings b join tools t on t.team_id = b.team_id and t.id = b.tool_id`

/**
 * A prompt's bindings, of deleted tools too: default rows first, then by alias; each group in the order of its positions.
 *
 * @param promptAliases only the rows of these; undefined: all rows.
 */
export async function listBindingRows(
  sql: Sql,
  teamId: string,
  promptId: string,
  promptAliases?: readonly string[],
): Promise<BindingRow[]> {
  const narrowed =
    promptAliases === undefined ? sql`` : sql`and b.prompt_alias = any(${[...promptAliases]}::text[])`
  return sql<BindingRow[]>`
    select ${columns(sql)} from ${joined(sql)}
    where b.team_id = ${teamId} and b.prompt_id = ${promptId} ${narrowed}
    order by b.prompt_alias collate "C", b.position, b.tool_id`
}

/** Where a binding belongs. */
export interface BindingPlace {
  teamId: string
  promptId: string
  promptAlias: string
  toolId: string
}

export async function findBindingTarget(sql: Sql, place: BindingPlace): Promise<Target | null> {
  const [row] = await sql<Target[]>`
    select tool_alias, pinned_version_number from prompt_tool_bindings
    where team_id = ${place.teamId} and prompt_id = ${place.promptId} and prompt_alias = ${place.promptAlias}
      and tool_id = ${place.toolId}`
  return row ?? null
}

/**
 * Sets a binding. A new row goes behind the others of its alias; one that is there keeps its position, so that a
 * changed version does not reorder what the model is offered. Lock the prompt first.
 *
 * @returns the row's position, from 0.
 */
export async function upsertBinding(tx: Sql, place: BindingPlace, target: Target, at: Date): Promise<number> {
  const [row] = await tx<{ position: number }[]>`
    insert into prompt_tool_bindings
      (team_id, prompt_id, prompt_alias, tool_id, tool_alias, pinned_version_number, position, updated_at)
    select ${place.teamId}::uuid, ${place.promptId}::uuid, ${place.promptAlias}::text, ${place.toolId}::uuid,
      ${target.toolAlias}::text, ${target.pinnedVersionNumber}::integer, coalesce(max(position) + 1, 0), ${at}::timestamptz
    from prompt_tool_bindings
    where team_id = ${place.teamId} and prompt_id = ${place.promptId} and prompt_alias = ${place.promptAlias}
    on conflict (team_id, prompt_id, prompt_alias, tool_id) do update set tool_alias = excluded.tool_alias,
      pinned_version_number = excluded.pinned_version_number, updated_at = excluded.updated_at
    returning position`
  return row?.position ?? 0
}

export type RemovedBinding = Pick<BindingRow, 'toolId' | 'toolName' | 'toolAlias'>

/** @param toolId null: every row of the alias. @returns the removed rows, in the order of their positions. */
export async function deleteBindings(
  tx: Sql,
  { teamId, promptId, promptAlias }: Omit<BindingPlace, 'toolId'>,
  toolId: string | null,
): Promise<RemovedBinding[]> {
  const narrowed = toolId === null ? tx`` : tx`and b.tool_id = ${toolId}`
  return tx<RemovedBinding[]>`
    with removed as (
      delete from prompt_tool_bindings b
      where b.team_id = ${teamId} and b.prompt_id = ${promptId} and b.prompt_alias = ${promptAlias} ${narrowed}
      returning team_id, tool_id, tool_alias, position)
    select b.tool_id, t.name as tool_name, b.tool_alias
    from removed b join tools t on t.team_id = b.team_id and t.id = b.tool_id
    order by b.position, b.tool_id`
}

/** An active tool as it is stored: its id in the database's spelling, whichever letter case a path has, and its name. */
export async function findActiveTool(
  sql: Sql,
  teamId: string,
  toolId: string,
): Promise<Pick<BindingRow, 'toolId' | 'toolName'> | null> {
  const [row] = await sql<Pick<BindingRow, 'toolId' | 'toolName'>[]>`
    select id as tool_id, name as tool_name from tools
    where team_id = ${teamId} and id = ${toolId} and deleted_at is null`
  return row ?? null
}
