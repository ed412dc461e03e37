import { z } from 'zod'
import { instant, ownObject } from './common.js'
import { endpoint, MEGABYTE } from './endpoint.js'
import { errorType, spanKind, traceStatus } from './traces.js'

/** Spec 2, limits; over the whole request. */
export const MAX_SPANS = 200

/** Spec 4, section 2. */
const BODY_LIMIT = 20 * MEGABYTE

/**
 * Any 128 bits in UUID form, lower-cased: trace ids come from clients, and OpenTelemetry's have no version digit.
 * Left out and null are the same, here and in every optional field below: many clients send null for nothing.
 */
const uuid = z.guid('Invalid uuid').transform(text => text.toLowerCase())

/** PostgreSQL's text takes neither. Free-form JSON is cleaned instead; these fields name things and are kept as sent. */
function checkPlain(text: string, context: z.core.$RefinementCtx<string>): void {
  const message = text.includes('\0')
    ? 'Text must not contain the NUL character.'
    : /\p{Surrogate}/u.test(text)
      ? 'Text must be well-formed Unicode.'
      : null
  if (message !== null) context.addIssue({ code: 'custom', message })
}

const text = (most: number) => z.string().min(1).max(most).superRefine(checkPlain)
/** Span references and session ids are index keys. */
const reference = text(512)
const label = text(1_000)

/** 1e12: no span has more, and a trace's sum stays exact. */
const tokenCount = z.number().int().min(0).max(1_000_000_000_000)

/** Spec 2, span; `payload`, `errorType` and `errorCode`: spec 4, sections 7 and 9. */
const spanInput = z.object({
  spanId: reference,
  parentSpanId: reference.nullish(),
  name: label,
  kind: spanKind.nullish(),
  status: traceStatus.nullish(),
  startTime: instant,
  endTime: instant.nullish(),
  model: label.nullish(),
  provider: label.nullish(),
  usage: z
    .object({
      promptTokens: tokenCount.nullish(),
      completionTokens: tokenCount.nullish(),
      totalTokens: tokenCount.nullish(),
    })
    .nullish(),
  /** At most what integer nano-dollars hold exactly. */
  costUsd: z.number().min(0).max(9_000_000).nullish(),
  attributes: ownObject.nullish(),
  promptVersionId: uuid.nullish(),
  errorType: errorType.nullish(),
  errorCode: label.nullish(),
  payload: z
    .object({
      input: z.unknown().optional(),
      output: z.unknown().optional(),
      variables: ownObject.nullish(),
    })
    .nullish(),
})
export type SpanInput = z.output<typeof spanInput>

/** Spec 2, trace input; `tags`, `metadata` and `capturePayloads`: spec 4, section 7. */
const traceInput = z.object({
  /** Left out: a new trace. Unknown: a new trace under this id. */
  traceId: uuid.nullish(),
  /** Renames the trace; left out, it keeps its name. */
  name: label.nullish(),
  sessionId: reference.nullish(),
  tags: z.array(text(200)).max(100).nullish(),
  metadata: ownObject.nullish(),
  /** Wins over the team's setting, both ways. */
  capturePayloads: z.boolean().nullish(),
  spans: z.array(spanInput).min(1),
})
export type TraceInput = z.output<typeof traceInput>

export const ingestTraces = endpoint({
  method: 'POST',
  path: '/traces',
  summary: 'Stores the spans of one or more traces; a span that is sent again replaces itself.',
  group: 'traces',
  access: 'ingest',
  body: z.object({ traces: z.array(traceInput).min(1) }),
  bodyLimit: BODY_LIMIT,
  response: z.object({
    /** Spans, over all traces. */
    accepted: z.number().int(),
    /** One per input trace, in its order. */
    traceIds: z.array(z.guid()),
  }),
})

/** The JSON form; a protobuf request is answered in protobuf. */
const exportResponse = z.object({
  /** Only when something was rejected. `rejectedSpans` is an int64, in JSON a decimal text. */
  partialSuccess: z.object({ rejectedSpans: z.string(), errorMessage: z.string() }).optional(),
})

const otlp = {
  method: 'POST',
  group: 'traces',
  access: 'ingest',
  bodyLimit: BODY_LIMIT,
  response: exportResponse,
} as const

export const ingestOtlp = endpoint({
  ...otlp,
  path: '/traces/otlp',
  summary: 'OTLP over HTTP: one ExportTraceServiceRequest as protobuf or JSON, optionally gzip.',
})

/** What exporters call that are given `…/traces/otlp` as their general endpoint. */
export const ingestOtlpTraces = endpoint({
  ...otlp,
  path: '/traces/otlp/v1/traces',
  summary: 'The same as POST /traces/otlp.',
})
