import { isUuid } from '../../shared/contract/common.js'
import type { MissingRecord, ToolDefinition } from '../../shared/directory/records.js'
import { AppError, unavailable, validation } from '../../shared/errors/app-error.js'
import { renderPrompt } from '../../shared/templates/render.js'
import { ControlPlaneAway } from '../control-plane-client.js'
import type { Deps } from '../deps.js'
import type { Team } from '../directory/lookup.js'
import type { FoundPrompt, FoundReferences } from '../directory/references.js'
import type { ChatMessage, ChatRequest } from '../providers/adapter.js'
import type { ChatCall, Lineage, StoredCall } from './parse.js'
import { typeName } from './stored-references.js'

/**
 * Puts what a call names in its place: the rendered prompt, its bound tools and the referenced ones (spec 3,
 * completions; spec 4, section 9 Gateway).
 *
 * @throws AppError NOT_FOUND for an unknown prompt, alias, tool or version, VALIDATION_ERROR for a prompt version that is
 *   not the team's, a name that two tools share, or no model; TEMPLATE_RENDER_ERROR; UNAVAILABLE.
 */
export async function resolveReferences(call: StoredCall, team: Team, deps: Deps): Promise<ChatCall> {
  const { prompt, tools, promptVersionId, variables } = call.stored
  if (promptVersionId !== null && !isUuid(promptVersionId)) throw unknownVersion(promptVersionId)
  const found = await find(call, team, deps)
  if (promptVersionId !== null && found.promptVersionKnown === false) throw unknownVersion(promptVersionId)
  const lineage = promptVersionId === null ? null : { promptVersionId, variables }
  const referenced = tools.map((_, index) => present(found.tools[index] ?? { missing: 'Tool not found.' }))
  if (prompt === null) return prepared(call, null, referenced, lineage)
  const version = present(found.prompt ?? { missing: 'Prompt not found.' })
  return prepared(call, version, referenced, {
    promptVersionId: version.versionId,
    variables: prompt.variables,
  })
}

const unknownVersion = (id: string): AppError =>
  validation(`prompt_version_id '${id}' is not a prompt version in this team.`)

async function find({ stored }: StoredCall, team: Team, deps: Deps): Promise<FoundReferences> {
  const { prompt, tools, promptVersionId } = stored
  const named = prompt === null ? null : { name: prompt.name, alias: prompt.alias }
  try {
    return await deps.directory.stored(team, { prompt: named, tools, promptVersionId })
  } catch (error) {
    if (!(error instanceof ControlPlaneAway)) throw error
    throw unavailable('The control plane cannot be reached; try again.', 1, error)
  }
}

function present<T extends object>(found: T | MissingRecord): T {
  if ('missing' in found) throw new AppError('NOT_FOUND', (found as MissingRecord).missing)
  return found as T
}

/** @param version of the stored prompt; null: the messages are the call's own. */
function prepared(
  call: StoredCall,
  version: FoundPrompt | null,
  referenced: ToolDefinition[],
  lineage: Lineage | null,
): ChatCall {
  const { stored, ...rest } = call
  const request: ChatRequest = { ...call.request }
  let addedBytes = 0
  if (version !== null) {
    const rendered = renderPrompt(version.compiled, stored.prompt?.variables ?? {})
    request.messages = rendered as ChatMessage[]
    for (const { content } of rendered) addedBytes += Buffer.byteLength(content)
  }
  const stands = [...(version?.tools ?? []), ...referenced]
  if (stands.length > 0) {
    request.tools = merged(stands, call.request.tools)
    for (const definition of stands) addedBytes += bytesOf(definition)
  }
  const isAsSent = version === null && stands.length === 0
  return {
    ...rest,
    request,
    raw: isAsSent ? call.raw : null,
    model: chosenModel(call, version),
    bodyBytes: call.bodyBytes + addedBytes,
    stored: null,
    lineage,
  }
}

/** Definitions are remembered for as long as their references, so each is measured once. */
const measured = new WeakMap<ToolDefinition, number>()

function bytesOf(definition: ToolDefinition): number {
  const known = measured.get(definition)
  if (known !== undefined) return known
  const bytes = Buffer.byteLength(JSON.stringify(definition))
  measured.set(definition, bytes)
  return bytes
}

/** An explicit model always wins (spec 3, completions). */
function chosenModel(call: StoredCall, version: FoundPrompt | null): string {
  const model = call.model ?? version?.model ?? null
  if (model !== null) return model
  const number = version?.versionNumber
  throw validation(
    `Required: the call names no model, and version ${number} of the prompt has no default model.`,
  )
}

/** Bound and referenced tools first, then the call's own; a name stands for one tool. */
function merged(stored: ToolDefinition[], inline: unknown): unknown[] {
  if (inline !== undefined && inline !== null && !Array.isArray(inline)) {
    throw validation(`Expected array, received ${typeName(inline)}`)
  }
  const tools: unknown[] = [...stored, ...((inline as unknown[] | undefined) ?? [])]
  const names = new Set<unknown>()
  for (const tool of tools) {
    const name = (tool as { function?: { name?: unknown } } | null)?.function?.name
    if (typeof name !== 'string') continue
    if (names.has(name)) throw validation(`Tool name '${name}' is given more than once.`)
    names.add(name)
  }
  return tools
}
