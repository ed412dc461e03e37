import type { Span, TraceRow } from '../../shared/contract/traces.js'
import { usdFromNano } from '../../shared/money/nano.js'
import type { StoredSpan, StoredTrace } from './queries.js'

/** A trace as the list and the sessions show it (spec 2, trace list row). */
export const traceRowOf = (trace: StoredTrace): TraceRow => ({
  id: trace.id,
  name: trace.name,
  sessionId: trace.sessionId,
  status: trace.status,
  startedAt: trace.startedAt.toISOString(),
  endedAt: trace.endedAt?.toISOString() ?? null,
  spanCount: trace.spanCount,
  totalCostUsd: usdOrNull(trace.totalCostNano),
  totalTokens: trace.totalTokens,
  durationMs: trace.durationMs,
  tags: trace.tags,
  hasWarning: trace.warningCount > 0,
})

/** A span as GET /traces/:id shows it; what the JSON columns hold is the caller's, as it came. */
export const spanOf = (span: StoredSpan): Span => ({
  spanId: span.spanId,
  parentSpanId: span.parentSpanId,
  name: span.name,
  kind: span.kind,
  status: span.status,
  startTime: span.startTime.toISOString(),
  endTime: span.endTime?.toISOString() ?? null,
  durationMs: span.durationMs,
  model: span.model,
  provider: span.provider,
  usage: usageOf(span),
  costUsd: usdOrNull(span.costNano),
  promptVersionId: span.promptVersionId,
  errorType: span.errorType,
  errorCode: span.errorCode,
  attributes: jsonObject(span.attributes),
  payload: payloadOf(span),
})

function usageOf({ promptTokens, completionTokens, totalTokens }: StoredSpan): Span['usage'] {
  if (promptTokens === null && completionTokens === null && totalTokens === null) return null
  const prompt = promptTokens ?? 0
  const completion = completionTokens ?? 0
  return {
    promptTokens: prompt,
    completionTokens: completion,
    totalTokens: totalTokens ?? prompt + completion,
  }
}

function payloadOf({ input, output, variables }: StoredSpan): Span['payload'] {
  if (input === null && output === null && variables === null) return null
  return {
    input: input === null ? null : JSON.parse(input),
    output: output === null ? null : JSON.parse(output),
    variables: variables === null ? null : jsonObject(variables),
  }
}

const usdOrNull = (nano: number | null) => (nano === null ? null : usdFromNano(nano))

export const jsonObject = (text: string) => JSON.parse(text) as Record<string, unknown>
