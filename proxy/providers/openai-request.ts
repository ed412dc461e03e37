import { jsonString } from '../json-string.js'
import type { ChatMessage, ChatRequest, RawBody, UpstreamCall, UpstreamRequest } from './adapter.js'
import { asObject, type Json, pathUnder } from './wire-values.js'

/**
 * What happens to `cache_control` of a message: OpenAI's own models know no such member; routers in front of Anthropic
 * take it on a content block (spec 4, section 5).
 */
export type CacheMarkers = 'drop' | 'blocks'

const ASK_FOR_USAGE = '"stream_options":{"include_usage":true},'

/** `POST {base}/chat/completions`. The client's bytes are sent as they are but for the model, wherever that can be. */
export function openAiRequest(call: UpstreamCall, markers: CacheMarkers): UpstreamRequest {
  const { raw } = call
  return {
    path: pathUnder(call.baseUrl, '/chat/completions'),
    headers: ['authorization', `Bearer ${call.apiKey}`, 'content-type', 'application/json'],
    body: raw !== null && maySplice(call, raw) ? spliced(call, raw) : rebuilt(call, markers),
  }
}

/** Usage must be asked for, by insertion only when the client sent no `stream_options` of its own; markers must move. */
function maySplice(call: UpstreamCall, raw: RawBody): boolean {
  if (raw.mayHaveCacheControl) return false
  return !call.stream || call.wantsUsage || !raw.hasStreamOptions
}

function spliced(call: UpstreamCall, raw: RawBody): Buffer {
  const { bytes, insertAt, modelStart, modelEnd } = raw
  const model = jsonString(call.upstreamModel)
  const hasModel = modelEnd > modelStart
  const ask = call.stream && !raw.hasStreamOptions ? ASK_FOR_USAGE : ''
  const inserted = hasModel ? ask : `${ask}"model":${model},`
  const from = hasModel ? modelStart : insertAt
  const to = hasModel ? modelEnd : insertAt
  const replaced = hasModel ? model : ''

  // Every inserted character but those of an exotic model name is one byte.
  const replacedBytes = Buffer.byteLength(replaced)
  const insertedBytes = Buffer.byteLength(inserted)
  const body = Buffer.allocUnsafe(bytes.length - (to - from) + replacedBytes + insertedBytes)
  let at = 0
  if (insertedBytes > 0) {
    at = bytes.copy(body, 0, 0, insertAt)
    at += body.write(inserted, at)
  }
  at += bytes.copy(body, at, at === 0 ? 0 : insertAt, from)
  if (replacedBytes > 0) at += body.write(replaced, at)
  bytes.copy(body, at, to)
  return body
}

function rebuilt(call: UpstreamCall, markers: CacheMarkers): Buffer {
  const body: ChatRequest = {
    ...call.request,
    model: call.upstreamModel,
    messages: call.request.messages.map(message => withMarker(message, markers)),
  }
  if (call.stream) body.stream_options = { ...asObject(call.request.stream_options), include_usage: true }
  return Buffer.from(JSON.stringify(body))
}

function withMarker(message: ChatMessage, markers: CacheMarkers): ChatMessage {
  if (message.cache_control === undefined) return message
  const { cache_control: marker, ...plain } = message
  if (markers === 'drop' || marker === null) return plain
  return { ...plain, content: markedContent(message.content, marker) }
}

/** The marker on the last block. Content that has no block, or an empty one, cannot be cached: the marker is dropped. */
function markedContent(content: unknown, marker: Json): unknown {
  if (typeof content === 'string' && content !== '') {
    return [{ type: 'text', text: content, cache_control: marker }]
  }
  if (!Array.isArray(content) || content.length === 0) return content
  return [...content.slice(0, -1), { ...asObject(content.at(-1)), cache_control: marker }]
}
