import type { Ledger } from '../shared/ledger/ledger.js'
import type { Logger } from '../shared/log/logger.js'
import type { ResponseCache } from './cache/response-cache.js'
import type { LiveCalls } from './chat/live-calls.js'
import type { ProxyConfig } from './config.js'
import type { Directory } from './directory/lookup.js'
import type { Forward } from './forward.js'
import type { ProxyMetrics } from './metrics.js'
import type { Upstream } from './providers/upstream.js'
import type { Spool } from './spool/spool.js'

/** Everything that a call needs, made in main.ts and passed down: no singletons. */
export interface Deps {
  config: ProxyConfig
  directory: Directory
  ledger: Ledger
  live: LiveCalls
  upstream: Upstream
  spool: Spool
  cache: ResponseCache
  forward: Forward
  metrics: ProxyMetrics
  log: Logger
  /** Epoch milliseconds. */
  now(): number
}
