import type { TokenBuckets } from '../../shared/spool/record.js'
import { BrokenAnswer, type Completion } from './adapter.js'
import { answerObject, completionOf, TranslatedCompletion } from './translated.js'
import { usageOf } from './usage.js'
import { asCount, asList, asObject, asText, isObject, type Json } from './wire-values.js'

/** @throws BrokenAnswer when the body is not a message. */
export function anthropicCompletion(body: Buffer): Completion {
  const answer = answerObject(body)
  if (!Array.isArray(answer.content)) throw new BrokenAnswer('it has no content.')
  const blocks = answer.content.filter(isObject)
  const native = asText(answer.stop_reason)
  const reason = stopReason(native)
  const usage = isObject(answer.usage) ? answer.usage : null
  const tokens = usage === null ? null : anthropicBuckets(usage)
  const choice = {
    index: 0,
    message: messageOf(blocks),
    logprobs: null,
    finish_reason: reason,
    native_finish_reason: native,
  }
  const shown = tokens === null ? null : usageOf(tokens, thinkingTokens(usage))
  const value = completionOf(asText(answer.id), asText(answer.model), [choice], shown)
  return new TranslatedCompletion(value, tokens, reason)
}

function messageOf(blocks: Json[]): Json {
  const textOf = (type: string, member: string) =>
    blocks
      .filter(block => block.type === type)
      .map(block => asText(block[member]))
      .join('')
  const calls = blocks.filter(block => block.type === 'tool_use').map(toolCall)
  const thinking = blocks.filter(block => block.type === 'thinking' || block.type === 'redacted_thinking')
  const text = textOf('text', 'text')
  const message: Json = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    refusal: null,
  }
  if (thinking.length > 0) {
    message.reasoning_content = textOf('thinking', 'thinking')
    message.thinking_blocks = thinking
  }
  if (calls.length > 0) message.tool_calls = calls
  return message
}

const toolCall = (block: Json): Json => ({
  id: asText(block.id),
  type: 'function',
  function: { name: asText(block.name), arguments: JSON.stringify(block.input ?? {}) },
})

/** An unknown reason is an end like any other; the vendor's word is beside it. */
export const stopReason = (native: string): string => stopReasons[native] ?? 'stop'

const stopReasons: Record<string, string> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
}

/** `input_tokens` excludes what was read from and written to the cache. @returns null without counts. */
export function anthropicBuckets(usage: Json): TokenBuckets | null {
  const input = asCount(usage.input_tokens)
  const output = asCount(usage.output_tokens)
  if (input === null && output === null) return null
  const perLifetime = Object.values(asObject(usage.cache_creation)).map(count => asCount(count) ?? 0)
  const written = asCount(usage.cache_creation_input_tokens)
  return {
    input: input ?? 0,
    cacheRead: asCount(usage.cache_read_input_tokens) ?? 0,
    cacheWrite: written ?? perLifetime.reduce((sum, count) => sum + count, 0),
    output: output ?? 0,
  }
}

export const thinkingTokens = (usage: Json | null): number | null =>
  asCount(asObject(usage?.output_tokens_details).thinking_tokens)

export const errorText = (value: Json): string =>
  asText(asObject(value.error).message) || asList(value.errors).map(asText).join(' ') || 'it sent an error.'
