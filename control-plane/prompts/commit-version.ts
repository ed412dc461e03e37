import { randomUUID } from 'node:crypto'
import type { PromptMessage } from '../../shared/directory/records.js'
import { validation } from '../../shared/errors/app-error.js'
import { compilePrompt } from '../../shared/templates/render.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import type { Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { changeTeam } from '../gateway/publish.js'
import { requireLockedPrompt } from './missing.js'
import { listPromptAliasRows, type PromptAliasRow, upsertPromptAlias } from './queries.js'
import {
  type FullPromptVersionRow,
  findLatestVersionNumber,
  findModelId,
  insertPromptVersion,
} from './version-queries.js'

export interface VersionInput {
  messages: PromptMessage[]
  /** publicName; null: no default model. */
  model: string | null
}

export interface CommittedVersion extends FullPromptVersionRow {
  /** Of the first commit alone: production and staging, which it made. */
  aliases?: PromptAliasRow[]
}

/**
 * Commits a version: its variables derived from its messages, its number the next one of the prompt. The first one is
 * served by production and staging; later ones move no alias (spec 1, states and transitions).
 *
 * @throws AppError TEMPLATE_PARSE_ERROR, NOT_FOUND, VALIDATION_ERROR for a model that is not registered.
 */
export async function commitVersion(
  deps: Deps,
  actor: Principal,
  promptId: string,
  input: VersionInput,
): Promise<CommittedVersion> {
  // Before the transaction: nobody waits for the prompt's lock while a long template is read.
  const variables = [...compilePrompt(input.messages).variables]
  const { teamId } = actor
  return changeTeam(deps, teamId, async tx => {
    const prompt = await requireLockedPrompt(tx, teamId, promptId)
    const modelId = await registeredModel(tx, teamId, input.model)
    const versionNumber = 1 + (await findLatestVersionNumber(tx, teamId, prompt.id))
    const nowMs = deps.now()
    const version = {
      id: randomUUID(),
      promptId: prompt.id,
      versionNumber,
      messages: input.messages,
      variables,
      createdBy: actor.userId,
      createdAt: new Date(nowMs),
    }
    await insertPromptVersion(tx, teamId, { ...version, modelId })
    const committed = { versionNumber, versionId: version.id }
    await record(tx, actor, nowMs, 'version_committed', committed, { promptId: prompt.id })
    const shown = { ...version, model: input.model }
    return versionNumber === 1 ? { ...shown, aliases: await firstAliases(tx, teamId, version) } : shown
  })
}

async function registeredModel(tx: Sql, teamId: string, publicName: string | null): Promise<string | null> {
  if (publicName === null) return null
  const modelId = await findModelId(tx, teamId, publicName)
  // The text of a completion that asks for it.
  if (modelId === null)
    throw validation(`Model '${publicName}' is not registered. Add it under Gateway → Models.`)
  return modelId
}

async function firstAliases(
  tx: Sql,
  teamId: string,
  version: { id: string; promptId: string; createdAt: Date },
): Promise<PromptAliasRow[]> {
  const at = { versionId: version.id, updatedAt: version.createdAt }
  for (const alias of ['production', 'staging']) {
    await upsertPromptAlias(tx, teamId, version.promptId, { ...at, alias, id: randomUUID() })
  }
  return listPromptAliasRows(tx, teamId, version.promptId)
}
