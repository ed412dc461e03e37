import { validation } from '../../shared/errors/app-error.js'
import type { ChatMessage, ChatRequest, UpstreamCall } from './adapter.js'
import {
  dataUrl,
  imageUrl,
  isSystem,
  outputCapOf,
  partsOf,
  passedThrough,
  stopsOf,
  toolCallsOf,
  toolChoiceOf,
  toolsOf,
} from './request-reading.js'
import { asList, asObject, asText, isObject, type Json, present } from './wire-values.js'

/** `max_tokens` is required there; without the client's own it is what the reservation assumes (spec 4, section 5). */
const OUTPUT_TOKENS_DEFAULT = 4096

/** @throws AppError VALIDATION_ERROR for what the format cannot hold: audio, custom tools, arguments that are no object. */
export function anthropicBody(call: UpstreamCall): Json {
  const { request } = call
  return {
    ...passedThrough(request),
    ...present({
      model: call.upstreamModel,
      max_tokens: outputCapOf(request) ?? Math.min(call.maxOutputTokens ?? Infinity, OUTPUT_TOKENS_DEFAULT),
      system: systemOf(request),
      messages: turnsOf(request),
      ...toolMembers(request),
      stop_sequences: stopsOf(request),
      // OpenAI's goes to 2, Anthropic's to 1.
      temperature: typeof request.temperature === 'number' ? Math.min(1, request.temperature) : undefined,
      top_p: request.top_p,
      output_config: outputConfig(call),
      metadata: metadataOf(request),
      service_tier: serviceTiers[asText(request.service_tier)],
      stream: call.stream ? true : undefined,
    }),
  }
}

const serviceTiers: Record<string, string> = {
  auto: 'auto',
  default: 'standard_only',
  standard_only: 'standard_only',
}

function metadataOf(request: ChatRequest): Json | undefined {
  const named = asText(request.user) || asText(request.safety_identifier)
  const userId = named || asText(asObject(request.metadata).user_id)
  return userId === '' ? undefined : { user_id: userId }
}

function systemOf(request: ChatRequest): Json[] | undefined {
  const blocks = request.messages.flatMap((message, index) =>
    isSystem(message) ? marked(textBlocks(message, `messages.${index}`), message) : [],
  )
  return blocks.length === 0 ? undefined : blocks
}

interface Turn {
  role: 'user' | 'assistant'
  content: Json[]
}

/** Turns alternate: neighbours of one role become one, all results of an assistant's calls one user turn. */
function turnsOf(request: ChatRequest): Turn[] {
  const turns: Turn[] = []
  request.messages.forEach((message, index) => {
    if (isSystem(message)) return
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const blocks = marked(blocksOf(message, `messages.${index}`), message)
    if (blocks.length === 0) return
    const last = turns.at(-1)
    if (last?.role === role) last.content.push(...blocks)
    else turns.push({ role, content: blocks })
  })
  return turns.map(turn => ({ ...turn, content: resultsFirst(turn.content) }))
}

/** The API wants the results of tools before anything else in their turn. */
const resultsFirst = (blocks: Json[]) => [
  ...blocks.filter(block => block.type === 'tool_result'),
  ...blocks.filter(block => block.type !== 'tool_result'),
]

function blocksOf(message: ChatMessage, path: string): Json[] {
  switch (message.role) {
    case 'user':
      return partsOf(message, path).flatMap((part, index) => blockOf(part, `${path}.content.${index}`))
    case 'assistant':
      return assistantBlocks(message, path)
    case 'tool':
      return [toolResult(message, path)]
    default:
      throw validation(`${path}.role: '${message.role}' is not supported by this model`)
  }
}

/** Thinking comes first, with the signature it was given: the API refuses a tool turn that lost it. */
function assistantBlocks(message: ChatMessage, path: string): Json[] {
  const thinking = asList(message.thinking_blocks)
    .filter(isObject)
    .filter(block => block.type === 'redacted_thinking' || asText(block.signature) !== '')
  const calls = toolCallsOf(message, path).map(({ id, name, input }) => ({
    type: 'tool_use',
    id,
    name,
    input,
  }))
  const refusal = asText(message.refusal)
  const text = textBlocks(message, path)
  return [...thinking, ...text, ...(refusal === '' ? [] : [{ type: 'text', text: refusal }]), ...calls]
}

function toolResult(message: ChatMessage, path: string): Json {
  const id = asText(message.tool_call_id)
  if (id === '') throw validation(`${path}.tool_call_id: Required`)
  const content =
    typeof message.content === 'string'
      ? message.content
      : partsOf(message, path).flatMap((part, index) => blockOf(part, `${path}.content.${index}`))
  return present({ type: 'tool_result', tool_use_id: id, content, is_error: message.is_error })
}

/** Text only: what a system or assistant message may hold. The API refuses empty text blocks. */
function textBlocks(message: ChatMessage, path: string): Json[] {
  return partsOf(message, path).flatMap(part => {
    const text = asText(part.text) || asText(part.refusal)
    return text === '' ? [] : [present({ type: 'text', text, cache_control: part.cache_control })]
  })
}

function blockOf(part: Json, path: string): Json[] {
  const { cache_control } = part
  switch (part.type) {
    case 'text':
      return asText(part.text) === '' ? [] : [present({ type: 'text', text: part.text, cache_control })]
    case 'image_url': {
      const url = imageUrl(part, path)
      return [present({ type: 'image', source: sourceOf(url), cache_control })]
    }
    case 'file':
      return [present({ type: 'document', ...documentOf(asObject(part.file), path), cache_control })]
    case 'input_audio':
      throw validation(`${path}: this model takes no audio`)
    default:
      // A block in Anthropic's own form, such as `document` or `search_result`.
      return [part]
  }
}

function sourceOf(url: string): Json {
  const media = dataUrl(url)
  if (media === null) return { type: 'url', url }
  return { type: 'base64', media_type: media.mediaType, data: media.data }
}

function documentOf(file: Json, path: string): Json {
  const { file_data: data, file_id: id, filename } = file
  if (typeof id === 'string') return present({ source: { type: 'file', file_id: id }, title: filename })
  if (dataUrl(asText(data)) === null) throw validation(`${path}.file.file_data: Expected a base64 data URL`)
  return present({ source: sourceOf(asText(data)), title: filename })
}

/** A message's cache marker goes on its last block (spec 4, section 5); thinking cannot carry one. */
function marked(blocks: Json[], message: ChatMessage): Json[] {
  const last = blocks.at(-1)
  const marker = message.cache_control ?? null
  if (marker === null || last === undefined || asText(last.type).endsWith('thinking')) return blocks
  return [...blocks.slice(0, -1), { ...last, cache_control: marker }]
}

function toolMembers(request: ChatRequest): Json {
  const choice = toolChoiceOf(request)
  const { functions, own } = toolsOf(request, choice)
  const tools = functions.map(({ name, definition, tool }) =>
    present({
      name,
      description: definition.description,
      input_schema: definition.parameters ?? { type: 'object', properties: {} },
      strict: definition.strict === true ? true : undefined,
      cache_control: tool.cache_control ?? definition.cache_control,
    }),
  )
  if (tools.length + own.length === 0) return {}
  return { tools: [...tools, ...own], tool_choice: toolChoice(request) }
}

function toolChoice(request: ChatRequest): Json | undefined {
  const choice = toolChoiceOf(request)
  if (choice?.mode === 'none') return { type: 'none' }
  const serial = request.parallel_tool_calls === false ? { disable_parallel_tool_use: true } : {}
  if (choice?.mode === 'named') return { type: 'tool', name: choice.name, ...serial }
  if (choice?.mode === 'required') return { type: 'any', ...serial }
  return choice === null && serial.disable_parallel_tool_use === undefined
    ? undefined
    : { type: 'auto', ...serial }
}

/** Models before 4.5 (Opus) and 4.6 (Sonnet) refuse `effort`: a wish that cannot be met is dropped, not fatal. */
const WITHOUT_EFFORT =
  /claude-(?:instant|[23]|(?:opus|sonnet|haiku)-4(?:-[0-4])?(?:-\d{8}|-latest|@|:|$))|claude-(?:sonnet|haiku)-4-5/

function outputConfig(call: UpstreamCall): Json | undefined {
  const { request, upstreamModel } = call
  const effort = WITHOUT_EFFORT.test(upstreamModel) ? undefined : efforts[asText(request.reasoning_effort)]
  const schema = asObject(asObject(request.response_format).json_schema).schema
  const format = isObject(schema) ? { type: 'json_schema', schema } : undefined
  const config = { ...asObject(request.output_config), ...present({ effort, format }) }
  return Object.keys(config).length === 0 ? undefined : config
}

/** `none` has no equivalent but leaving thinking off, which is the default. */
const efforts: Record<string, string> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'max',
}
