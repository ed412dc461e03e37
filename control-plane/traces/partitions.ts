import { periodStartMs } from '../../shared/ledger/period.js'
import { inTransaction, type Sql } from '../db/sql.js'
import { createTraceWeek, limitLockWaits } from './partition-queries.js'

export const WEEK_MS = 7 * 86_400_000
/** The control plane may stand still this long before rows go to the default partition. */
const WEEKS_AHEAD = 8

/**
 * Creates the partitions of this week and the next ones that are missing; at start, and daily. A week that cannot be
 * had now (a long query holds the table) is for the next time: until then its rows go to the default partition, and
 * creating the week moves them out.
 *
 * @returns how many weeks were created.
 */
export async function createPartitionsAhead(sql: Sql, nowMs: number): Promise<number> {
  const thisWeekMs = periodStartMs('week', nowMs)!
  let created = 0
  for (let week = 0; week <= WEEKS_AHEAD; week++) {
    const monday = new Date(thisWeekMs + week * WEEK_MS).toISOString().slice(0, 10)
    const isNew = await inTransaction(sql, async tx => {
      await limitLockWaits(tx)
      return createTraceWeek(tx, monday)
    })
    if (isNew) created += 1
  }
  return created
}

/** The end of a week named by its Monday, YYYYMMDD; epoch milliseconds. */
export const weekEndMs = (week: string): number =>
  Date.parse(`${week.slice(0, 4)}-${week.slice(4, 6)}-${week.slice(6)}T00:00:00.000Z`) + WEEK_MS
