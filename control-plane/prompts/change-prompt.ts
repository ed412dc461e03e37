import { randomUUID } from 'node:crypto'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import type { Deps } from '../deps.js'
import { changeTeam } from '../gateway/publish.js'
import { requireLockedPrompt } from './missing.js'
import { insertPrompt, type PromptRow, softDeletePrompt, updatePromptRow } from './queries.js'

/** A new prompt may take over a name from an older one, which calls by name then no longer reach. */
export async function addPrompt(
  deps: Deps,
  actor: Principal,
  input: { name: string; description: string | null },
): Promise<PromptRow> {
  const { teamId } = actor
  const nowMs = deps.now()
  const row = { ...input, id: randomUUID(), teamId, createdBy: actor.userId, createdAt: new Date(nowMs) }
  return changeTeam(deps, teamId, async tx => {
    await insertPrompt(tx, row)
    await record(tx, actor, nowMs, 'prompt_created', { name: row.name }, { promptId: row.id })
    return row
  })
}

/** @throws AppError NOT_FOUND. */
export async function changePrompt(
  deps: Deps,
  actor: Principal,
  promptId: string,
  patch: { name?: string | undefined; description?: string | null | undefined },
): Promise<PromptRow> {
  const { teamId } = actor
  return changeTeam(deps, teamId, async tx => {
    const before = await requireLockedPrompt(tx, teamId, promptId)
    const name = patch.name ?? before.name
    const description = patch.description === undefined ? before.description : patch.description
    await updatePromptRow(tx, teamId, before.id, { name, description })
    if (name !== before.name) {
      const renamed = { from: before.name, to: name }
      await record(tx, actor, deps.now(), 'prompt_renamed', renamed, { promptId: before.id })
    }
    return { ...before, name, description }
  })
}

/** Hides a prompt; versions, aliases and bindings are kept. @throws AppError NOT_FOUND, also when deleted already. */
export async function removePrompt(deps: Deps, actor: Principal, promptId: string): Promise<void> {
  const { teamId } = actor
  await changeTeam(deps, teamId, async tx => {
    const { id, name } = await requireLockedPrompt(tx, teamId, promptId)
    const nowMs = deps.now()
    await softDeletePrompt(tx, teamId, id, new Date(nowMs))
    await record(tx, actor, nowMs, 'prompt_deleted', { name }, { promptId: id })
  })
}
