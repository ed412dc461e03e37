import { isUuid } from '../../shared/contract/common.js'
import type { ToolResolution } from '../../shared/contract/prompts.js'
import type { PromptMessage, ToolDefinition } from '../../shared/directory/records.js'
import { notFound } from '../../shared/errors/app-error.js'
import { isNameable } from '../db/nameable.js'
import type { Sql } from '../db/sql.js'
import { resolveBindings } from '../prompt-tools/resolve-bindings.js'
import { aliasNotFound, versionNotFound } from './missing.js'
import { findServedVersion, listKnownVersionIds } from './version-queries.js'

/** What a reference to a stored prompt stands for as of now; its messages are still templates. */
export interface ResolvedPrompt {
  promptId: string
  promptName: string
  versionId: string
  versionNumber: number
  /** null: the version was chosen by its number alone. */
  alias: string | null
  /** The bound model's publicName. */
  model: string | null
  messages: PromptMessage[]
  variables: string[]
  toolResolutions: ToolResolution[]
  /** What is attached, in the order of the bindings. */
  tools: ToolDefinition[]
}

/** `versionNumber` chooses the version, else `alias` does; `alias` chooses the bindings, else they are the default ones. */
export interface Served {
  alias?: string | undefined
  versionNumber?: number | undefined
}

/**
 * The version and the tools that a reference means, in three statements. Render and the proxy's look-up share it.
 *
 * @param serve neither alias nor number: production.
 * @throws AppError NOT_FOUND `Prompt not found.`, or a text that names the alias or the version.
 */
export async function resolvePrompt(
  sql: Sql,
  teamId: string,
  reference: { promptId: string } | { name: string },
  serve: Served,
): Promise<ResolvedPrompt> {
  const promptId = 'promptId' in reference ? reference.promptId : null
  const name = 'name' in reference ? reference.name : null
  const versionNumber = serve.versionNumber ?? null
  const alias = serve.alias ?? (versionNumber === null ? 'production' : null)
  if (promptId !== null && !isUuid(promptId)) throw notFound('Prompt')
  if (name !== null && !isNameable(name)) throw notFound('Prompt')
  if (alias !== null && !isNameable(alias)) throw aliasNotFound(alias)
  const row = await findServedVersion(sql, teamId, { promptId, name, alias, versionNumber })
  if (row === null) throw notFound('Prompt')
  if (row.version === null)
    throw versionNumber === null ? aliasNotFound(alias ?? '') : versionNotFound(versionNumber)
  const { id: versionId, ...version } = row.version
  const bound = await resolveBindings(sql, teamId, row.promptId, alias)
  return { promptId: row.promptId, promptName: row.promptName, versionId, alias, ...version, ...bound }
}

/** Whether a team has a prompt version; also of a deleted prompt, since history is kept. */
export async function isPromptVersionOf(sql: Sql, teamId: string, versionId: string): Promise<boolean> {
  return (await foreignVersionIds(sql, teamId, [versionId])).length === 0
}

/** Of the given ids those that name no prompt version of the team, each once, in their order; one statement. */
export async function foreignVersionIds(
  sql: Sql,
  teamId: string,
  versionIds: readonly string[],
): Promise<string[]> {
  const wanted = [...new Set(versionIds)]
  const ids = wanted.filter(isUuid)
  const known = new Set(ids.length === 0 ? [] : await listKnownVersionIds(sql, teamId, ids))
  return wanted.filter(id => !known.has(id.toLowerCase()))
}
