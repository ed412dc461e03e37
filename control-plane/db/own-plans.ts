import { inSnapshot, inTransaction, type Sql } from './sql.js'

/**
 * Runs reads each with a plan for its own values. A connection otherwise keeps one plan for all values of a statement
 * after some runs, guessed without them: what is right for a rare model reads everything for a common one, and a window
 * of unknown ends opens every partition.
 */
export const withOwnPlans = <T>(sql: Sql, read: (tx: Sql) => Promise<T>): Promise<T> =>
  inTransaction(sql, tx => planned(tx, read))

/** The same for reads that must agree with each other, see `inSnapshot`. */
export const withOwnPlansInSnapshot = <T>(sql: Sql, read: (tx: Sql) => Promise<T>): Promise<T> =>
  inSnapshot(sql, tx => planned(tx, read))

async function planned<T>(tx: Sql, read: (tx: Sql) => Promise<T>): Promise<T> {
  await tx`set local plan_cache_mode = force_custom_plan`
  return read(tx)
}
