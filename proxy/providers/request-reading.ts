import { validation } from '../../shared/errors/app-error.js'
import type { ChatMessage, ChatRequest } from './adapter.js'
import { asList, asObject, asText, isObject, type Json, parseJson } from './wire-values.js'

/** An OpenAI request as the vendors with a format of their own need to read it. Errors name the field's path. */

/** Members that only OpenAI knows; towards other vendors they are mapped by their adapter or dropped (spec 4, section 9). */
const OPENAI_ONLY = [
  'model messages stream stream_options max_tokens max_completion_tokens stop n user metadata service_tier',
  'tools tool_choice parallel_tool_calls functions function_call response_format reasoning_effort verbosity',
  'temperature top_p seed frequency_penalty presence_penalty logit_bias logprobs top_logprobs',
  'audio modalities moderation prediction store safety_identifier web_search_options',
  'prompt_cache_key prompt_cache_options prompt_cache_retention',
].join(' ')
const openAiOnly = new Set(OPENAI_ONLY.split(' '))

/** What neither OpenAI nor the gateway owns goes through as it is. */
export function passedThrough(request: ChatRequest): Json {
  const rest: Json = {}
  for (const [name, value] of Object.entries(request)) if (!openAiOnly.has(name)) rest[name] = value
  return rest
}

export const isSystem = (message: ChatMessage) => message.role === 'system' || message.role === 'developer'

/** @returns content as parts; a string is one text part, null none. @throws AppError VALIDATION_ERROR for another type. */
export function partsOf(message: ChatMessage, path: string): Json[] {
  const { content } = message
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content)) throw validation(`${path}.content: Expected string or array`)
  return content.map((part, index) => {
    if (typeof part === 'string') return { type: 'text', text: part }
    if (!isObject(part)) throw validation(`${path}.content.${index}: Expected object`)
    return part
  })
}

export interface ToolCall {
  id: string
  name: string
  input: Json
  /** The call as the client sent it, for vendor extensions. */
  raw: Json
}

/** @throws AppError VALIDATION_ERROR for arguments that are not a JSON object; '' is an empty one. */
export function toolCallsOf(message: ChatMessage, path: string): ToolCall[] {
  return asList(message.tool_calls).map((item, index) => {
    const raw = asObject(item)
    const { name, arguments: text } = asObject(raw.function)
    const at = `${path}.tool_calls.${index}`
    if (asText(name) === '') throw validation(`${at}.function.name: Required`)
    return { id: asText(raw.id), name: asText(name), input: argumentsOf(text, at), raw }
  })
}

function argumentsOf(text: unknown, at: string): Json {
  if (text === undefined || text === null || text === '') return {}
  const value = typeof text === 'string' ? parseJson(text) : text
  if (!isObject(value)) throw validation(`${at}.function.arguments: Expected a JSON object`)
  return value
}

export interface Media {
  mediaType: string
  /** Base64. */
  data: string
}

/** @returns null for anything but a base64 data URL. */
export function dataUrl(url: string): Media | null {
  const match = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i.exec(url)
  if (match === null) return null
  return { mediaType: (match[1] ?? '').toLowerCase(), data: url.slice(match[0].length) }
}

/** The address in an `image_url` part: an object with `url`, or the bare string that some clients send. */
export function imageUrl(part: Json, path: string): string {
  const url = typeof part.image_url === 'string' ? part.image_url : asText(asObject(part.image_url).url)
  if (dataUrl(url) === null && !/^https?:\/\//i.test(url)) {
    throw validation(`${path}.image_url.url: Expected a base64 data URL or an http URL`)
  }
  return url
}

export interface Tools {
  functions: { name: string; definition: Json; tool: Json }[]
  /** Tools that are not OpenAI's: the vendor's own kinds, sent as they are. */
  own: Json[]
}

/** @throws AppError VALIDATION_ERROR for OpenAI's `custom` tools, which no other vendor has. */
export function toolsOf(request: ChatRequest, choice: ToolChoice | null): Tools {
  const tools: Tools = { functions: [], own: [] }
  asList(request.tools).forEach((item, index) => {
    const tool = asObject(item)
    if (tool.type === 'custom') throw validation(`tools.${index}: this model takes function tools only`)
    if (!isObject(tool.function)) {
      tools.own.push(tool)
      return
    }
    const name = asText(tool.function.name)
    if (name === '') throw validation(`tools.${index}.function.name: Required`)
    if (choice?.allowed === undefined || choice.allowed.includes(name)) {
      tools.functions.push({ name, definition: tool.function, tool })
    }
  })
  return tools
}

export interface ToolChoice {
  mode: 'auto' | 'required' | 'none' | 'named'
  /** With `named`. */
  name?: string
  /** `allowed_tools`: the others are not offered. */
  allowed?: string[]
}

/** @returns null when the request does not choose. */
export function toolChoiceOf(request: ChatRequest): ToolChoice | null {
  const choice = request.tool_choice
  if (choice === undefined || choice === null) return null
  if (choice === 'auto' || choice === 'required' || choice === 'none') return { mode: choice }
  const { type, function: named, allowed_tools: allowed } = asObject(choice)
  const name = asText(asObject(named).name)
  if (type === 'function' && name !== '') return { mode: 'named', name }
  if (type === 'allowed_tools') {
    const names = asList(asObject(allowed).tools).map(tool => asText(asObject(asObject(tool).function).name))
    return { mode: asObject(allowed).mode === 'required' ? 'required' : 'auto', allowed: names }
  }
  throw validation('tool_choice: Invalid input')
}

/** `stop` as a list, or undefined. */
export function stopsOf(request: ChatRequest): string[] | undefined {
  const { stop } = request
  const stops = typeof stop === 'string' ? [stop] : asList(stop).map(asText)
  const set = stops.filter(text => text !== '')
  return set.length === 0 ? undefined : set
}

/** The client's own cap on output tokens. */
export const outputCapOf = (request: ChatRequest): number | null =>
  request.max_completion_tokens ?? request.max_tokens ?? null
