import { AppError } from '../../shared/errors/app-error.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import type { Deps } from '../deps.js'
import { changeTeam } from '../gateway/publish.js'
import { lockedTool } from './change-tool.js'
import { pointAlias } from './commit-version.js'
import { findServedVersion, findToolVersion, type ToolAliasRow } from './version-queries.js'

/**
 * Points an alias at a version, making the alias when it is new (spec 4, section 6).
 *
 * @throws AppError NOT_FOUND `Tool not found.`; `Version N not found for this tool.`
 */
export async function promoteAlias(
  deps: Deps,
  author: Pick<Principal, 'teamId' | 'userId'>,
  toolId: string,
  alias: string,
  versionNumber: number,
): Promise<ToolAliasRow> {
  const { teamId } = author
  return changeTeam(deps, teamId, async tx => {
    const tool = await lockedTool(tx, teamId, toolId)
    const version = await findToolVersion(tx, teamId, tool.id, versionNumber)
    if (version === null) throw versionNotFound(versionNumber)
    const served = await findServedVersion(tx, teamId, tool.id, alias)
    const nowMs = deps.now()
    const row = await pointAlias(tx, teamId, alias, version, new Date(nowMs))
    const fromVersionNumber = served?.versionNumber ?? null
    const metadata = { toolId: tool.id, toolName: tool.name, alias, versionNumber, fromVersionNumber }
    await record(tx, author, nowMs, 'tool_alias_promoted', metadata, { toolId: tool.id })
    return row
  })
}

/** @param versionNumber as the caller wrote it. */
export const versionNotFound = (versionNumber: number | string) =>
  new AppError('NOT_FOUND', `Version ${versionNumber} not found for this tool.`)
