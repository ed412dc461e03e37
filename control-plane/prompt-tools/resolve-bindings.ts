import type { ToolResolution } from '../../shared/contract/prompts.js'
import type { ToolDefinition } from '../../shared/directory/records.js'
import type { Sql } from '../db/sql.js'
import { type ResolvedTool, resolveToolVersions } from '../tools/resolve.js'
import { type BindingRow, DEFAULT_ALIAS, listBindingRows, type Target } from './queries.js'

export interface ResolvedBindings {
  toolResolutions: ToolResolution[]
  /** What is attached, in the order of the bindings. */
  tools: ToolDefinition[]
}

/** Neither an alias nor a version: the tool is off. */
export const isOff = ({ toolAlias, pinnedVersionNumber }: Target): boolean =>
  toolAlias === null && pinnedVersionNumber === null

/**
 * The tools that a prompt's alias offers as of now. An alias inherits the default row of each tool for which it has no
 * row of its own (spec 4, section 9). A binding that stands for nothing any more is told apart, never an error: a tool
 * that somebody deleted must not stop the prompt.
 *
 * @param alias null: the default rows alone.
 */
export async function resolveBindings(
  sql: Sql,
  teamId: string,
  promptId: string,
  alias: string | null,
): Promise<ResolvedBindings> {
  const aliases = alias === null ? [DEFAULT_ALIAS] : [DEFAULT_ALIAS, alias]
  const rows = effectiveRows(await listBindingRows(sql, teamId, promptId, aliases))
  const resolved = await resolveRows(sql, teamId, rows)
  return {
    toolResolutions: rows.map((row, at) => resolution(row, resolved[at] ?? null)),
    tools: resolved.flatMap(tool => (tool === null ? [] : [tool.definition])),
  }
}

/**
 * One row a tool. An alias's own row takes the place of the default row, so that another version of a tool does not
 * reorder the list (the order is part of what providers cache); tools of the alias alone follow.
 */
function effectiveRows(rows: readonly BindingRow[]): BindingRow[] {
  const byTool = new Map<string, BindingRow>()
  // Default rows come first, and a Map keeps the place of a key that is set again.
  for (const row of rows) byTool.set(row.toolId, row)
  return [...byTool.values()]
}

/** What each row stands for now, in the order of the rows; null: off, or nothing any more. */
export async function resolveRows(
  sql: Sql,
  teamId: string,
  rows: readonly BindingRow[],
): Promise<(ResolvedTool | null)[]> {
  const live = rows.filter(row => !isOff(row) && !row.isToolDeleted)
  if (live.length === 0) return rows.map(() => null)
  const wanted = live.map(({ toolId, toolAlias, pinnedVersionNumber }) => ({
    toolId,
    alias: toolAlias,
    versionNumber: pinnedVersionNumber,
  }))
  const found = await resolveToolVersions(sql, teamId, wanted)
  const byRow = new Map(live.map((row, at) => [row, found[at] ?? null]))
  return rows.map(row => byRow.get(row) ?? null)
}

function resolution(row: BindingRow, tool: ResolvedTool | null): ToolResolution {
  const { toolId, toolName, toolAlias, pinnedVersionNumber } = row
  const resolvedVersionNumber = tool?.versionNumber ?? null
  const shown = { toolId, toolName, toolAlias, pinnedVersionNumber, resolvedVersionNumber }
  if (tool !== null) return { ...shown, status: 'attached' }
  if (isOff(row)) return { ...shown, status: 'off' }
  const reason = row.isToolDeleted ? `Tool '${toolName}' was deleted.` : unresolvedReason(toolName, row)
  return { ...shown, status: 'unresolved', reason }
}

/** Why a target stands for no version of a tool. */
export const unresolvedReason = (toolName: string, { toolAlias, pinnedVersionNumber }: Target): string =>
  toolAlias === null
    ? `Tool '${toolName}' has no version ${pinnedVersionNumber}.`
    : `Tool '${toolName}' has no alias '${toolAlias}'.`
