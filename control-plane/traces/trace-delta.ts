import { addedUp, bucketOf, microseconds } from './latency.js'
import type { SpanWrite, TraceClaim } from './span-write.js'
import { type TraceState, termsOf } from './trace-facets.js'

/** What a write adds to one trace's row: the folded part of the upsert in ingest-queries.ts. */
export interface TraceDelta {
  teamId: string
  receivedAtMs: number
  id: string
  name: string | null
  nameSource: TraceClaim['nameSource']
  nameAtMs: number | null
  sessionId: string | null
  sessionAtMs: number | null
  metadata: Record<string, unknown>
  metadataAtMs: number | null
  startedAtMs: number
  lastStartedAtMs: number
  /** Bucket, spans and microseconds after each other: the histogram of the spans' durations. */
  latencies: number[]
  endedAtMs: number | null
  spanCount: number
  errorCount: number
  okCount: number
  warningCount: number
  /** null: none of these spans has a cost. */
  totalCostNano: number | null
  promptTokens: number
  completionTokens: number
  totalTokens: number
  tags: string[]
  models: string[]
  providers: string[]
  errorTypes: string[]
  errorCodes: string[]
  promptVersionIds: string[]
  spanNames: string[]
  /** See `termOf`. */
  terms: number[]
}

/**
 * Folds the spans of one trace. The same rules as the upsert that adds the result to the stored row, so that it makes
 * no difference in how many batches, and in what order, a trace's spans arrive.
 *
 * @param said every span of the write, at least one: each says something about its trace.
 * @param created those of them that were not stored before: they alone add to sums.
 */
export function traceDelta(
  receivedAtMs: number,
  said: readonly SpanWrite[],
  created: readonly SpanWrite[],
): TraceDelta {
  // In the order of their start, so that "later" and "earlier" are positions.
  const claims = [...said].sort((a, b) => a.startTimeMs - b.startTimeMs)
  const isAllNew = created.length === said.length
  const ordered = isAllNew ? claims : [...created].sort((a, b) => a.startTimeMs - b.startTimeMs)
  const first = claims[0]!
  const named = namingSpan(claims)
  const inSession = claims.findLast(span => span.trace.sessionId !== null)
  const described = claims.filter(span => span.trace.metadata !== null)
  const ends = claims.flatMap(span => span.endTimeMs ?? [])
  const costs = ordered.flatMap(span => span.costNano ?? [])
  const tags = distinct(claims.flatMap(span => span.trace.tags))
  const metadata = mergedMetadata(described)
  const lastDescribed = described.at(-1)
  const values = valuesOf(ordered)
  return {
    teamId: first.teamId,
    receivedAtMs,
    id: first.trace.id,
    name: named?.trace.name ?? null,
    nameSource: named?.trace.nameSource ?? null,
    nameAtMs: named ? saidAtMs(named) : null,
    sessionId: inSession?.trace.sessionId ?? null,
    sessionAtMs: inSession ? saidAtMs(inSession) : null,
    metadata,
    metadataAtMs: lastDescribed ? saidAtMs(lastDescribed) : null,
    startedAtMs: Math.round(first.startTimeMs),
    lastStartedAtMs: Math.round(claims.at(-1)!.startTimeMs),
    latencies: addedUp(ordered.flatMap(barOf)),
    endedAtMs: ends.length === 0 ? null : Math.round(ends.reduce((a, b) => Math.max(a, b))),
    spanCount: ordered.length,
    errorCount: count(ordered, span => span.status === 'error'),
    okCount: count(ordered, span => span.status === 'ok'),
    warningCount: count(ordered, span => span.hasWarning),
    totalCostNano: costs.length === 0 ? null : costs.reduce((a, b) => a + b),
    promptTokens: sum(ordered, span => span.promptTokens),
    completionTokens: sum(ordered, span => span.completionTokens),
    totalTokens: sum(ordered, span => span.totalTokens),
    tags,
    models: values.models,
    providers: values.providers,
    errorTypes: values.errorTypes,
    errorCodes: values.errorCodes,
    promptVersionIds: values.promptVersionIds,
    spanNames: distinct(ordered.map(span => span.name)),
    terms: termsOf({ ...(isAllNew ? values : valuesOf(claims)), teamId: first.teamId, tags, metadata }),
  }
}

/** Prompt ids by `versionKey`. */
export type PromptsByVersion = ReadonlyMap<string, string>
export const versionKey = (teamId: string, versionId: string): string => `${teamId} ${versionId}`

/** The row that a write makes of a trace that is new, as reading it would say. */
export function stateOfNew(delta: TraceDelta, promptOf: PromptsByVersion): TraceState {
  const { teamId, promptVersionIds } = delta
  return {
    id: delta.id,
    teamId,
    receivedAtMs: delta.receivedAtMs,
    name: delta.name,
    status: delta.errorCount > 0 ? 'error' : delta.okCount > 0 ? 'ok' : 'unset',
    hasWarning: delta.warningCount > 0,
    sessionId: delta.sessionId,
    startedAtMs: delta.startedAtMs,
    lastStartedAtMs: delta.lastStartedAtMs,
    spanCount: delta.spanCount,
    errorCount: delta.errorCount,
    totalCostNano: delta.totalCostNano,
    promptTokens: delta.promptTokens,
    completionTokens: delta.completionTokens,
    totalTokens: delta.totalTokens,
    latencies: delta.sessionId === null ? [] : delta.latencies,
    tags: delta.tags,
    models: delta.models,
    providers: delta.providers,
    errorTypes: delta.errorTypes,
    errorCodes: delta.errorCodes,
    promptVersionIds,
    promptIds: distinct(promptVersionIds.flatMap(id => promptOf.get(versionKey(teamId, id)) ?? [])),
    metadataKeys: Object.keys(delta.metadata),
  }
}

const valuesOf = (spans: readonly SpanWrite[]) => ({
  models: distinct(spans.flatMap(span => span.model ?? [])),
  providers: distinct(spans.flatMap(span => span.provider ?? [])),
  errorTypes: distinct(spans.flatMap(span => span.errorType ?? [])),
  errorCodes: distinct(spans.flatMap(span => span.errorCode ?? [])),
  promptVersionIds: distinct(spans.flatMap(span => span.promptVersionId ?? [])),
})

function barOf({ startTimeMs, endTimeMs }: SpanWrite): number[] {
  if (endTimeMs === null) return []
  const us = microseconds(endTimeMs - startTimeMs)
  return [bucketOf(us), 1, us]
}

const saidAtMs = ({ trace, startTimeMs }: SpanWrite): number => trace.saidAtMs ?? startTimeMs

/** The latest name that somebody set, else the earliest fallback or derived one. */
function namingSpan(ordered: readonly SpanWrite[]): SpanWrite | undefined {
  return (
    ordered.findLast(span => span.trace.nameSource === 'explicit') ??
    ordered.find(span => span.trace.nameSource !== null)
  )
}

/** By top-level key, later values over earlier ones. Keys are the caller's: defined, never assigned. */
function mergedMetadata(described: readonly SpanWrite[]): Record<string, unknown> {
  return Object.fromEntries(described.flatMap(span => Object.entries(span.trace.metadata ?? {})))
}

const count = (spans: readonly SpanWrite[], holds: (span: SpanWrite) => boolean) => spans.filter(holds).length
const sum = (spans: readonly SpanWrite[], amount: (span: SpanWrite) => number | null) =>
  spans.reduce((total, span) => total + (amount(span) ?? 0), 0)
const distinct = (values: string[]) => (values.length < 2 ? values : [...new Set(values)].sort())
