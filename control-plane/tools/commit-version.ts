import { randomUUID } from 'node:crypto'
import type { Executor, ToolVersionSource } from '../../shared/contract/tools.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import type { Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { changeTeam } from '../gateway/publish.js'
import { lockedTool, requireTool } from './change-tool.js'
import { checkVersion } from './executor-check.js'
import type { StoredTool } from './queries.js'
import { isSaid } from './resolve.js'
import {
  insertToolVersion,
  nextVersionNumber,
  type ToolAliasRow,
  type ToolVersionRow,
  upsertToolAlias,
} from './version-queries.js'

/** What an author gives. */
export interface VersionInput {
  description: string | null
  changelog: string | null
  parametersSchema: Record<string, unknown>
  executor: Executor
}

export interface Committed {
  version: ToolVersionRow
  /** null unless this was the tool's first version. */
  aliases: ToolAliasRow[] | null
}

/** Served by the first version at once (spec 1, states). */
const FIRST_ALIASES = ['production', 'staging']

/**
 * Commits an immutable version. Everything that takes time (the sandbox, the look-up of the executor's host) happens
 * before the transaction.
 *
 * @throws AppError NOT_FOUND `Tool not found.`; VALIDATION_ERROR as checkVersion.
 */
export async function commitVersion(
  deps: Deps,
  author: Principal,
  toolId: string,
  input: VersionInput & { source: 'dashboard' | 'api' },
): Promise<Committed & { warnings: string[] }> {
  const { teamId } = author
  await requireTool(deps.sql, teamId, toolId)
  await checkVersion(deps, teamId, input)
  const via = author.via === 'session' ? 'dashboard' : 'api'
  const committed = await changeTeam(deps, teamId, async tx =>
    writeVersion(tx, author, await lockedTool(tx, teamId, toolId), input, { via, nowMs: deps.now() }),
  )
  return { ...committed, warnings: warningsOf(input) }
}

/**
 * Writes the next version of a locked tool and, with the first one, its aliases; the audit row too.
 *
 * @param author whose `teamId` owns the tool.
 * @param options.firstAliases aliases that the first version gets beside `production` and `staging`.
 */
export async function writeVersion(
  tx: Sql,
  author: Pick<Principal, 'teamId' | 'userId'>,
  tool: StoredTool,
  input: VersionInput & { source: ToolVersionSource },
  options: { via: 'api' | 'dashboard' | 'sync'; nowMs: number; firstAliases?: readonly string[] },
): Promise<Committed> {
  const { via, nowMs } = options
  const { teamId } = author
  const at = new Date(nowMs)
  const version: ToolVersionRow = {
    id: randomUUID(),
    toolId: tool.id,
    versionNumber: await nextVersionNumber(tx, teamId, tool.id),
    description: input.description,
    changelog: input.changelog,
    source: input.source,
    parametersSchema: input.parametersSchema,
    executor: input.executor,
    createdBy: author.userId,
    createdAt: at,
  }
  const { versionNumber, source } = version
  await insertToolVersion(tx, teamId, version)
  const metadata = { via, source, toolId: tool.id, toolName: tool.name, versionNumber }
  await record(tx, author, nowMs, 'tool_version_committed', metadata, { toolId: tool.id })
  if (versionNumber > 1) return { version, aliases: null }
  const aliases: ToolAliasRow[] = []
  for (const alias of new Set([...FIRST_ALIASES, ...(options.firstAliases ?? [])])) {
    aliases.push(await pointAlias(tx, teamId, alias, version, at))
  }
  return { version, aliases }
}

/** Makes an alias of a locked tool or moves it. */
export const pointAlias = (
  tx: Sql,
  teamId: string,
  alias: string,
  version: Pick<ToolVersionRow, 'id' | 'toolId' | 'versionNumber'>,
  at: Date,
): Promise<ToolAliasRow> =>
  upsertToolAlias(tx, teamId, version.toolId, {
    id: randomUUID(),
    alias,
    versionId: version.id,
    versionNumber: version.versionNumber,
    updatedAt: at,
  })

function warningsOf(input: VersionInput): string[] {
  if (!isSaid(input.changelog) || isSaid(input.description)) return []
  return ['The version has a changelog and no description: the model reads the description of the tool.']
}
