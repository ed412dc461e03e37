import { isUtf8 } from 'node:buffer'
import { AppError, validation } from '../../shared/errors/app-error.js'
import type { ChatMessage, ChatRequest, RawBody } from '../providers/adapter.js'
import { spliceable, withoutMembers } from './scan.js'
import { readStoredReferences, type StoredReferences, typeName } from './stored-references.js'

/** Spec 4, section 2: completions take 10 MB. */
export const BODY_LIMIT_BYTES = 10 * 1024 * 1024

/** Fields that the gateway owns; they never reach a provider (spec 4, section 5). */
const OWNED = ['prompt', 'tool_refs', 'prompt_version_id', 'variables', 'trace', 'span'] as const

/** A request body, checked, with the gateway's own fields taken out. */
export interface ChatCall {
  /** The public name that the call asks for, or that its stored prompt's version is bound to. */
  model: string
  request: ChatRequest
  raw: RawBody | null
  stream: boolean
  /** The client asked for `stream_options.include_usage`. */
  wantsUsage: boolean
  /** Output tokens asked for at most: the greater of `max_tokens` and `max_completion_tokens`; null without either. */
  maxTokens: number | null
  choices: number
  /** Of what the provider may see: prompt tokens are estimated from it. */
  bodyBytes: number
  /** Still unchecked: a wrong type inside is dropped and listed, never fatal (see trace-context.ts). */
  trace: unknown
  span: unknown
  /** Nothing is left to be resolved. */
  stored: null
  /** The prompt version that the messages were rendered from; null when the call names none. */
  lineage: Lineage | null
}

/** Stamps the charge and the span; the variables are payload (spec 3, prompt_version_id and variables). */
export interface Lineage {
  promptVersionId: string
  variables: Record<string, unknown> | null
}

/** A call that names stored prompts or tools: `references.ts` makes a ChatCall of it. */
export interface StoredCall extends Omit<ChatCall, 'model' | 'stored'> {
  /** Null: the prompt's version chooses. */
  model: string | null
  stored: StoredReferences
}

/** @throws AppError VALIDATION_ERROR, with `Malformed JSON body: <detail>` when the body is not JSON (spec 4, section 2). */
export function parseCall(bytes: Buffer): ChatCall | StoredCall {
  const body = parseObject(bytes)
  const stored = readStoredReferences(body)
  const hasPrompt = stored !== null && stored.prompt !== null
  const model = checkModel(body.model, hasPrompt)
  const messages = hasPrompt ? [] : checkMessages(body.messages)
  const stream = checkOptional(body, 'stream', 'boolean') === true
  const streamOptions = checkOptional(body, 'stream_options', 'object') as
    | ChatRequest['stream_options']
    | null

  const owned = OWNED.some(name => body[name] !== undefined)
  const { trace, span } = body
  const request = (owned ? withoutOwned(body) : body) as ChatRequest
  const forwarded = owned ? withoutMembers(bytes, OWNED) : bytes
  // Without a prompt there is always a model, so that one of the two types holds.
  return {
    model,
    request,
    raw: forwarded && rawBody(forwarded, request, messages, streamOptions !== null),
    stream,
    wantsUsage: streamOptions?.include_usage === true,
    maxTokens: outputCap(body),
    choices: positiveInteger(body, 'n') ?? 1,
    bodyBytes: (forwarded ?? bytes).length,
    trace,
    span,
    stored,
    lineage: null,
  } as ChatCall | StoredCall
}

/**
 * Of what came while a request was written anew: JSON.parse reads any depth, JSON.stringify ends with the stack. That is
 * the client's mistake and no fault of ours.
 */
export const asDepthError = (error: unknown): unknown =>
  error instanceof RangeError ? validation('Malformed JSON body: it is nested too deeply') : error

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

/** @returns null when it is left to the stored prompt. */
function checkModel(model: unknown, hasPrompt: boolean): string | null {
  if (model === undefined || model === null) {
    if (hasPrompt) return null
    throw validation('Required')
  }
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

/** Providers differ in which of the two they follow when both are sent; what is reserved covers either. */
function outputCap(body: Body): number | null {
  const older = positiveInteger(body, 'max_tokens')
  const newer = positiveInteger(body, 'max_completion_tokens')
  return older === null || newer === null ? (older ?? newer) : Math.max(older, newer)
}

/** Not by assignment: a member named `__proto__` would lend the request fields that nothing here has checked. */
const withoutOwned = (body: Body): Body =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !(OWNED as readonly string[]).includes(name)))

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
