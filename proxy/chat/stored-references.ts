import { HIGHEST_VERSION, LONGEST_NAME } from '../../shared/contract/versions.js'
import type { ToolReference } from '../../shared/directory/records.js'
import { validation } from '../../shared/errors/app-error.js'

/** What a call names of the team's stored prompts and tools (spec 3, completions: prompt, tool_refs, prompt_version_id). */
export interface StoredReferences {
  prompt: { name: string; alias: string; variables: Record<string, unknown> } | null
  tools: ToolReference[]
  /** The version that the client rendered by itself: stamps the records. Null when `prompt` is sent, which wins. */
  promptVersionId: string | null
  /** Stored beside `promptVersionId`, not rendered. */
  variables: Record<string, unknown> | null
}

const DEFAULT_ALIAS = 'production'
/** OpenAI takes 128 tools in a call. */
const MOST_TOOL_REFERENCES = 128

type Body = Record<string, unknown>

/**
 * The gateway's own fields of a body that name stored things; null when it names none, which is almost every call.
 *
 * @throws AppError VALIDATION_ERROR for wrong types, `prompt` beside `messages`, alias and version on one tool.
 */
export function readStoredReferences(body: Body): StoredReferences | null {
  const { prompt, tool_refs: toolRefs, prompt_version_id: versionId } = body
  if (isUnset(prompt) && isUnset(toolRefs) && isUnset(versionId)) return null
  const found = isUnset(prompt) ? null : readPrompt(prompt, body.messages)
  const tools = isUnset(toolRefs) ? [] : readToolReferences(toolRefs)
  const promptVersionId = found !== null || isUnset(versionId) ? null : readText(versionId, '')
  const variables = promptVersionId === null ? null : readObject(body.variables, '')
  if (found === null && tools.length === 0 && promptVersionId === null) return null
  return { prompt: found, tools, promptVersionId, variables }
}

const isUnset = (value: unknown): boolean => value === undefined || value === null

function readPrompt(prompt: unknown, messages: unknown): StoredReferences['prompt'] {
  const fields = readObject(prompt, '') as Body
  if (!isUnset(messages)) throw validation('Provide either prompt or messages, not both.')
  if (isUnset(fields.name)) throw validation('prompt.name: Required')
  return {
    name: readName(fields.name, 'prompt.name: '),
    alias: isUnset(fields.alias) ? DEFAULT_ALIAS : readName(fields.alias, 'prompt.alias: '),
    variables: readObject(fields.variables, 'prompt.variables: ') ?? {},
  }
}

function readToolReferences(toolRefs: unknown): ToolReference[] {
  if (!Array.isArray(toolRefs)) throw validation(`Expected array, received ${typeName(toolRefs)}`)
  if (toolRefs.length > MOST_TOOL_REFERENCES) {
    throw validation(`Array must contain at most ${MOST_TOOL_REFERENCES} element(s)`)
  }
  return toolRefs.map((entry, index) => readToolReference(entry, `tool_refs.${index}`))
}

function readToolReference(entry: unknown, path: string): ToolReference {
  if (entry === null) throw validation(`${path}: Expected object, received null`)
  const { name, alias, version } = readObject(entry, `${path}: `) as Body
  if (isUnset(name)) throw validation(`${path}.name: Required`)
  if (!isUnset(alias) && !isUnset(version)) {
    throw validation(`${path}: Provide either alias or version, not both.`)
  }
  const reference = { name: readName(name, `${path}.name: `) }
  if (!isUnset(version))
    return { ...reference, alias: null, version: readVersion(version, `${path}.version`) }
  return {
    ...reference,
    alias: isUnset(alias) ? DEFAULT_ALIAS : readName(alias, `${path}.alias: `),
    version: null,
  }
}

function readVersion(version: unknown, path: string): number {
  if (typeof version !== 'number') throw validation(`${path}: Expected number, received ${typeName(version)}`)
  if (!Number.isInteger(version)) throw validation(`${path}: Expected integer, received float`)
  if (version < 1) throw validation(`${path}: Number must be greater than or equal to 1`)
  if (version > HIGHEST_VERSION) {
    throw validation(`${path}: Number must be less than or equal to ${HIGHEST_VERSION}`)
  }
  return version
}

/** A longer one names nothing: neither the control plane nor the memory of what was asked has to hold it. */
function readName(value: unknown, prefix: string): string {
  const name = readText(value, prefix)
  if (name.length <= LONGEST_NAME) return name
  throw validation(`${prefix}String must contain at most ${LONGEST_NAME} character(s)`)
}

function readText(value: unknown, prefix: string): string {
  if (typeof value === 'string') return value
  throw validation(`${prefix}Expected string, received ${typeName(value)}`)
}

/** @returns null when it is unset. */
function readObject(value: unknown, prefix: string): Body | null {
  if (isUnset(value)) return null
  if (typeName(value) === 'object') return value as Body
  throw validation(`${prefix}Expected object, received ${typeName(value)}`)
}

export function typeName(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}
