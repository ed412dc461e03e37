import { setTimeout as pause } from 'node:timers/promises'
import { periodStartMs } from '../../shared/ledger/period.js'
import { inTransaction, type Sql } from '../db/sql.js'
import { createTraceWeek, limitLockWaits } from './partition-queries.js'

export const WEEK_MS = 7 * 86_400_000
/** The control plane may stand still this long before rows go to the default partition. */
const WEEKS_AHEAD = 8

/**
 * Creates the partitions of this week and the next ones that are missing. A week that cannot be had now (a long query
 * holds the table) is for the next time: until then its rows go to the default partition, and creating the week moves
 * them out.
 *
 * @returns how many weeks were created.
 */
export async function createPartitionsAhead(sql: Sql, nowMs: number): Promise<number> {
  const thisWeekMs = periodStartMs('week', nowMs)!
  let created = 0
  for (let week = 0; week <= WEEKS_AHEAD; week++) {
    const monday = new Date(thisWeekMs + week * WEEK_MS).toISOString().slice(0, 10)
    const create = () =>
      inTransaction(sql, async tx => {
        await limitLockWaits(tx)
        return createTraceWeek(tx, monday)
      })
    if (await patiently(create)) created += 1
  }
  return created
}

const LOCK_NOT_AVAILABLE = '55P03'
const ATTEMPTS = 10

/** Runs what wants a whole table for itself. Whoever waits behind it is let through between the attempts. */
export async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === ATTEMPTS || (error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error
      await pause(100 + Math.random() * 400)
    }
  }
}

/** The end of a week named by its Monday, YYYYMMDD; epoch milliseconds. */
export const weekEndMs = (week: string): number =>
  Date.parse(`${week.slice(0, 4)}-${week.slice(4, 6)}-${week.slice(6)}T00:00:00.000Z`) + WEEK_MS
