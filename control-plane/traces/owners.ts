import { createHash } from 'node:crypto'
import type { Sql } from '../db/sql.js'
import { claimTraces, lockTraceOwners, type TraceOwner } from './ingest-queries.js'
import type { SpanWrite } from './span-write.js'

/** Where a trace lives, and whether this transaction is the first to hear of it. */
export interface Home extends TraceOwner {
  isNew: boolean
}

export interface Settled {
  /** The spans under trace ids that are their team's own. */
  spans: SpanWrite[]
  homes: ReadonlyMap<string, Home>
  /** Ids that another team holds, when those are refused. */
  foreignTraceIds: ReadonlySet<string>
}

/** More than two happen only when somebody holds the derived id of another team's trace on purpose. */
const MAX_ROUNDS = 6

/**
 * Finds out, and from now to the end of the transaction makes sure, whose each trace is: new ids are claimed, the rows
 * of held ones locked. So one trace is written by one transaction at a time, which is what lets ingestion read what is
 * stored, write the rest and know the difference.
 *
 * @param foreign what becomes of an id that another team holds: `derive` gives its spans a trace of their own team's,
 *   under an id that follows from the two; `refuse` leaves them out.
 */
export async function settleOwners(
  tx: Sql,
  wanted: readonly SpanWrite[],
  nowMs: number,
  foreign: 'derive' | 'refuse',
): Promise<Settled> {
  const homes = new Map<string, Home>()
  const foreignTraceIds = new Set<string>()
  let spans = [...wanted]
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    const unknown = spans.filter(span => !homes.has(span.trace.id))
    for (const home of await homesOf(tx, unknown, nowMs)) homes.set(home.id, home)
    const isForeign = (span: SpanWrite) => {
      const home = homes.get(span.trace.id)
      return home !== undefined && home.teamId !== span.teamId
    }
    if (foreign === 'refuse') {
      for (const span of spans) if (isForeign(span)) foreignTraceIds.add(span.trace.id)
      spans = spans.filter(span => !isForeign(span))
    } else {
      spans = spans.map(span => (isForeign(span) ? underDerivedId(span) : span))
    }
    // An id that retention freed between the claim and the lock has no home yet: once more.
    if (spans.every(span => homes.has(span.trace.id))) return { spans, homes, foreignTraceIds }
  }
  throw new Error('every derived trace id is held by another team')
}

/** Claims what is free for the first team that asks, and locks the rest. */
async function homesOf(tx: Sql, spans: readonly SpanWrite[], nowMs: number): Promise<Home[]> {
  const wanted = new Map<string, TraceOwner>()
  for (const { teamId, trace } of spans) {
    if (!wanted.has(trace.id)) wanted.set(trace.id, { id: trace.id, teamId, receivedAtMs: nowMs })
  }
  if (wanted.size === 0) return []
  const won = await claimTraces(tx, [...wanted.values()])
  const claimed = [...wanted.values()].filter(claim => won.has(claim.id))
  const held = [...wanted.keys()].filter(id => !won.has(id))
  const locked = held.length === 0 ? [] : await lockTraceOwners(tx, held)
  return [
    ...claimed.map(owner => ({ ...owner, isNew: true })),
    ...locked.map(owner => ({ ...owner, isNew: false })),
  ]
}

const underDerivedId = (span: SpanWrite): SpanWrite => ({
  ...span,
  trace: { ...span.trace, id: derivedTraceId(span.teamId, span.trace.id) },
})

/** A UUID (version 8: made by a rule of its own) that follows from the team and the id it cannot have. */
function derivedTraceId(teamId: string, traceId: string): string {
  const hash = createHash('sha256').update(`agh trace ${teamId} ${traceId}`).digest()
  hash[6] = (hash[6]! & 0x0f) | 0x80
  hash[8] = (hash[8]! & 0x3f) | 0x80
  return hash.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
