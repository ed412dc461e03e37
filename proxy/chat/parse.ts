import { isUtf8 } from 'node:buffer'
import { AppError, notFound, validation } from '../../shared/errors/app-error.js'
import type { ChatMessage, ChatRequest, RawBody } from '../providers/adapter.js'
import { spliceable } from './scan.js'

/** Spec 4, section 2: completions take 10 MB. */
export const BODY_LIMIT_BYTES = 10 * 1024 * 1024

/** Fields that the gateway owns; they never reach a provider (spec 4, section 5). */
const OWNED = ['prompt', 'tool_refs', 'prompt_version_id', 'variables', 'trace', 'span'] as const

/** A request body, checked, with the gateway's own fields taken out. */
export interface ChatCall {
  /** Always given: stored prompts, which could choose it, are refused before. */
  model: string
  request: ChatRequest
  raw: RawBody | null
  stream: boolean
  /** The client asked for `stream_options.include_usage`. */
  wantsUsage: boolean
  /** Output tokens asked for at most: `max_tokens`, else `max_completion_tokens`, else null. */
  maxTokens: number | null
  choices: number
  bodyBytes: number
  /** Still unchecked: a wrong type inside is dropped and listed, never fatal (see trace-context.ts). */
  trace: unknown
  span: unknown
}

/** @throws AppError VALIDATION_ERROR, with `Malformed JSON body: <detail>` when the body is not JSON (spec 4, section 2). */
export function parseCall(bytes: Buffer): ChatCall {
  const body = parseObject(bytes)
  refuseStoredReferences(body)
  const model = checkModel(body.model)
  const messages = checkMessages(body.messages)
  const stream = checkOptional(body, 'stream', 'boolean') === true
  const streamOptions = checkOptional(body, 'stream_options', 'object') as
    | ChatRequest['stream_options']
    | null

  const owned = OWNED.some(name => body[name] !== undefined)
  const { trace, span } = body
  const request = (owned ? withoutOwned(body) : body) as ChatRequest
  return {
    model,
    request,
    raw: owned ? null : rawBody(bytes, body, messages, streamOptions !== null),
    stream,
    wantsUsage: streamOptions?.include_usage === true,
    maxTokens: positiveInteger(body, 'max_tokens') ?? positiveInteger(body, 'max_completion_tokens'),
    choices: positiveInteger(body, 'n') ?? 1,
    bodyBytes: bytes.length,
    trace,
    span,
  }
}

type Body = Record<string, unknown>

function parseObject(bytes: Buffer): Body {
  // A replacement character written for a broken byte would make what we checked differ from what we forward.
  if (!isUtf8(bytes)) throw validation('Malformed JSON body: the body is not UTF-8')
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw new AppError('VALIDATION_ERROR', `Malformed JSON body: ${(error as Error).message}`)
  }
  if (typeName(value) !== 'object') throw validation(`Expected object, received ${typeName(value)}`)
  return value as Body
}

/** Stored prompts and tools: a reference to one that does not exist answers like any missing resource. */
function refuseStoredReferences(body: Body): void {
  const { prompt, tool_refs: toolRefs, prompt_version_id: versionId } = body
  if (prompt !== undefined && prompt !== null) {
    if (typeName(prompt) !== 'object') throw validation(`Expected object, received ${typeName(prompt)}`)
    if (body.messages !== undefined) throw validation('Provide either prompt or messages, not both.')
    throw notFound('Prompt')
  }
  if (toolRefs !== undefined && toolRefs !== null) {
    if (!Array.isArray(toolRefs)) throw validation(`Expected array, received ${typeName(toolRefs)}`)
    if (toolRefs.length > 0) throw notFound('Tool')
  }
  if (versionId !== undefined && versionId !== null) {
    throw validation(`prompt_version_id '${String(versionId)}' is not a prompt version in this team.`)
  }
}

function checkModel(model: unknown): string {
  if (model === undefined || model === null) throw validation('Required')
  if (typeof model !== 'string') throw validation(`Expected string, received ${typeName(model)}`)
  return model
}

function checkMessages(messages: unknown): ChatMessage[] {
  if (messages === undefined) throw validation('Required')
  if (!Array.isArray(messages)) throw validation(`Expected array, received ${typeName(messages)}`)
  if (messages.length === 0) throw validation('Array must contain at least 1 element(s)')
  for (let index = 0; index < messages.length; index++) checkMessage(messages[index], index)
  return messages as ChatMessage[]
}

function checkMessage(message: unknown, index: number): void {
  if (typeName(message) !== 'object')
    throw validation(`messages.${index}: Expected object, received ${typeName(message)}`)
  const { role, cache_control: marker } = message as ChatMessage
  if (role === undefined) throw validation(`messages.${index}.role: Required`)
  if (typeof role !== 'string')
    throw validation(`messages.${index}.role: Expected string, received ${typeName(role)}`)
  if (marker === undefined || marker === null) return
  if (typeName(marker) !== 'object' || marker.type !== 'ephemeral') {
    throw validation(`messages.${index}: cache_control.type must be 'ephemeral'`)
  }
}

/** @returns the value, or null when it is absent or null, which OpenAI's clients send for "unset". */
function checkOptional(body: Body, name: string, type: 'boolean' | 'object'): unknown {
  const value = body[name]
  if (value === undefined || value === null) return null
  if (typeName(value) !== type) throw validation(`Expected ${type}, received ${typeName(value)}`)
  return value
}

function positiveInteger(body: Body, name: string): number | null {
  const value = body[name]
  if (value === undefined || value === null) return null
  if (typeof value !== 'number') throw validation(`Expected number, received ${typeName(value)}`)
  if (!Number.isInteger(value)) throw validation('Expected integer, received float')
  if (value < 1) throw validation('Number must be greater than or equal to 1')
  return value
}

function withoutOwned(body: Body): Body {
  const request: Body = {}
  for (const [name, value] of Object.entries(body)) {
    if (!(OWNED as readonly string[]).includes(name)) request[name] = value
  }
  return request
}

function rawBody(
  bytes: Buffer,
  body: Body,
  messages: ChatMessage[],
  hasStreamOptions: boolean,
): RawBody | null {
  const top = spliceable(bytes, Object.keys(body).length)
  if (top === null) return null
  return {
    bytes,
    modelStart: top.modelStart,
    modelEnd: top.modelEnd,
    insertAt: top.insertAt,
    hasStreamOptions: hasStreamOptions || 'stream_options' in body,
    mayHaveCacheControl: messages.some(message => message.cache_control !== undefined),
  }
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}
