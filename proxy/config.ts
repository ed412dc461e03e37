import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { z } from 'zod'
import { ConfigError, readEnvironment, sharedEnvironment } from '../shared/config/environment.js'

const MEGABYTE = 1024 * 1024

const megabytes = (fallback: number) =>
  z.coerce.number().positive().default(fallback).describe('a number of megabytes above 0')

const environment = z.object({
  ...sharedEnvironment,
  CONTROL_PLANE_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('an http:// or https:// URL'),
  PROXY_WORKERS: z.coerce.number().int().min(1).max(256).optional().describe('a number from 1 to 256'),
  PROXY_HTTP: z.enum(['uwebsockets', 'node']).optional().describe('uwebsockets or node'),
  /** Of one proxy origin: its workers share it evenly. */
  SPOOL_MAX_MB: megabytes(2048),
  SPOOL_SEGMENT_MB: megabytes(64),
  SPOOL_MIN_FREE_MB: megabytes(64),
})

/** The proxy's configuration, checked (spec 4, section 1). Read it once, at start. */
export interface ProxyConfig {
  host: string
  port: number
  /** Origin, no trailing slash. */
  controlPlaneUrl: string
  /** Origin of APP_URL, else the listener's own: the only pages whose cookies count. */
  ownOrigin: string
  dataDir: string
  aghSecret: string
  redisUrl: string | undefined
  databaseUrl: string | undefined
  metricsToken: string | undefined
  providerPrivateHosts: 'allow' | 'deny'
  ledgerDown: 'closed' | 'open'
  logLevel: string
  /** Processes that share the port. */
  workers: number
  /** Forces an implementation of the HTTP edge; undefined takes uWebSockets.js where it loads. */
  http: 'uwebsockets' | 'node' | undefined
  spool: {
    /** What one process may keep on disk. */
    maxBytes: number
    segmentBytes: number
    /** Below this much free disk new calls are refused. */
    minFreeBytes: number
  }
}

/** @throws ConfigError one line for the person at the terminal. */
export function readProxyConfig(env: Record<string, string | undefined> = process.env): ProxyConfig {
  const given = readEnvironment(environment, env)
  if (given.REDIS_URL === undefined && given.DATABASE_URL === undefined) {
    throw new ConfigError('DATABASE_URL is not set; the proxy keeps its ledger there, or in REDIS_URL.')
  }
  const workers = given.PROXY_WORKERS ?? availableParallelism()
  const controlPlaneUrl =
    given.CONTROL_PLANE_URL ?? `http://${urlHost(given.CONTROL_PLANE_HOST)}:${given.CONTROL_PLANE_PORT}`
  return {
    host: given.HOST,
    port: given.PORT,
    controlPlaneUrl: controlPlaneUrl.replace(/\/+$/, ''),
    ownOrigin:
      given.APP_URL === undefined
        ? `http://${urlHost(given.HOST)}:${given.PORT}`
        : new URL(given.APP_URL).origin,
    dataDir: resolve(given.DATA_DIR),
    aghSecret: given.AGH_SECRET,
    redisUrl: given.REDIS_URL,
    databaseUrl: given.DATABASE_URL,
    metricsToken: given.METRICS_TOKEN,
    providerPrivateHosts: given.PROVIDER_PRIVATE_HOSTS,
    ledgerDown: given.LEDGER_DOWN,
    logLevel: given.LOG_LEVEL,
    workers,
    http: given.PROXY_HTTP,
    spool: {
      maxBytes: Math.floor((given.SPOOL_MAX_MB * MEGABYTE) / workers),
      segmentBytes: Math.floor(given.SPOOL_SEGMENT_MB * MEGABYTE),
      minFreeBytes: Math.floor(given.SPOOL_MIN_FREE_MB * MEGABYTE),
    },
  }
}

/** An address that means "every interface" is reached at loopback; IPv6 takes brackets in a URL. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
