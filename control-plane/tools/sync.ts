import { isDeepStrictEqual } from 'node:util'
import type { Executor, ToolVersionSource } from '../../shared/contract/tools.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import type { Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { changeTeam } from '../gateway/publish.js'
import { lockedTool, requireTool } from './change-tool.js'
import { type Committed, pointAlias, type VersionInput, writeVersion } from './commit-version.js'
import { checkVersion } from './executor-check.js'
import type { StoredTool } from './queries.js'
import { findServedVersion, type ToolVersionRow } from './version-queries.js'

export interface Synced extends Committed {
  /** false: the alias serves this already. */
  created: boolean
  superseded: { versionNumber: number; source: ToolVersionSource } | null
}

type SyncInput = Omit<VersionInput, 'changelog'> & { alias: string }

/**
 * Makes an alias serve what the code says: commits a version with source `code` when it differs from the one that the
 * alias serves, and moves the alias (spec 4, section 6). Programs sync at every start, so one that changes nothing
 * writes nothing, moves no epoch and asks neither the sandbox nor a resolver.
 *
 * @throws AppError as commitVersion.
 */
export async function syncVersion(
  deps: Deps,
  author: Pick<Principal, 'teamId' | 'userId'>,
  toolId: string,
  input: SyncInput,
): Promise<Synced> {
  const { teamId } = author
  const { id } = await requireTool(deps.sql, teamId, toolId)
  const served = await findServedVersion(deps.sql, teamId, id, input.alias)
  if (served !== null && isSame(served, input)) return unchanged(served)
  await checkVersion(deps, teamId, input)
  return changeTeam(deps, teamId, async tx => {
    const tool = await lockedTool(tx, teamId, id)
    // Another sync may have got here first.
    const current = await findServedVersion(tx, teamId, id, input.alias)
    if (current !== null && isSame(current, input)) return unchanged(current)
    return supersede(tx, author, tool, input, current, deps.now())
  })
}

const unchanged = (version: ToolVersionRow): Synced => ({
  created: false,
  version,
  aliases: null,
  superseded: null,
})

async function supersede(
  tx: Sql,
  author: Pick<Principal, 'teamId' | 'userId'>,
  tool: StoredTool,
  input: SyncInput,
  current: ToolVersionRow | null,
  nowMs: number,
): Promise<Synced> {
  const { alias } = input
  const content = { ...input, changelog: null, source: 'code' as const }
  const options = { via: 'sync' as const, nowMs, firstAliases: [alias] }
  const committed = await writeVersion(tx, author, tool, content, options)
  if (committed.aliases === null) {
    await pointAlias(tx, author.teamId, alias, committed.version, new Date(nowMs))
  }
  if (current === null) return { created: true, ...committed, superseded: null }
  const metadata = {
    toolId: tool.id,
    toolName: tool.name,
    alias,
    supersededVersionNumber: current.versionNumber,
    newVersionNumber: committed.version.versionNumber,
    supersededSource: current.source,
  }
  await record(tx, author, nowMs, 'tool_version_superseded', metadata, { toolId: tool.id })
  const { versionNumber, source } = current
  return { created: true, ...committed, superseded: { versionNumber, source } }
}

type Content = Pick<VersionInput, 'description' | 'parametersSchema' | 'executor'>

/** Whatever order the keys of objects come in. */
const isSame = (one: Content, other: Content): boolean =>
  isDeepStrictEqual(comparable(one), comparable(other))

/** As JSON keeps it, with what may be left out said. */
const comparable = ({ description, parametersSchema, executor }: Content): unknown =>
  JSON.parse(JSON.stringify({ description, parametersSchema, executor: explicit(executor) }))

function explicit(executor: Executor): object {
  if (executor.type === 'client') return executor
  const { argMapping: _, resultSchemaSeverity = 'warning', ...fields } = executor
  return { ...fields, resultSchemaSeverity }
}
