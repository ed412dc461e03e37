import { inTransaction, type Sql } from '../db/sql.js'
import { foldFeedbackDeltas } from '../feedback/sum-queries.js'
import { foldFacetDeltas, foldSpanDeltas } from './rollup-queries.js'

/** Deltas a transaction: some hundred milliseconds. */
const BATCH = 10_000
/** What came meanwhile is for the next time. */
const MAX_BATCHES = 200

/**
 * Folds what was appended into the sums that analytics, facets, totals and the feedback summary read. Readers add both
 * up, so this changes what a question costs and never its answer. Safe to kill, to repeat and to run beside itself.
 *
 * @returns how many deltas were folded.
 */
export async function foldRollups(sql: Sql): Promise<number> {
  let folded = 0
  for (const fold of [foldSpanDeltas, foldFacetDeltas, foldFeedbackDeltas])
    folded += await untilEmpty(sql, fold)
  return folded
}

async function untilEmpty(sql: Sql, fold: (tx: Sql, limit: number) => Promise<number>): Promise<number> {
  let folded = 0
  for (let batch = 0; batch < MAX_BATCHES; batch++) {
    const taken = await inTransaction(sql, tx => fold(tx, BATCH))
    folded += taken
    if (taken < BATCH) break
  }
  return folded
}
