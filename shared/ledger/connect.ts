import type { Logger } from 'pino'
import type { Ledger } from './ledger.js'
import { PostgresLedger } from './postgres-ledger.js'
import { PostgresStore } from './postgres-store.js'
import { type LedgerTuning, RedisLedger } from './redis-ledger.js'
import { RedisStore } from './redis-store.js'

export interface LedgerOptions extends LedgerTuning {
  /** Several URLs, separated by commas, name a cluster. */
  redisUrl?: string | undefined
  databaseUrl?: string | undefined
  /** Put before every Redis key; tests share one Redis. */
  keyPrefix?: string
  /** Default REDIS_DEADLINE_MS or POSTGRES_DEADLINE_MS; tests on a busy machine give more. */
  deadlineMs?: number
  log: Logger
}

/** A process may start while the store is away; this long it waits for a connection. */
const CONNECT_WAIT_MS = 1000

/**
 * The ledger on Redis when `redisUrl` is set, else on PostgreSQL (spec 4, section 1). Resolves even when the store is
 * down: commands throw LedgerUnavailable until it is back.
 */
export async function connectLedger(options: LedgerOptions): Promise<Ledger> {
  if (options.redisUrl !== undefined) {
    const store = new RedisStore(options.redisUrl, options.log, options.deadlineMs)
    await store.ready(CONNECT_WAIT_MS)
    return new RedisLedger(store, options)
  }
  if (options.databaseUrl === undefined) throw new Error('The ledger needs a redisUrl or a databaseUrl.')
  const store = new PostgresStore(options.databaseUrl, options.log, options.deadlineMs)
  await store.ready(CONNECT_WAIT_MS)
  return new PostgresLedger(store, options)
}
