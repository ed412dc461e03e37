import { randomUUID } from 'node:crypto'
import { conflict } from '../../shared/errors/app-error.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import type { Deps } from '../deps.js'
import { changeTeam } from '../gateway/publish.js'
import { aliasNotFound, requireLockedPrompt, versionNotFound } from './missing.js'
import {
  deletePromptAliasRow,
  findServedVersionNumber,
  type PromptAliasRow,
  upsertPromptAlias,
} from './queries.js'
import { findVersionByNumber } from './version-queries.js'

/**
 * Points an alias at a version and makes it when it is new. Promoting what the alias serves already is recorded too:
 * somebody confirmed it.
 *
 * @throws AppError NOT_FOUND for the prompt or the version.
 */
export async function promoteAlias(
  deps: Deps,
  actor: Principal,
  promptId: string,
  { alias, versionNumber }: { alias: string; versionNumber: number },
): Promise<PromptAliasRow> {
  const { teamId } = actor
  return changeTeam(deps, teamId, async tx => {
    const prompt = await requireLockedPrompt(tx, teamId, promptId)
    const version = await findVersionByNumber(tx, teamId, prompt.id, versionNumber)
    if (version === null) throw versionNotFound(versionNumber)
    const fromVersionNumber = await findServedVersionNumber(tx, teamId, prompt.id, alias)
    const nowMs = deps.now()
    const row = { alias, versionId: version.id, updatedAt: new Date(nowMs) }
    const id = await upsertPromptAlias(tx, teamId, prompt.id, { ...row, id: randomUUID() })
    const promoted = { alias, versionNumber, fromVersionNumber }
    await record(tx, actor, nowMs, 'prompt_alias_promoted', promoted, { promptId: prompt.id })
    return { ...row, id, versionNumber }
  })
}

/**
 * Removes an alias. Its tool bindings stay: they are keyed by its name, which needs no version to have them, and have
 * their own way to be removed.
 *
 * @throws AppError NOT_FOUND; CONFLICT for production (spec 4, section 9).
 */
export async function removeAlias(
  deps: Deps,
  actor: Principal,
  promptId: string,
  alias: string,
): Promise<void> {
  const { teamId } = actor
  await changeTeam(deps, teamId, async tx => {
    const prompt = await requireLockedPrompt(tx, teamId, promptId)
    if (alias === 'production') throw conflict("The alias 'production' cannot be deleted.")
    const fromVersionNumber = await findServedVersionNumber(tx, teamId, prompt.id, alias)
    if (fromVersionNumber === null) throw aliasNotFound(alias)
    await deletePromptAliasRow(tx, teamId, prompt.id, alias)
    const removed = { alias, versionNumber: null, fromVersionNumber }
    await record(tx, actor, deps.now(), 'prompt_alias_promoted', removed, { promptId: prompt.id })
  })
}
