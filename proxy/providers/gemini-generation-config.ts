import type { UpstreamCall } from './adapter.js'
import { outputCapOf, stopsOf } from './request-reading.js'
import { asObject, asText, type Json, present } from './wire-values.js'

/** Sampling, length, format and thinking: what OpenAI has on the request, Google has in `generationConfig`. */
export function generationConfig(call: UpstreamCall): Json | undefined {
  const { request } = call
  const { format, schema } = responseFormat(request.response_format)
  const config = {
    ...asObject(request.generationConfig),
    ...present({
      maxOutputTokens: outputCapOf(request),
      stopSequences: stopsOf(request),
      temperature: request.temperature,
      topP: request.top_p,
      topK: request.top_k,
      candidateCount: request.n,
      seed: request.seed,
      frequencyPenalty: request.frequency_penalty,
      presencePenalty: request.presence_penalty,
      responseLogprobs: request.logprobs,
      logprobs: request.top_logprobs,
      responseMimeType: format,
      responseJsonSchema: schema,
      thinkingConfig: thinkingConfig(call),
    }),
  }
  return Object.keys(config).length === 0 ? undefined : config
}

function responseFormat(wanted: unknown): { format?: string; schema?: unknown } {
  const { type, json_schema: named } = asObject(wanted)
  if (type === 'json_object') return { format: 'application/json' }
  if (type === 'json_schema') return { format: 'application/json', schema: asObject(named).schema }
  return {}
}

/** Gemini 3 takes a level, 2.5 a budget in tokens (the figures of Google's own OpenAI endpoint), earlier ones neither. */
function thinkingConfig(call: UpstreamCall): Json | undefined {
  const effort = asText(call.request.reasoning_effort)
  const own = asObject(asObject(call.request.generationConfig).thinkingConfig)
  const budget = /gemini-2\.5/.test(call.upstreamModel) ? budgets[effort] : undefined
  const level = /gemini-(?:[3-9]|\d\d)/.test(call.upstreamModel) ? levels[effort] : undefined
  const config = { ...own, ...present({ thinkingBudget: budget, thinkingLevel: level }) }
  return Object.keys(config).length === 0 ? undefined : config
}

const budgets: Record<string, number> = {
  none: 0,
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 24_576,
}
/** Thinking cannot be turned off there. */
const levels: Record<string, string> = {
  none: 'low',
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
}
