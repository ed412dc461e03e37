import type { SpanInput, TraceInput } from '../../shared/contract/trace-ingestion.js'
import { nanoFromUsd } from '../../shared/money/nano.js'
import type { Capture } from './capture.js'
import { clean, storable } from './payload.js'
import { hasWarning, type SpanWrite, type TraceClaim } from './span-write.js'

/**
 * A trace of POST /traces as ingestion stores it.
 *
 * @param bytes of the request's body: no field of it is longer.
 */
export function reportedSpans(
  trace: TraceInput,
  traceId: string,
  capture: Capture,
  bytes: number,
): SpanWrite[] {
  const keep = (value: unknown) => storable(clean(value ?? null), capture.hidden, bytes)
  const claim: TraceClaim = {
    id: traceId,
    // What a later request says stands, whenever its spans started.
    saidAtMs: capture.nowMs,
    name: trace.name ?? null,
    nameSource: trace.name ? 'explicit' : null,
    sessionId: trace.sessionId ?? null,
    tags: trace.tags ?? [],
    metadata: keep(trace.metadata) as TraceClaim['metadata'],
  }
  // As with the gateway's header, what the caller says wins over the setting, both ways (spec 4, sections 7 and 9).
  const capturesPayload = trace.capturePayloads ?? capture.payloads
  return trace.spans.map(span => ({
    teamId: capture.teamId,
    trace: claim,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId ?? null,
    name: span.name,
    kind: span.kind ?? 'other',
    status: span.status ?? 'unset',
    startTimeMs: span.startTime,
    endTimeMs: endTimeOf(span),
    model: span.model ?? null,
    provider: span.provider ?? null,
    promptTokens: span.usage?.promptTokens ?? null,
    completionTokens: span.usage?.completionTokens ?? null,
    totalTokens: span.usage?.totalTokens ?? null,
    costNano: typeof span.costUsd === 'number' ? nanoFromUsd(span.costUsd) : null,
    promptVersionId: span.promptVersionId ?? null,
    errorType: span.errorType ?? null,
    errorCode: span.errorCode ?? null,
    hasWarning: hasWarning(span.attributes ?? {}),
    attributes: keep(span.attributes ?? {}),
    input: capturesPayload ? keep(span.payload?.input) : null,
    output: capturesPayload ? keep(span.payload?.output) : null,
    variables: capturesPayload ? keep(span.payload?.variables) : null,
  }))
}

/** A clock that was set back in mid-span must not make a negative duration. */
const endTimeOf = ({ startTime, endTime }: SpanInput) =>
  typeof endTime === 'number' ? Math.max(startTime, endTime) : null
