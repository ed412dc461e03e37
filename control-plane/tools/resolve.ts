import type { MissingRecord, ToolDefinition, ToolReference } from '../../shared/directory/records.js'
import { AppError } from '../../shared/errors/app-error.js'
import type { Sql } from '../db/sql.js'
import { findWantedVersions, type ResolvedRow } from './resolve-queries.js'

/** What a reference to a tool stands for as of now. */
export interface ResolvedTool {
  name: string
  toolId: string
  versionId: string
  versionNumber: number
  definition: ToolDefinition
  executorType: 'client' | 'http'
}

/** What a reference without alias and version means (spec 4, section 5). */
const DEFAULT_ALIAS = 'production'

/**
 * Tool references by name, in their order; one statement.
 *
 * A reference that names nothing is `{ missing }` with the public message: `Tool not found.`, or a text that names the
 * alias or version which the tool does not have.
 */
export async function resolveToolReferences(
  sql: Sql,
  teamId: string,
  refs: readonly ToolReference[],
): Promise<(ResolvedTool | MissingRecord)[]> {
  if (refs.length === 0) return []
  const wanted = refs.map(ref => ({
    tool: ref.name,
    alias: ref.version === null ? (ref.alias ?? DEFAULT_ALIAS) : null,
    versionNumber: ref.version,
  }))
  const rows = await findWantedVersions(sql, teamId, 'name', wanted)
  return wanted.map(({ tool, alias, versionNumber }, place) => {
    const row = rows[place]
    if (row === undefined || row.toolId === null) return { missing: 'Tool not found.' }
    const missing = alias === null ? `version ${versionNumber}` : `alias '${alias}'`
    return resolvedTool(row) ?? { missing: `Tool '${tool}' has no ${missing}.` }
  })
}

/** As resolveToolReferences, with the first thing missing thrown. @throws AppError NOT_FOUND. */
export async function requireTools(
  sql: Sql,
  teamId: string,
  refs: readonly ToolReference[],
): Promise<ResolvedTool[]> {
  const answers = await resolveToolReferences(sql, teamId, refs)
  return answers.map(answer => {
    if ('missing' in answer) throw new AppError('NOT_FOUND', answer.missing)
    return answer
  })
}

/**
 * For bindings: the version that each (tool id, alias or version number) stands for, with the tool's current name; one
 * statement. null: the tool was deleted, or has no such alias or version.
 */
export async function resolveToolVersions(
  sql: Sql,
  teamId: string,
  wanted: readonly { toolId: string; alias: string | null; versionNumber: number | null }[],
): Promise<(ResolvedTool | null)[]> {
  if (wanted.length === 0) return []
  const byId = wanted.map(({ toolId, ...serve }) => ({ tool: toolId, ...serve }))
  const rows = await findWantedVersions(sql, teamId, 'id', byId)
  return wanted.map((_, place) => {
    const row = rows[place]
    return row === undefined ? null : resolvedTool(row)
  })
}

function resolvedTool(row: ResolvedRow): ResolvedTool | null {
  const { toolId, versionId, name, versionNumber, executorType } = row
  if (toolId === null || versionId === null) return null
  const definition = toolDefinition(name, row.toolDescription, row)
  return { name, toolId, versionId, versionNumber, definition, executorType }
}

/** An item of `tools` in a completions request: the version's description, else the tool's, else none. */
export function toolDefinition(
  name: string,
  toolDescription: string | null,
  version: { description: string | null; parametersSchema: Record<string, unknown> },
): ToolDefinition {
  const description = [version.description, toolDescription].find(isSaid)
  const parameters = version.parametersSchema
  return { type: 'function', function: { name, ...(description != null && { description }), parameters } }
}

/** A blank description says as little as none. */
export const isSaid = (text: string | null | undefined): text is string => text != null && text.trim() !== ''
