import cluster from 'node:cluster'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../shared/config/environment.js'
import { connectLedger } from '../shared/ledger/connect.js'
import { createLogger, type Logger } from '../shared/log/logger.js'
import { deriveSecret, internalToken } from '../shared/secrets/derive.js'
import { createVault } from '../shared/secrets/vault.js'
import { connectResponseCache } from './cache/response-cache.js'
import { createLiveCalls } from './chat/live-calls.js'
import { type ProxyConfig, readProxyConfig, urlHost } from './config.js'
import { type ControlPlaneClient, createControlPlaneClient } from './control-plane-client.js'
import type { Deps } from './deps.js'
import { createDirectory } from './directory/lookup.js'
import { createForward } from './forward.js'
import { tuneGarbageCollector } from './garbage-collector.js'
import type { HttpServer } from './http/exchange.js'
import { listen } from './http/listen.js'
import { createMetrics, type ProxyMetrics } from './metrics.js'
import { createUpstream } from './providers/upstream.js'
import { missingDependencies } from './readiness.js'
import { createHandler } from './server.js'
import { endOnSignals } from './signals.js'
import { openSpool } from './spool/spool.js'
import { joinSupervisor, metricsOfAllWorkers, superviseWorkers } from './workers.js'

export interface RunningProxy {
  /** Origin of the listener. */
  url: string
  engine: 'uwebsockets' | 'node'
  /** Drains: no new connections, live replies get 30 s, the spool ships what it can. */
  close(): Promise<void>
}

/** Live replies get this long once a drain has begun (design D15). */
const DRAIN_MS = 30_000
const DRAIN_POLL_MS = 20
/** What was cut settles its ledger and spool entries within this. */
const SETTLE_MS = 100

/**
 * Starts one proxy process and resolves when it listens. Dependencies may be down: they are connected to when needed.
 *
 * @param env this process's environment unless given.
 *
 * @throws ConfigError one line for the person at the terminal. @throws Error when the port is taken.
 */
export async function startProxy(
  env?: Record<string, string | undefined>,
  options: { drainMs?: number } = {},
): Promise<RunningProxy> {
  tuneGarbageCollector()
  const config = readProxyConfig(env)
  const log = createLogger('proxy', config.logLevel)
  const metrics = createMetrics()
  joinSupervisor(metrics.registry)
  const client = createControlPlaneClient(config.controlPlaneUrl, config.aghSecret)
  const deps = await connect(config, client, metrics, log)
  let draining = false
  const handler = createHandler(deps, {
    missing: async () => (draining ? ['draining'] : missingDependencies(deps, client)),
    metricsText: () => metricsOfAllWorkers(metrics.registry),
  })
  let server: HttpServer
  try {
    server = await listen(
      {
        host: config.host,
        port: config.port,
        shared: config.workers > 1,
        onFault: (error, requestId) => log.error({ err: error, requestId }, 'request failed'),
        ...(config.http && { engine: config.http }),
      },
      handler,
    )
  } catch (error) {
    await disconnect(deps, client)
    throw error
  }
  metrics.watch('agh_proxy_live_requests', 'Requests whose reply has not ended.', () => server.live)
  const url = `http://${urlHost(config.host)}:${server.port}`
  log.info({ url, engine: server.engine, controlPlane: config.controlPlaneUrl }, 'the proxy listens')

  let closing: Promise<void> | null = null
  async function drain(): Promise<void> {
    draining = true
    log.info({ live: server.live }, 'draining')
    server.stopListening()
    const end = performance.now() + (options.drainMs ?? DRAIN_MS)
    while (server.live > 0 && performance.now() < end) await sleep(DRAIN_POLL_MS)
    const cut = server.live
    server.close()
    if (cut > 0) await sleep(SETTLE_MS)
    await disconnect(deps, client)
    log.info({ cut }, 'drained')
  }
  return {
    url,
    engine: server.engine,
    close() {
      closing ??= drain()
      return closing
    },
  }
}

async function connect(
  config: ProxyConfig,
  client: ControlPlaneClient,
  metrics: ProxyMetrics,
  log: Logger,
): Promise<Deps> {
  const { redisUrl, databaseUrl, controlPlaneUrl, aghSecret } = config
  const ledger = await connectLedger({ redisUrl, databaseUrl, log })
  const live = createLiveCalls(ledger)
  const spool = openSpool({
    dir: join(config.dataDir, 'spool'),
    ...config.spool,
    ship: (body, signal) => client.ship(body, signal),
    metrics: metrics.spool,
    log,
  })
  metrics.watch('agh_spool_bytes', 'Bytes that wait to be committed.', () => spool.bytes)
  metrics.watch(
    'agh_spool_oldest_unacked_seconds',
    'Age of the oldest waiting record.',
    () => spool.lagMs / 1000,
  )
  metrics.watch('agh_proxy_live_holds', 'Reservations of calls in flight.', () => live.size)
  return {
    config,
    directory: createDirectory({
      client,
      vault: createVault([deriveSecret(aghSecret, 'provider-keys')]),
      metrics,
      log,
    }),
    ledger,
    live,
    upstream: createUpstream({ privateHosts: config.providerPrivateHosts }),
    spool,
    cache: connectResponseCache({ redisUrl, databaseUrl, log }),
    forward: createForward({ controlPlaneUrl, internalToken: internalToken(aghSecret), log }),
    metrics,
    log,
    now: Date.now,
  }
}

/** In the order in which things need each other: cut calls are recorded before the spool closes, then it ships. */
async function disconnect(deps: Deps, client: ControlPlaneClient): Promise<void> {
  deps.live.close()
  await deps.upstream.close()
  await deps.spool.close()
  await Promise.allSettled([deps.forward.close(), client.close(), deps.cache.close(), deps.ledger.close()])
}

/**
 * The program: one process, or PROXY_WORKERS of them on one port under a supervisor. Ends the process on SIGTERM,
 * SIGINT, or the parent's death, after a drain; a second signal ends it at once.
 *
 * @throws ConfigError as startProxy.
 */
export async function runProxy(): Promise<void> {
  const config = readProxyConfig()
  const log = createLogger('proxy', config.logLevel)
  if (config.workers > 1 && cluster.isPrimary) {
    endOnSignals(await superviseWorkers(config, fileURLToPath(import.meta.url), log), log)
    return
  }
  const running = await startProxy()
  endOnSignals({ drain: () => running.close() }, log)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  runProxy().catch((error: unknown) => {
    // One line for a person's mistake; a stack for ours.
    console.error(error instanceof ConfigError ? error.message : error)
    process.exit(error instanceof ConfigError ? 78 : 1)
  })
}
