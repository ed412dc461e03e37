import { createHash } from 'node:crypto'
import type { Sql } from '../db/sql.js'
import { claimTraces, findTraceOwners, insertSpans, type TraceOwner, upsertTraces } from './ingest-queries.js'
import type { SpanWrite } from './span-write.js'
import { traceDelta } from './trace-delta.js'

/**
 * Stores spans and keeps their traces' rows in step, in the caller's transaction: a span that is stored already
 * changes nothing, so a batch may come twice, in any order and beside itself. Rows are written in one order (owners,
 * spans, traces, each sorted), so that parallel batches wait for each other instead of deadlocking.
 *
 * A trace id that another team holds is never written to: those spans go to a trace of their own team's, under an id
 * that follows from the two.
 *
 * @param tx a transaction; nothing is true before it commits.
 * @param nowMs the receipt time of traces that are new.
 * @returns how many spans were new.
 */
export async function writeSpans(tx: Sql, spans: readonly SpanWrite[], nowMs: number): Promise<number> {
  const { settled, owners } = await settleOwners(tx, spans, nowMs)
  const placed = new Map<string, { span: SpanWrite; receivedAtMs: number; position: number }>()
  for (const [place, span] of settled.entries()) {
    const key = keyOf(span.trace.id, span.spanId)
    const { receivedAtMs } = owners.get(span.trace.id)!
    // The first of two spans with one reference stays, as if they had come in two batches.
    if (!placed.has(key)) placed.set(key, { span, receivedAtMs, position: nowMs * 4096 + (place % 4096) })
  }
  if (placed.size === 0) return 0
  const byTrace = new Map<string, SpanWrite[]>()
  for (const { traceId, spanId } of await insertSpans(tx, [...placed.values()])) {
    const { span } = placed.get(keyOf(traceId, spanId))!
    const siblings = byTrace.get(traceId)
    if (siblings === undefined) byTrace.set(traceId, [span])
    else siblings.push(span)
  }
  const deltas = [...byTrace].map(([id, fresh]) => traceDelta(owners.get(id)!.receivedAtMs, fresh))
  if (deltas.length > 0) await upsertTraces(tx, deltas)
  return deltas.reduce((total, delta) => total + delta.spanCount, 0)
}

/** A trace belongs to one team, so its id and a span's reference name a span. */
const keyOf = (traceId: string, spanId: string) => `${traceId} ${spanId}`

/** More than two happen only when somebody holds the derived id of another team's trace on purpose. */
const MAX_ROUNDS = 5

/** The spans with trace ids that are their team's own, and where each of those traces lives. */
async function settleOwners(tx: Sql, spans: readonly SpanWrite[], nowMs: number) {
  const owners = new Map<string, TraceOwner>()
  let settled = spans
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    const unknown = settled.filter(span => !owners.has(span.trace.id))
    for (const owner of await ownersOf(tx, unknown, nowMs)) owners.set(owner.id, owner)
    const isForeign = (span: SpanWrite) => owners.get(span.trace.id)?.teamId !== span.teamId
    if (!settled.some(isForeign)) return { settled, owners }
    settled = settled.map(span =>
      isForeign(span)
        ? { ...span, trace: { ...span.trace, id: derivedTraceId(span.teamId, span.trace.id) } }
        : span,
    )
  }
  throw new Error('every derived trace id is held by another team')
}

/** Claims what is free for the first team that asks, and looks up the rest. */
async function ownersOf(tx: Sql, spans: readonly SpanWrite[], nowMs: number): Promise<TraceOwner[]> {
  const wanted = new Map<string, TraceOwner>()
  for (const { teamId, trace } of spans) {
    if (!wanted.has(trace.id)) wanted.set(trace.id, { id: trace.id, teamId, receivedAtMs: nowMs })
  }
  if (wanted.size === 0) return []
  const won = await claimTraces(tx, [...wanted.values()])
  const held = [...wanted.keys()].filter(id => !won.has(id))
  const claimed = [...wanted.values()].filter(claim => won.has(claim.id))
  return held.length === 0 ? claimed : [...claimed, ...(await findTraceOwners(tx, held))]
}

/** A UUID (version 8: made by a rule of its own) that follows from the team and the id it cannot have. */
function derivedTraceId(teamId: string, traceId: string): string {
  const hash = createHash('sha256').update(`agh trace ${teamId} ${traceId}`).digest()
  hash[6] = (hash[6]! & 0x0f) | 0x80
  hash[8] = (hash[8]! & 0x3f) | 0x80
  return hash.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
