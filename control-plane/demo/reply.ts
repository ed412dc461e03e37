import { setTimeout as sleep } from 'node:timers/promises'
import type { DemoAnswer } from './answer.js'
import type { DemoRequest } from './request.js'
import { promptTokens, tokensOf } from './tokens.js'

/** Between chunks: a stream that one can see running, 60 tokens a second. */
const CHUNK_DELAY_MS = 15

/** What both forms of an answer carry. */
export interface Head {
  id: string
  /** Epoch seconds. */
  created: number
  model: string
}

/** A `chat.completion` object. */
export function completion(head: Head, request: DemoRequest, answer: DemoAnswer): object {
  const message = {
    role: 'assistant',
    content: answer.toolCall === null ? answer.tokens.join('') : null,
    refusal: null,
    ...(answer.toolCall !== null && { tool_calls: [toolCall(answer.toolCall)] }),
  }
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: choices(request).map(index => ({
      index,
      message,
      logprobs: null,
      finish_reason: answer.finishReason,
    })),
    usage: usage(request, answer),
  }
}

/** `chat.completion.chunk` frames and `[DONE]`, the choices of `n` side by side as OpenAI sends them. */
export async function* frames(head: Head, request: DemoRequest, answer: DemoAnswer): AsyncGenerator<string> {
  const withUsage = request.stream_options?.include_usage === true
  const frame = (choices: object[], extra: object = withUsage ? { usage: null } : {}) =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...extra })}\n\n`
  const toAll = (delta: object, finish: string | null = null) =>
    choices(request).map(index => frame([{ index, delta, logprobs: null, finish_reason: finish }]))

  yield* toAll({ role: 'assistant', content: answer.toolCall === null ? '' : null, refusal: null })
  for (const delta of deltas(answer)) {
    await sleep(CHUNK_DELAY_MS)
    yield* toAll(delta)
  }
  yield* toAll({}, answer.finishReason)
  if (withUsage) yield frame([], { usage: usage(request, answer) })
  yield 'data: [DONE]\n\n'
}

/** A tool call comes in pieces too: its name first, its arguments a token at a time. */
function deltas({ tokens, toolCall: call }: DemoAnswer): object[] {
  if (call === null) return tokens.map(content => ({ content }))
  const opening = { index: 0, ...toolCall({ ...call, arguments: '' }) }
  const rest = tokensOf(call.arguments).map(piece => ({ index: 0, function: { arguments: piece } }))
  return [opening, ...rest].map(piece => ({ tool_calls: [piece] }))
}

const toolCall = (call: { id: string; name: string; arguments: string }) => ({
  id: call.id,
  type: 'function',
  function: { name: call.name, arguments: call.arguments },
})

const choices = (request: DemoRequest) => Array.from({ length: request.n ?? 1 }, (_, index) => index)

function usage(request: DemoRequest, answer: DemoAnswer) {
  const prompt = promptTokens(request)
  const completed = answer.completionTokens * (request.n ?? 1)
  return {
    prompt_tokens: prompt,
    completion_tokens: completed,
    total_tokens: prompt + completed,
    prompt_tokens_details: { cached_tokens: 0 },
  }
}
