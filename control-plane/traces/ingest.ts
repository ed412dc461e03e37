import type { Sql } from '../db/sql.js'
import { keyShifts } from '../feedback/key-shifts.js'
import type { PlacedSpan } from './ingest-queries.js'
import { type Home, settleOwners } from './owners.js'
import type { TraceSignature } from './rollup-queries.js'
import { signatureOf } from './search-signature.js'
import type { SpanWrite } from './span-write.js'
import { placeSpans, type StoredSpans, spanChanges, storeSpans } from './store-spans.js'
import { updateSums } from './sums.js'
import { type TraceDelta, traceDelta } from './trace-delta.js'
import type { TraceState } from './trace-facets.js'
import { insertTraces, listTraceStates, recomputeTraces, upsertTraces } from './trace-row-queries.js'

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
  if (placed.size === 0) return { created: 0, replaced: 0, foreignTraceIds }
  const written = new Set([...placed.values()].map(({ span }) => span.trace.id))
  const known = [...homes.values()].filter(home => !home.isNew && written.has(home.id))
  const before = known.length === 0 ? [] : await listTraceStates(tx, known)
  const stored = await storeSpans(tx, placed, known, rules.repeated)
  const after = await storeTraces(tx, homes, stored)
  const touched = before.filter(state => after.has(state.id))
  const change = {
    spans: spanChanges(stored),
    before: touched,
    after: [...after.values()],
    keys: keyShifts(stored, known),
  }
  await updateSums(tx, change, signaturesOf(stored, touched))
  return { created: stored.created.length, replaced: stored.held.length, foreignTraceIds }
}

/** @returns the rows of the traces that were written, by id. */
async function storeTraces(
  tx: Sql,
  homes: ReadonlyMap<string, Home>,
  { created, held, changed }: StoredSpans,
): Promise<Map<string, TraceState>> {
  const createdBy = spansByTrace(created)
  const isOfNew = ({ id }: TraceDelta) => homes.get(id)!.isNew
  const saidBy = held.length === 0 ? createdBy : spansByTrace([...created, ...held])
  const deltas = [...saidBy].map(([id, said]) =>
    traceDelta(homes.get(id)!.receivedAtMs, said, createdBy.get(id) ?? []),
  )
  const [fresh, known] = [deltas.filter(isOfNew), deltas.filter(delta => !isOfNew(delta))]
  const states = [
    ...(fresh.length === 0 ? [] : await insertTraces(tx, fresh)),
    ...(known.length === 0 ? [] : await upsertTraces(tx, known)),
  ]
  const stale = [...spansByTrace(changed).keys()].map(id => homes.get(id)!)
  const recomputed = stale.length === 0 ? [] : await recomputeTraces(tx, stale)
  return new Map([...states, ...recomputed].map(state => [state.id, state]))
}

function spansByTrace(placed: readonly PlacedSpan[]): Map<string, SpanWrite[]> {
  const spans = new Map<string, SpanWrite[]>()
  for (const { span } of placed) {
    const siblings = spans.get(span.trace.id)
    if (siblings === undefined) spans.set(span.trace.id, [span])
    else siblings.push(span)
  }
  return spans
}

/** For what is new to search in: spans that were not stored like this before, and a new name of the trace. */
function signaturesOf(
  { created, held, changed }: StoredSpans,
  before: readonly TraceState[],
): TraceSignature[] {
  const names = new Map(before.map(state => [state.id, state.name]))
  const isRenamed = ({ trace }: SpanWrite) => trace.name !== null && trace.name !== names.get(trace.id)
  const changedSpans = new Set(changed.map(({ span }) => span))
  const renaming = held.filter(({ span }) => changedSpans.has(span) || isRenamed(span))
  const texts = new Map<string, { span: SpanWrite; receivedAtMs: number; plain: string[]; json: string[] }>()
  for (const { span, receivedAtMs, json } of [...created, ...renaming]) {
    const { id, name } = span.trace
    const text = texts.get(id) ?? { span, receivedAtMs, plain: [], json: [] }
    texts.set(id, text)
    text.plain.push(span.name, ...(name === null ? [] : [name]))
    for (const own of [json.attributes, json.input, json.output]) if (own !== null) text.json.push(own)
  }
  return [...texts].map(([traceId, { span, receivedAtMs, plain, json }]) => ({
    teamId: span.teamId,
    receivedAtMs,
    traceId,
    signature: signatureOf(plain, json).toString('base64'),
    names: signatureOf(plain, []).toString('base64'),
  }))
}
