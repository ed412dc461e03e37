import { isObject } from '../../../../shared/json/is-object.js'
import { parsedJson } from './vocabulary.js'

type Fields = Record<string, unknown>

/**
 * Messages in the form of the completions API, which is how a gateway span's payload has them: `content` as text or as a
 * list of parts, `tool_calls` with their function. A field of no known meaning keeps its name.
 */
export const messagesOf = (list: readonly unknown[] | null): unknown[] | null =>
  list === null ? null : list.map(item => (isObject(item) ? messageOf(item) : item))

function messageOf(fields: Fields): Fields {
  const { contents, tool_calls, function_call_name, function_call_arguments_json, ...message } = fields
  if (Array.isArray(contents)) {
    const parts = contents.map(part => (isObject(part) ? partOf(part) : part))
    // Both are seldom there; then neither may hide the other.
    if (message.content === undefined) message.content = parts
    else message.contents = parts
  } else if (contents !== undefined) message.contents = contents
  if (Array.isArray(tool_calls)) {
    message.tool_calls = tool_calls.map(call => (isObject(call) ? toolCallOf(call) : call))
  } else if (tool_calls !== undefined) message.tool_calls = tool_calls
  if (function_call_name !== undefined || function_call_arguments_json !== undefined) {
    message.function_call = {
      name: function_call_name ?? null,
      arguments: function_call_arguments_json ?? '',
    }
  }
  return message
}

/** `{ type: 'image', image: { image: { url } } }` is `{ type: 'image_url', image_url: { url } }` there. */
function partOf(part: Fields): Fields {
  const { image, ...rest } = part
  if (!isObject(image)) return part
  const inner = isObject(image.image) ? image.image : image
  return typeof inner.url === 'string' ? { ...rest, type: 'image_url', image_url: { url: inner.url } } : part
}

const toolCallOf = (call: Fields): Fields =>
  isObject(call.function) && call.type === undefined ? { ...call, type: 'function' } : call

/** `{ id?, content, score, metadata }` each, in order; metadata travels as JSON text (spec 2, OTLP rule 4). */
export const documentsOf = (list: readonly unknown[] | null): unknown[] | null =>
  list === null
    ? null
    : list.map(item =>
        isObject(item) && item.metadata !== undefined
          ? { ...item, metadata: parsedJson(item.metadata) }
          : item,
      )
