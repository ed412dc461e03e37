import { z } from 'zod'
import { id, idParams, instant, pageOf, pageQuery, timestamp, usd } from './common.js'
import { endpoint } from './endpoint.js'

export const traceStatuses = ['ok', 'error', 'unset'] as const
export const traceStatus = z.enum(traceStatuses)
export type TraceStatus = z.infer<typeof traceStatus>

export const spanKinds = ['llm', 'tool', 'retrieval', 'embedding', 'agent', 'chain', 'other'] as const
export const spanKind = z.enum(spanKinds)
export type SpanKind = z.infer<typeof spanKind>

export const errorTypes = [
  'transport',
  'http_status',
  'tool_declared',
  'schema_mismatch',
  'transform',
  'provider_error',
] as const
export const errorType = z.enum(errorTypes)
export type ErrorType = z.infer<typeof errorType>

/** Spec 2, trace list row. */
export const traceRow = z.object({
  id,
  name: z.string(),
  sessionId: z.string().nullable(),
  status: traceStatus,
  startedAt: timestamp,
  endedAt: timestamp.nullable(),
  spanCount: z.number().int(),
  /** null: no span has a cost. */
  totalCostUsd: usd.nullable(),
  totalTokens: z.number().int(),
  durationMs: z.number().nullable(),
  tags: z.array(z.string()),
  hasWarning: z.boolean(),
})
export type TraceRow = z.infer<typeof traceRow>

/** A span as GET /traces/:id shows it (spec 2; spec 4, section 7). */
export const span = z.object({
  /** The caller's own reference, never an internal id. */
  spanId: z.string(),
  parentSpanId: z.string().nullable(),
  name: z.string(),
  kind: spanKind,
  status: traceStatus,
  startTime: timestamp,
  endTime: timestamp.nullable(),
  durationMs: z.number().nullable(),
  model: z.string().nullable(),
  provider: z.string().nullable(),
  usage: z
    .object({
      promptTokens: z.number().int(),
      completionTokens: z.number().int(),
      totalTokens: z.number().int(),
    })
    .nullable(),
  costUsd: usd.nullable(),
  promptVersionId: id.nullable(),
  errorType: z.string().nullable(),
  errorCode: z.string().nullable(),
  attributes: z.record(z.string(), z.unknown()),
  /** null: the payload was not captured. */
  payload: z
    .object({
      input: z.unknown(),
      output: z.unknown(),
      variables: z.record(z.string(), z.unknown()).nullable(),
    })
    .nullable(),
})
export type Span = z.infer<typeof span>

/** Spec 2, feedback row. */
export const feedbackRow = z.object({
  id,
  traceId: id,
  spanId: z.string().nullable(),
  rating: z.number().int().nullable(),
  label: z.string().nullable(),
  comment: z.string().nullable(),
  source: z.enum(['user', 'developer', 'end_user', 'api']),
  createdBy: id.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
})

const bound = (check: z.ZodNumber) =>
  z
    .string()
    .transform(text => (text.trim() === '' ? Number.NaN : Number(text)))
    .pipe(check)
const oneOrMany = z
  .union([z.string(), z.array(z.string())])
  .transform(value => (typeof value === 'string' ? [value] : value))

/** 256 UTF-16 units: a longer search is no word of anybody's. PostgreSQL's text has no NUL. */
const searchText = z
  .string()
  .max(256)
  .refine(text => !text.includes('\0'), 'q must not contain the NUL character')

/**
 * The filters of GET /traces, except `metadata[key]`, whose names callers choose: see `metadataPairs`. One schema, also
 * for the feedback feed.
 */
export const traceFilters = z.object({
  from: instant.optional(),
  to: instant.optional(),
  status: traceStatus.optional(),
  model: z.string().optional(),
  session_id: z.string().optional(),
  prompt_version_id: z.uuid().optional(),
  /** Any version of that prompt, also of one that was deleted since. */
  prompt_id: z.uuid().optional(),
  min_latency_ms: bound(z.number()).optional(),
  min_cost_usd: bound(z.number()).optional(),
  min_tokens: bound(z.number().int()).optional(),
  error_type: errorType.optional(),
  error_code: z
    .string()
    .refine(text => text.trim() !== '', 'error_code must not be blank')
    .optional(),
  has_warning: z
    .enum(['true', 'false'])
    .transform(text => text === 'true')
    .optional(),
  /** Free text; blank means no filter. */
  q: searchText.optional(),
  q_in: z.enum(['input', 'output', 'name']).optional(),
  tags: oneOrMany.pipe(z.array(z.string()).max(20)).optional(),
  /** Some score of an evaluation rule on the trace lies between them; a trace with none never matches. */
  min_score: bound(z.number()).optional(),
  max_score: bound(z.number()).optional(),
  /** The same for the ratings of its feedback. */
  min_rating: bound(z.number()).optional(),
  max_rating: bound(z.number()).optional(),
})
export type TraceFilters = z.output<typeof traceFilters>

export const listTraces = endpoint({
  method: 'GET',
  path: '/traces',
  summary: 'Traces, newest first; each once, however many of its spans match.',
  group: 'traces',
  access: 'member',
  // Loose: `metadata[key]` has names that no schema can list.
  query: z.looseObject({ ...pageQuery.shape, ...traceFilters.shape }),
  response: pageOf(traceRow),
})

const facet = z.array(z.object({ value: z.string(), count: z.number().int() }))
export type Facet = z.infer<typeof facet>

export const readFacets = endpoint({
  method: 'GET',
  path: '/traces/facets',
  summary:
    'What the traces of a window can be filtered by: the 100 most frequent values of each, counted by trace.',
  group: 'traces',
  access: 'member',
  query: z.object({ from: instant.optional(), to: instant.optional() }),
  response: z.object({
    models: facet,
    providers: facet,
    tags: facet,
    metadataKeys: facet,
    errorTypes: facet,
    errorCodes: facet,
  }),
})

export const readTrace = endpoint({
  method: 'GET',
  path: '/traces/:id',
  summary: 'One trace with its spans in start order and its feedback.',
  group: 'traces',
  access: 'member',
  params: idParams,
  response: z.object({
    trace: traceRow.extend({ metadata: z.record(z.string(), z.unknown()) }),
    spans: z.array(span),
    feedback: z.array(feedbackRow),
  }),
})
