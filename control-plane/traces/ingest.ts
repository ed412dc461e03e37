import type { Sql } from '../db/sql.js'
import { insertSpans, listHeldSpans, type PlacedSpan, type SpanKey, updateSpans } from './ingest-queries.js'
import { type Home, settleOwners } from './owners.js'
import type { SpanWrite } from './span-write.js'
import { type TraceDelta, traceDelta } from './trace-delta.js'
import { recomputeTraces, upsertTraces } from './trace-row-queries.js'

export interface WriteRules {
  /**
   * What becomes of a span that is stored already: gateway records keep it, POST /traces and OTLP replace its fields
   * (last write wins; spec 4, section 9).
   */
  repeated: 'keep' | 'replace'
  /** What becomes of a trace id that another team holds: gateway records derive another id, the others refuse it. */
  foreign: 'derive' | 'refuse'
}

export interface Written {
  /** Spans that were not stored before. */
  created: number
  /** Spans that were, and now hold what this write says. */
  replaced: number
  /** Trace ids that were refused; nothing of them was written. */
  foreignTraceIds: ReadonlySet<string>
}

/**
 * Stores spans and keeps their traces' rows in step, in the caller's transaction. A batch may come twice, in any order
 * and beside itself: every sum ends as if each span had been written once, in its last form. Rows are written in one
 * order (owners, spans, traces, each sorted), so that parallel batches wait for each other instead of deadlocking.
 *
 * What a span says about its trace (name, session, tags, metadata) is merged by rules of its own, see `TraceClaim`, and
 * never taken back.
 *
 * @param tx a transaction; nothing is true before it commits.
 * @param nowMs the receipt time of traces that are new.
 */
export async function writeSpans(
  tx: Sql,
  spans: readonly SpanWrite[],
  nowMs: number,
  rules: WriteRules,
): Promise<Written> {
  const { spans: settled, homes, foreignTraceIds } = await settleOwners(tx, spans, nowMs, rules.foreign)
  const placed = placeSpans(settled, homes, nowMs, rules.repeated)
  const held = rules.repeated === 'keep' ? [] : await heldSpans(tx, placed, homes)
  const changed = held.length === 0 ? [] : await updateSpans(tx, held)
  const fresh = [...without(placed, held).values()]
  const created = fresh.length === 0 ? [] : await insertSpans(tx, fresh)
  const deltas = deltasOf(placed, homes, created, held)
  if (deltas.length > 0) await upsertTraces(tx, deltas)
  const changedTraces = new Set(changed.map(key => key.traceId))
  if (changedTraces.size > 0)
    await recomputeTraces(
      tx,
      [...changedTraces].map(id => homes.get(id)!),
    )
  return { created: created.length, replaced: held.length, foreignTraceIds }
}

/** One span per key. Of two in one batch the one stays that would, had they come in two batches. */
function placeSpans(
  spans: readonly SpanWrite[],
  homes: ReadonlyMap<string, Home>,
  nowMs: number,
  repeated: WriteRules['repeated'],
): Map<string, PlacedSpan> {
  const placed = new Map<string, PlacedSpan>()
  for (const [place, span] of spans.entries()) {
    const key = keyOf(span.trace.id, span.spanId)
    const earlier = placed.get(key)
    if (earlier !== undefined && repeated === 'keep') continue
    const position = earlier?.position ?? nowMs * 4096 + (place % 4096)
    placed.set(key, { span, receivedAtMs: homes.get(span.trace.id)!.receivedAtMs, position })
  }
  return placed
}

/** Those that are stored already. A trace that this transaction claimed has none. */
async function heldSpans(
  tx: Sql,
  placed: ReadonlyMap<string, PlacedSpan>,
  homes: ReadonlyMap<string, Home>,
): Promise<PlacedSpan[]> {
  const candidates = [...placed.values()].filter(({ span }) => !homes.get(span.trace.id)!.isNew)
  if (candidates.length === 0) return []
  const keys = await listHeldSpans(tx, candidates)
  return keys.map(({ traceId, spanId }) => placed.get(keyOf(traceId, spanId))!)
}

function without(
  placed: ReadonlyMap<string, PlacedSpan>,
  held: readonly PlacedSpan[],
): Map<string, PlacedSpan> {
  const rest = new Map(placed)
  for (const { span } of held) rest.delete(keyOf(span.trace.id, span.spanId))
  return rest
}

/** What each trace's row gains. A kept span says nothing; a replaced one says its say about the trace again. */
function deltasOf(
  placed: ReadonlyMap<string, PlacedSpan>,
  homes: ReadonlyMap<string, Home>,
  created: readonly SpanKey[],
  held: readonly PlacedSpan[],
): TraceDelta[] {
  const byTrace = new Map<string, { said: SpanWrite[]; created: SpanWrite[] }>()
  const entryOf = (span: SpanWrite) => {
    const entry = byTrace.get(span.trace.id) ?? { said: [], created: [] }
    byTrace.set(span.trace.id, entry)
    entry.said.push(span)
    return entry
  }
  for (const { traceId, spanId } of created) {
    const { span } = placed.get(keyOf(traceId, spanId))!
    entryOf(span).created.push(span)
  }
  for (const { span } of held) entryOf(span)
  return [...byTrace].map(([id, spans]) => traceDelta(homes.get(id)!.receivedAtMs, spans.said, spans.created))
}

/** A trace belongs to one team, so its id and a span's reference name a span. */
const keyOf = (traceId: string, spanId: string) => `${traceId} ${spanId}`
