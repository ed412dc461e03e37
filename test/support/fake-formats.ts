import type { Fault } from './fake-fault.js'

/** What the fake provider answers, before it is put into a vendor's form. */
export interface FakeAnswer {
  id: string
  model: string
  /** One piece is one token and one chunk of a stream. */
  pieces: string[]
  tool: { name: string; input: Record<string, unknown> } | null
  promptTokens: number
  cachedTokens: number
  completionTokens: number
  /** Stopped by the caller's cap. */
  cutShort: boolean
  choices: number
  wantsUsage: boolean
}

/** A piece of a stream and the output tokens that it carries. */
export interface Frame {
  text: string
  tokens: number
}

export interface Format {
  plain(answer: FakeAnswer, fault: Fault): unknown
  frames(answer: FakeAnswer, fault: Fault): Frame[]
  error(status: number, message: string): unknown
}

const CREATED = 1_760_000_000
const joined = (answer: FakeAnswer) => answer.pieces.join('')

function openAiUsage({ promptTokens, completionTokens, cachedTokens }: FakeAnswer) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  }
}

const openAiReason = (answer: FakeAnswer) =>
  answer.tool !== null ? 'tool_calls' : answer.cutShort ? 'length' : 'stop'

const openAiToolCall = (answer: FakeAnswer, tool: NonNullable<FakeAnswer['tool']>) => ({
  id: `call_${answer.id.slice(-12)}`,
  type: 'function',
  function: { name: tool.name, arguments: JSON.stringify(tool.input) },
})

const openai: Format = {
  plain(answer, fault) {
    const message = {
      role: 'assistant',
      content: answer.tool === null ? joined(answer) : null,
      refusal: null,
      ...(answer.tool !== null && { tool_calls: [openAiToolCall(answer, answer.tool)] }),
    }
    const choice = { message, logprobs: null, finish_reason: openAiReason(answer) }
    return {
      id: answer.id,
      object: 'chat.completion',
      created: CREATED,
      model: answer.model,
      choices: Array.from({ length: answer.choices }, (_, index) => ({ index, ...choice })),
      ...(!fault.noUsage && { usage: openAiUsage(answer) }),
      service_tier: 'default',
      system_fingerprint: 'fp_fake',
    }
  },

  frames(answer, fault) {
    const head = {
      id: answer.id,
      object: 'chat.completion.chunk',
      created: CREATED,
      model: answer.model,
      service_tier: 'default',
      system_fingerprint: 'fp_fake',
    }
    const frames: Frame[] = []
    const asked = answer.wantsUsage && !fault.noUsage
    const chunk = (index: number, delta: unknown, reason: string | null, tokens: number, extra = {}) => {
      const choices = [{ index, delta, logprobs: null, finish_reason: reason }]
      const text = JSON.stringify({ ...head, choices, ...(asked && { usage: null }), ...extra })
      frames.push({ text: `data: ${text}\n\n`, tokens })
    }
    for (let index = 0; index < answer.choices; index++) {
      chunk(index, { role: 'assistant', content: answer.tool === null ? '' : null, refusal: null }, null, 0)
      if (answer.tool !== null) {
        const call = openAiToolCall(answer, answer.tool)
        const { arguments: text, name } = call.function
        const opening = { index: 0, id: call.id, type: 'function', function: { name, arguments: '' } }
        chunk(index, { tool_calls: [opening] }, null, 1)
        for (const piece of halves(text)) {
          chunk(index, { tool_calls: [{ index: 0, function: { arguments: piece } }] }, null, 1)
        }
      } else for (const piece of answer.pieces) chunk(index, { content: piece }, null, 1)
      const usage = openAiUsage(answer)
      chunk(index, {}, openAiReason(answer), 0, fault.usageOnLast ? { usage } : {})
    }
    if (asked && !fault.usageOnLast) {
      const text = JSON.stringify({ ...head, choices: [], usage: openAiUsage(answer) })
      frames.push({ text: `data: ${text}\n\n`, tokens: 0 })
    }
    if (!fault.noDone) frames.push({ text: 'data: [DONE]\n\n', tokens: 0 })
    return frames
  },

  error: (status, message) => ({
    error: { message, type: openAiTypes[status] ?? 'server_error', param: null, code: null },
  }),
}

const openAiTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'invalid_request_error',
  404: 'invalid_request_error',
  429: 'rate_limit_error',
}

const anthropicReason = (answer: FakeAnswer) =>
  answer.tool !== null ? 'tool_use' : answer.cutShort ? 'max_tokens' : 'end_turn'

function anthropicUsage(answer: FakeAnswer, output: number) {
  return {
    input_tokens: answer.promptTokens - answer.cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: answer.cachedTokens,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    output_tokens: output,
    service_tier: 'standard',
  }
}

const anthropic: Format = {
  plain(answer) {
    const block =
      answer.tool === null
        ? { type: 'text', text: joined(answer) }
        : { type: 'tool_use', id: `toolu_${answer.id.slice(-12)}`, ...answer.tool }
    return {
      id: answer.id,
      type: 'message',
      role: 'assistant',
      model: answer.model,
      content: [block],
      stop_reason: anthropicReason(answer),
      stop_sequence: null,
      usage: anthropicUsage(answer, answer.completionTokens),
    }
  },

  frames(answer, fault) {
    const frames: Frame[] = []
    const event = (value: { type: string; [name: string]: unknown }, tokens = 0) =>
      frames.push({ text: `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`, tokens })
    const { id, model } = answer
    const shell = { id, type: 'message', role: 'assistant', model, content: [], stop_reason: null }
    event({ type: 'message_start', message: { ...shell, usage: anthropicUsage(answer, 1) } })
    const block =
      answer.tool === null
        ? { type: 'text', text: '' }
        : { type: 'tool_use', id: `toolu_${id.slice(-12)}`, name: answer.tool.name, input: {} }
    event({ type: 'content_block_start', index: 0, content_block: block })
    event({ type: 'ping' })
    if (answer.tool === null) {
      for (const text of answer.pieces) {
        event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }, 1)
      }
    } else {
      for (const piece of halves(JSON.stringify(answer.tool.input))) {
        const delta = { type: 'input_json_delta', partial_json: piece }
        event({ type: 'content_block_delta', index: 0, delta }, 1)
      }
    }
    event({ type: 'content_block_stop', index: 0 })
    const delta = { stop_reason: anthropicReason(answer), stop_sequence: null }
    event({ type: 'message_delta', delta, usage: anthropicUsage(answer, answer.completionTokens) })
    if (!fault.noDone) event({ type: 'message_stop' })
    return frames
  },

  error: (status, message) => ({
    type: 'error',
    error: { type: anthropicTypes[status] ?? 'api_error', message },
    request_id: 'req_fake',
  }),
}

const anthropicTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

function geminiChunk(answer: FakeAnswer, parts: unknown[], output: number, reason: string | null) {
  const { promptTokens, cachedTokens } = answer
  const content = { role: 'model', parts }
  return {
    candidates: Array.from({ length: answer.choices }, (_, index) => ({
      content,
      ...(reason !== null && { finishReason: reason }),
      index,
    })),
    usageMetadata: {
      promptTokenCount: promptTokens,
      ...(cachedTokens > 0 && { cachedContentTokenCount: cachedTokens }),
      candidatesTokenCount: output,
      totalTokenCount: promptTokens + output,
    },
    modelVersion: answer.model,
    responseId: answer.id,
  }
}

const geminiReason = (answer: FakeAnswer) => (answer.cutShort ? 'MAX_TOKENS' : 'STOP')

const geminiToolPart = ({ name, input }: NonNullable<FakeAnswer['tool']>) => ({
  functionCall: { name, args: input },
  thoughtSignature: 'c2lnbmF0dXJl',
})

const google: Format = {
  plain(answer) {
    const part = answer.tool === null ? { text: joined(answer) } : geminiToolPart(answer.tool)
    return geminiChunk(answer, [part], answer.completionTokens, geminiReason(answer))
  },

  /** Google separates frames with CRLF and says nothing at the end. */
  frames(answer, fault) {
    const parts = answer.tool === null ? answer.pieces.map(text => ({ text })) : [geminiToolPart(answer.tool)]
    return parts.map((part, at) => {
      const isLast = at === parts.length - 1 && !fault.noDone
      const output = isLast ? answer.completionTokens : at + 1
      const value = geminiChunk(answer, [part], output, isLast ? geminiReason(answer) : null)
      return { text: `data: ${JSON.stringify(value)}\r\n\r\n`, tokens: 1 }
    })
  },

  error: (status, message) => ({
    error: { code: status, message, status: googleStatuses[status] ?? 'INTERNAL' },
  }),
}

const googleStatuses: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
}

const halves = (text: string) => [text.slice(0, text.length >> 1), text.slice(text.length >> 1)]

export const formats = { openai, anthropic, google }
