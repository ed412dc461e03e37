import type { CachedAnswer } from '../cache/response-cache.js'
import type { Deps } from '../deps.js'
import type { Exchange } from '../http/exchange.js'
import { asList, asObject } from '../providers/wire-values.js'
import { NOTHING, type Recorded } from './record.js'
import { plainHeaders, streamHeaders } from './reply.js'
import { settleCall } from './settle.js'

/** Answers from the response cache: costs nothing, and is a stream when one was asked for (spec 4, section 5). */
export function replyFromCache(exchange: Exchange, call: Recorded, answer: CachedAnswer, deps: Deps): void {
  const { finishReason, completion } = answer
  const outcome = {
    ...NOTHING,
    status: 'ok' as const,
    cached: true,
    finishReason,
    completion: () => completion,
  }
  settleCall(call, outcome, deps, () => {
    const { stream, wantsUsage } = call.admission.target.call
    if (!stream) {
      exchange.reply(200, plainHeaders(call, 'hit', 0), JSON.stringify(completion))
      return
    }
    exchange.startStream(200, streamHeaders(call, 'hit'))
    exchange.write(asStream(completion, wantsUsage))
    exchange.end()
  })
}

/** A whole completion as the frames that a provider would have streamed. Its choices may be anything. */
export function asStream(completion: Record<string, unknown>, wantsUsage: boolean): string {
  const { id, created, model } = completion
  const chunk = (choices: unknown[], usage?: unknown) =>
    `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created, model, choices, ...(usage !== undefined && { usage }) })}\n\n`
  const frames: string[] = []
  for (const choice of asList(completion.choices)) {
    const { index, message, finish_reason } = asObject(choice)
    const { tool_calls: toolCalls, ...rest } = asObject(message)
    const delta = Array.isArray(toolCalls) ? { ...rest, tool_calls: toolCalls.map(indexed) } : rest
    frames.push(chunk([{ index, delta, finish_reason: null }]))
    frames.push(chunk([{ index, delta: {}, finish_reason }]))
  }
  if (wantsUsage && completion.usage !== undefined) frames.push(chunk([], completion.usage))
  frames.push('data: [DONE]\n\n')
  return frames.join('')
}

const indexed = (toolCall: unknown, index: number) => ({ index, ...asObject(toolCall) })
