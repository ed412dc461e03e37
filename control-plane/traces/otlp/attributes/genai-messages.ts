import { isObject } from '../../../../shared/json/is-object.js'

type Fields = Record<string, unknown>

/**
 * GenAI messages (`{ role, parts: [{ type, ... }], finish_reason? }`) in the form of the completions API, which is how a
 * gateway span's payload has them. What has no such form stays as it came.
 *
 * @param system the parts of `gen_ai.system_instructions`, or null.
 */
export function genAiMessages(system: unknown, messages: unknown): unknown {
  const before = system === null ? [] : [{ role: 'system', content: contentOf(system) }]
  if (messages === null) return before
  if (!Array.isArray(messages)) return before.length === 0 ? messages : [...before, messages]
  return [...before, ...messages.flatMap(message => (isObject(message) ? spread(message) : [message]))]
}

/** Several tool results in one message are a message each. */
function spread(message: Fields): unknown[] {
  const { parts, ...rest } = message
  if (!Array.isArray(parts)) return [message]
  const calls = parts.filter(part => isPart(part, 'tool_call'))
  const results = parts.filter(part => isPart(part, 'tool_call_response'))
  const others = parts.filter(part => !calls.includes(part) && !results.includes(part))
  const answers = results.map(part => ({
    role: 'tool',
    tool_call_id: part.id ?? null,
    content: textOf(part.response ?? part.result ?? null),
  }))
  if (others.length === 0 && calls.length === 0 && answers.length > 0) return answers
  const whole: Fields = { ...rest, content: others.length === 0 ? null : contentOf(others) }
  if (calls.length > 0) whole.tool_calls = calls.map(toolCallOf)
  return [whole, ...answers]
}

const isPart = (part: unknown, type: string): part is Fields => isObject(part) && part.type === type

const toolCallOf = (part: Fields) => ({
  id: part.id ?? null,
  type: 'function',
  function: { name: part.name ?? null, arguments: textOf(part.arguments ?? {}) },
})

/** Text parts alone are one text. */
function contentOf(parts: unknown): unknown {
  if (!Array.isArray(parts)) return parts
  const texts = parts.map(part =>
    isPart(part, 'text') && typeof part.content === 'string' ? part.content : null,
  )
  if (texts.every(text => text !== null)) return texts.join('\n')
  return parts.map(part =>
    isPart(part, 'text') && typeof part.content === 'string' ? { type: 'text', text: part.content } : part,
  )
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
