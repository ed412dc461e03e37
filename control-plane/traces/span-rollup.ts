import { periodStartMs } from '../../shared/ledger/period.js'
import { bucketOf, type Latencies, microseconds } from './latency.js'
import type { SpanWrite } from './span-write.js'

const HOUR_MS = 3_600_000
/** Where a span has no prompt version; a key column cannot be null. */
export const NO_VERSION = '00000000-0000-0000-0000-000000000000'

/** What the sums of `span_rollups` are made of. */
export interface RolledSpan
  extends Pick<
    SpanWrite,
    | 'teamId'
    | 'kind'
    | 'status'
    | 'model'
    | 'promptVersionId'
    | 'promptTokens'
    | 'completionTokens'
    | 'totalTokens'
    | 'costNano'
  > {
  startTimeMs: number
  /** null: it has not ended. */
  durationMs: number | null
}

/** What is added up over spans, their latencies apart. */
export interface SpanSums {
  requests: number
  errors: number
  promptTokens: number
  completionTokens: number
  totalTokens: number
  costNano: number
}

/** A row of `span_rollup_deltas`. */
export interface SpanRollupDelta extends SpanSums, Latencies {
  teamId: string
  atMs: number
  weekMs: number
  kind: string
  model: string
  promptVersionId: string
}

/** A span that came (1) or went (-1), and the receipt of its trace. */
export interface SpanChange {
  span: RolledSpan
  sign: 1 | -1
  receivedAtMs: number
}

export const rolledSpan = (span: SpanWrite): RolledSpan => ({
  teamId: span.teamId,
  kind: span.kind,
  status: span.status,
  model: span.model,
  promptVersionId: span.promptVersionId,
  promptTokens: span.promptTokens,
  completionTokens: span.completionTokens,
  totalTokens: span.totalTokens,
  costNano: span.costNano,
  startTimeMs: span.startTimeMs,
  durationMs: span.endTimeMs === null ? null : span.endTimeMs - span.startTimeMs,
})

/** Folds changes by the hour of the spans' start and what analytics groups and filters by. */
export function spanRollupDeltas(changes: readonly SpanChange[]): SpanRollupDelta[] {
  const groups = new Map<string, { delta: SpanRollupDelta; bars: Map<number, [number, number]> }>()
  for (const { span, sign, receivedAtMs } of changes) {
    const atMs = Math.floor(Math.round(span.startTimeMs) / HOUR_MS) * HOUR_MS
    const weekMs = periodStartMs('week', receivedAtMs)!
    const model = span.model ?? ''
    const promptVersionId = span.promptVersionId?.toLowerCase() ?? NO_VERSION
    const key = `${span.teamId} ${atMs} ${weekMs} ${span.kind} ${promptVersionId} ${model}`
    let group = groups.get(key)
    if (group === undefined) {
      const { teamId, kind } = span
      group = { delta: noSums({ teamId, atMs, weekMs, kind, model, promptVersionId }), bars: new Map() }
      groups.set(key, group)
    }
    addSpan(group, span, sign)
  }
  for (const { delta, bars } of groups.values()) {
    for (const [bucket, [count, sumUs]] of bars) {
      delta.buckets.push(bucket)
      delta.counts.push(count)
      delta.sums.push(sumUs)
    }
  }
  return [...groups.values()].map(({ delta }) => delta)
}

type SumKey = Pick<SpanRollupDelta, 'teamId' | 'atMs' | 'weekMs' | 'kind' | 'model' | 'promptVersionId'>

const noSums = (key: SumKey): SpanRollupDelta => ({
  teamId: key.teamId,
  atMs: key.atMs,
  weekMs: key.weekMs,
  kind: key.kind,
  model: key.model,
  promptVersionId: key.promptVersionId,
  requests: 0,
  errors: 0,
  promptTokens: 0,
  completionTokens: 0,
  totalTokens: 0,
  costNano: 0,
  buckets: [],
  counts: [],
  sums: [],
})

function addSpan(
  { delta, bars }: { delta: SpanRollupDelta; bars: Map<number, [number, number]> },
  span: RolledSpan,
  sign: 1 | -1,
): void {
  delta.requests += sign
  if (span.status === 'error') delta.errors += sign
  delta.promptTokens += sign * (span.promptTokens ?? 0)
  delta.completionTokens += sign * (span.completionTokens ?? 0)
  delta.totalTokens += sign * (span.totalTokens ?? 0)
  delta.costNano += sign * (span.costNano ?? 0)
  if (span.durationMs === null) return
  const us = microseconds(span.durationMs)
  const bar = bars.get(bucketOf(us)) ?? [0, 0]
  bars.set(bucketOf(us), bar)
  bar[0] += sign
  bar[1] += sign * us
}
