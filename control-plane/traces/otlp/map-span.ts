import type { TraceStatus } from '../../../shared/contract/traces.js'
import type { Capture } from '../capture.js'
import { cutText, storable } from '../payload.js'
import { hasWarning, MAX_REFERENCE, type SpanWrite, type TraceClaim } from '../span-write.js'
import { type Attributes, newAttributes } from './attribute-value.js'
import { genAi, genAiContent } from './attributes/genai.js'
import { isPromoted, openInference, openInferenceContent } from './attributes/openinference.js'
import type { Content, Vocabulary } from './attributes/vocabulary.js'
import type { OtlpSpan } from './otlp-span.js'
import { traceName } from './trace-name.js'

/** UTF-16 units; longer ones are cut, they are labels. The gateway's spans have the same bounds. */
const MAX_NAME = 1_000
const MAX_TAG = 200
const MAX_TAGS = 100

/** An OTLP span as ingestion stores it: the mapping rules of spec 2, POST /traces/otlp. */
export function spanWrite(span: OtlpSpan, capture: Capture): SpanWrite {
  const { attributes } = span
  const [first, second] = [openInference(attributes), genAi(attributes)]
  const kind = first.kind ?? 'other'
  const keep = (value: unknown) => storable(value, capture.hidden, span.units)
  const content = capture.payloads ? contentOf(span, kind) : { input: null, output: null }
  const startTimeMs = span.startTimeMs ?? span.endTimeMs ?? capture.nowMs
  const kept = keptAttributes(span, name => isPromoted(name, kind))
  return {
    teamId: capture.teamId,
    trace: claimOf(span, first, second, keep),
    spanId: span.spanId,
    parentSpanId: span.parentSpanId,
    name: cutText(span.name, MAX_NAME),
    kind,
    status: statusOf(span.statusCode),
    startTimeMs,
    // A clock that was set back in mid-span must not make a negative duration.
    endTimeMs: span.endTimeMs === null ? null : Math.max(startTimeMs, span.endTimeMs),
    model: label(first.model ?? second.model),
    provider: label(first.provider ?? second.provider),
    promptTokens: first.promptTokens ?? second.promptTokens,
    completionTokens: first.completionTokens ?? second.completionTokens,
    totalTokens: first.totalTokens ?? second.totalTokens,
    costNano: first.costNano ?? second.costNano,
    promptVersionId: null,
    errorType: null,
    errorCode: null,
    hasWarning: hasWarning(kept),
    attributes: keep(kept),
    input: keep(content.input),
    output: keep(content.output),
    variables: null,
  }
}

function claimOf(
  span: OtlpSpan,
  first: Vocabulary,
  second: Vocabulary,
  keep: (value: unknown) => unknown,
): TraceClaim {
  const name = span.parentSpanId === null ? traceName(span.name) : null
  const sessionId = first.sessionId ?? second.sessionId
  return {
    id: traceUuid(span.traceId),
    name: label(name),
    nameSource: name === null ? null : 'derived',
    sessionId: sessionId === null ? null : cutText(sessionId, MAX_REFERENCE),
    tags: first.tags.slice(0, MAX_TAGS).map(tag => cutText(tag, MAX_TAG)),
    metadata: keep(first.metadata) as Record<string, unknown> | null,
  }
}

/** Rule 1: 8-4-4-4-12. */
const traceUuid = (hex: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`

function statusOf(code: number): TraceStatus {
  if (code === 1) return 'ok'
  return code === 2 ? 'error' : 'unset'
}

function contentOf(span: OtlpSpan, kind: SpanWrite['kind']): Content {
  const content = openInferenceContent(span.attributes, kind)
  if (content.input !== null && content.output !== null) return content
  const other = genAiContent(span.attributes)
  return { input: content.input ?? other.input, output: content.output ?? other.output }
}

const label = (text: string | null) => (text === null ? null : cutText(text, MAX_NAME))

const spanKinds = [null, null, 'server', 'client', 'producer', 'consumer']

/**
 * Rule 5: the span's own attributes as they came, less what moved to the payload; and what OTLP says beside them, under
 * names of its own, only where it says something.
 */
function keptAttributes(span: OtlpSpan, isMoved: (name: string) => boolean): Attributes {
  const kept = newAttributes()
  for (const name in span.attributes) if (!isMoved(name)) kept[name] = span.attributes[name]
  // The span's own attribute of that name stays; ours then says where it comes from.
  const add = (name: string, value: unknown) => {
    kept[name in kept ? `otel.${name}` : name] = value
  }
  if (span.statusMessage !== '') add('statusMessage', span.statusMessage)
  if (span.events.length > 0) add('events', span.events)
  if (span.links.length > 0) add('links', span.links)
  if (hasAny(span.resource)) add('resource', span.resource)
  if (span.scope !== null) add('scope', scopeOf(span.scope))
  const kind = spanKinds[span.kind]
  if (kind) add('spanKind', kind)
  if (span.traceState !== '') add('traceState', span.traceState)
  if (span.dropped !== null) for (const name in span.dropped) add(name, span.dropped[name])
  return kept
}

function scopeOf({ name, version, attributes }: NonNullable<OtlpSpan['scope']>): Attributes {
  return { name, ...(version !== '' && { version }), ...(hasAny(attributes) && { attributes }) }
}

function hasAny(attributes: Attributes): boolean {
  for (const _ in attributes) return true
  return false
}
