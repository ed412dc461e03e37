import type { Sql } from '../db/sql.js'
import { refreshSessionEnds, upsertSessions } from '../sessions/rollup-queries.js'
import { sessionDeltas } from '../sessions/session-delta.js'
import { insertFacetDeltas, insertSpanDeltas } from './rollup-queries.js'
import { type SpanChange, spanRollupDeltas } from './span-rollup.js'
import { facetDeltas, type TraceState } from './trace-facets.js'

/** What a transaction did to spans and traces. */
export interface StoreChange {
  spans: readonly SpanChange[]
  /** The traces that it changed, as they were. */
  before: readonly TraceState[]
  /** The same and new ones, as they are; none of those that are gone. */
  after: readonly TraceState[]
}

/**
 * Brings every sum over spans and traces in step with a change, in its transaction: analytics, facets and totals,
 * sessions. Sessions come last: theirs are the only rows that parallel writes have in common.
 */
export async function updateSums(tx: Sql, { spans, before, after }: StoreChange): Promise<void> {
  const rollups = spanRollupDeltas(spans)
  const facets = facetDeltas(before, after)
  const sessions = sessionDeltas(before, after)
  // Sent in one go; PostgreSQL takes them in this order.
  await Promise.all([
    rollups.length > 0 && insertSpanDeltas(tx, rollups),
    facets.length > 0 && insertFacetDeltas(tx, facets),
    sessions.length > 0 && upsertSessions(tx, sessions),
  ])
  const stale = sessions.filter(session => session.isStale)
  if (stale.length > 0) {
    await refreshSessionEnds(
      tx,
      stale.map(({ teamId, sessionId }) => ({ teamId, sessionId })),
    )
  }
}
