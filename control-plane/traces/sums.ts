import type { Sql } from '../db/sql.js'
import type { KeyShift } from '../feedback/key-shifts.js'
import { refreshSessionEnds } from '../sessions/rollup-queries.js'
import { sessionDeltas } from '../sessions/session-delta.js'
import { addSums, type TraceSignature } from './rollup-queries.js'
import { type SpanChange, spanRollupDeltas } from './span-rollup.js'
import { facetDeltas, type TraceState } from './trace-facets.js'

/** What a transaction did to spans and traces. */
export interface StoreChange {
  spans: readonly SpanChange[]
  /** The traces that it changed, as they were. */
  before: readonly TraceState[]
  /** The same and new ones, as they are; none of those that are gone. */
  after: readonly TraceState[]
  /** What of it moves feedback in the summary. */
  keys?: readonly KeyShift[]
}

/**
 * Brings every sum over spans and traces in step with a change, in its transaction: analytics, facets and totals,
 * sessions, feedback; and adds what the search skips traces by. Sessions are the only rows here that parallel writes
 * share.
 */
export async function updateSums(
  tx: Sql,
  { spans, before, after, keys = [] }: StoreChange,
  signatures: readonly TraceSignature[] = [],
): Promise<void> {
  const sessions = sessionDeltas(before, after)
  const additions = {
    spans: spanRollupDeltas(spans),
    facets: facetDeltas(before, after),
    signatures,
    sessions,
    keys,
  }
  if (Object.values(additions).every(added => added.length === 0)) return
  await addSums(tx, additions)
  const stale = sessions.filter(session => session.isStale)
  if (stale.length > 0) {
    await refreshSessionEnds(
      tx,
      stale.map(({ teamId, sessionId }) => ({ teamId, sessionId })),
    )
  }
}
