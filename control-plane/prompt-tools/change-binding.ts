import { isUuid } from '../../shared/contract/common.js'
import { AppError, notFound, validation } from '../../shared/errors/app-error.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import type { Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { changeTeam } from '../gateway/publish.js'
import { requireLockedPrompt } from '../prompts/missing.js'
import { resolveToolVersions } from '../tools/resolve.js'
import {
  type BindingRow,
  DEFAULT_ALIAS,
  deleteBindings,
  findActiveTool,
  findBindingTarget,
  type RemovedBinding,
  type Target,
  upsertBinding,
} from './queries.js'
import { isOff, unresolvedReason } from './resolve-bindings.js'

/** Names a binding as the request does; `promptAlias` null: the default one. */
export interface BindingName {
  promptId: string
  promptAlias: string | null
  toolId: string
}

/** A binding that was just set, with the version that it stands for; null: off. */
export type SetBinding = BindingRow & { resolvedVersionNumber: number | null }

/**
 * Sets a binding; it holds for the next render and call, with no commit and no promotion.
 *
 * @throws AppError NOT_FOUND for the prompt or the tool; VALIDATION_ERROR `Tool '<name>' has no alias '<alias>'.` or a
 *   text that names the missing version.
 */
export async function setBinding(
  deps: Deps,
  actor: Principal,
  { promptId, promptAlias, ...named }: BindingName,
  target: Target,
): Promise<SetBinding> {
  const { teamId } = actor
  return changeTeam(deps, teamId, async tx => {
    const prompt = await requireLockedPrompt(tx, teamId, promptId)
    const tool = isUuid(named.toolId) ? await findActiveTool(tx, teamId, named.toolId) : null
    if (tool === null) throw notFound('Tool')
    const { toolId, toolName } = tool
    const resolvedVersionNumber = await requireTarget(tx, teamId, tool, target)
    const place = { teamId, promptId: prompt.id, promptAlias: promptAlias ?? DEFAULT_ALIAS, toolId }
    const before = await findBindingTarget(tx, place)
    const nowMs = deps.now()
    const position = await upsertBinding(tx, place, target, new Date(nowMs))
    const route = {
      toolId,
      toolName,
      promptAlias,
      toToolAlias: target.toolAlias,
      fromToolAlias: before?.toolAlias ?? null,
      toPinnedVersionNumber: target.pinnedVersionNumber,
      off: isOff(target),
    }
    await record(tx, actor, nowMs, 'prompt_tool_route_set', route, { promptId: prompt.id, toolId })
    const { promptAlias: stored } = place
    return {
      ...target,
      promptAlias: stored,
      toolId,
      toolName,
      isToolDeleted: false,
      position,
      resolvedVersionNumber,
    }
  })
}

/** The version that a target stands for now; null: off. */
async function requireTarget(
  tx: Sql,
  teamId: string,
  tool: { toolId: string; toolName: string },
  target: Target,
): Promise<number | null> {
  if (isOff(target)) return null
  const { toolAlias: alias, pinnedVersionNumber: versionNumber } = target
  const [found] = await resolveToolVersions(tx, teamId, [{ toolId: tool.toolId, alias, versionNumber }])
  if (found === undefined || found === null) throw validation(unresolvedReason(tool.toolName, target))
  return found.versionNumber
}

/** Removes a binding, of a deleted tool too. @throws AppError NOT_FOUND for the prompt, or `No binding set for that tool.` */
export async function removeBinding(deps: Deps, actor: Principal, name: BindingName): Promise<void> {
  const removed = isUuid(name.toolId) ? name.toolId : null
  await removeBindings(deps, actor, name, async (tx, promptId) => {
    const place = { teamId: actor.teamId, promptId, promptAlias: name.promptAlias ?? DEFAULT_ALIAS }
    const rows = removed === null ? [] : await deleteBindings(tx, place, removed)
    if (rows.length === 0) throw new AppError('NOT_FOUND', 'No binding set for that tool.')
    return rows
  })
}

/** Removes all rows of a prompt's alias. @throws AppError NOT_FOUND for the prompt, or for an alias with no row. */
export async function removeAliasBindings(
  deps: Deps,
  actor: Principal,
  name: { promptId: string; promptAlias: string },
): Promise<void> {
  const { promptAlias } = name
  await removeBindings(deps, actor, name, async (tx, promptId) => {
    const rows = await deleteBindings(tx, { teamId: actor.teamId, promptId, promptAlias }, null)
    if (rows.length === 0)
      throw new AppError('NOT_FOUND', `Alias '${promptAlias}' has no bindings of its own.`)
    return rows
  })
}

/** One event a row: the tool's own trail has to show it. */
async function removeBindings(
  deps: Deps,
  actor: Principal,
  { promptId, promptAlias }: { promptId: string; promptAlias: string | null },
  remove: (tx: Sql, promptId: string) => Promise<RemovedBinding[]>,
): Promise<void> {
  await changeTeam(deps, actor.teamId, async tx => {
    const prompt = await requireLockedPrompt(tx, actor.teamId, promptId)
    for (const { toolId, toolName, toolAlias } of await remove(tx, prompt.id)) {
      const route = { toolId, toolName, promptAlias, fromToolAlias: toolAlias }
      const about = { promptId: prompt.id, toolId }
      await record(tx, actor, deps.now(), 'prompt_tool_route_removed', route, about)
    }
  })
}
