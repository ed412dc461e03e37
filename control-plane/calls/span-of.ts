import type { SpanRecord } from '../../shared/spool/record.js'
import { cutText, storable } from '../traces/payload.js'
import { hasWarning, MAX_REFERENCE, type SpanWrite, type TraceClaim } from '../traces/span-write.js'

/** UTF-16 units; longer names and tags are cut, they are labels. */
const MAX_NAME = 1_000
const MAX_TAG = 200
const MAX_TAGS = 100

/**
 * The span of a gateway call as ingestion stores it: payload, attributes and metadata redacted and bounded.
 *
 * @param hidden the team's `redactKeys`, lower-cased.
 * @param length UTF-16 units of the record's JSON.
 */
export function spanOf(record: SpanRecord, hidden: ReadonlySet<string>, length: number): SpanWrite {
  const { tokens, payload } = record
  const keep = (value: unknown) => storable(value, hidden, length)
  const promptTokens = tokens === null ? null : tokens.input + tokens.cacheRead + tokens.cacheWrite
  return {
    teamId: record.teamId,
    trace: claimOf(record, keep),
    spanId: record.spanId,
    parentSpanId: reference(record.parentSpanId),
    name: cutText(record.name, MAX_NAME),
    kind: 'llm',
    status: record.status,
    startTimeMs: record.startTimeMs,
    endTimeMs: Math.max(record.startTimeMs, record.endTimeMs),
    model: record.model,
    provider: record.provider,
    promptTokens,
    completionTokens: tokens?.output ?? null,
    totalTokens: tokens === null || promptTokens === null ? null : promptTokens + tokens.output,
    costNano: record.costNano,
    promptVersionId: record.promptVersionId,
    errorType: record.errorType,
    errorCode: record.errorCode,
    hasWarning: hasWarning(record.attributes),
    attributes: keep(record.attributes),
    input: payload === null ? null : keep(payload.input),
    output: payload === null ? null : keep(payload.output),
    variables: payload === null ? null : keep(payload.variables),
  }
}

function claimOf({ trace }: SpanRecord, keep: (value: unknown) => unknown): TraceClaim {
  const name = trace.name ?? trace.nameIfUnset
  return {
    id: trace.id,
    name: name === null ? null : cutText(name, MAX_NAME),
    nameSource: trace.name !== null ? 'explicit' : trace.nameIfUnset !== null ? 'if_unset' : null,
    sessionId: reference(trace.sessionId),
    tags: (trace.tags ?? []).slice(0, MAX_TAGS).map(tag => cutText(tag, MAX_TAG)),
    metadata: keep(trace.metadata) as Record<string, unknown> | null,
  }
}

const reference = (text: string | null) => (text === null ? null : cutText(text, MAX_REFERENCE))
