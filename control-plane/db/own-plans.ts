import { inTransaction, type Sql } from './sql.js'

/**
 * Runs reads each with a plan for its own values. A connection otherwise keeps one plan for all values of a statement
 * after some runs, guessed without them: what is right for a rare model reads everything for a common one, and a window
 * of unknown ends opens every partition.
 */
export const withOwnPlans = <T>(sql: Sql, read: (tx: Sql) => Promise<T>): Promise<T> =>
  inTransaction(sql, async tx => {
    await tx`set local plan_cache_mode = force_custom_plan`
    return read(tx)
  })
