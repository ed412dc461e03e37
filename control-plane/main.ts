import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { ConfigError } from '../shared/config/environment.js'
import { connectLedger } from '../shared/ledger/connect.js'
import { createLogger, type Logger } from '../shared/log/logger.js'
import { deriveSecret } from '../shared/secrets/derive.js'
import { createVault } from '../shared/secrets/vault.js'
import { buildApp } from './app.js'
import { readConfig } from './config.js'
import { SchemaError } from './db/migrations.js'
import { checkSchema } from './db/schema-check.js'
import { connectSql, type Sql } from './db/sql.js'
import type { Deps } from './deps.js'
import { startRepublisher } from './gateway/publish.js'
import { createJobs } from './jobs/enqueue.js'
import { type JobWorker, startJobs } from './jobs/worker.js'
import { createMailer } from './mail/mailer.js'
import { createSandbox } from './sandbox/create-sandbox.js'

/** PostgreSQL may come up beside this process. */
const WAIT_FOR_DATABASE_MS = 30_000
/** Requests at work get this long; then their sockets are closed. */
const DRAIN_MS = 8_000

export interface RunningControlPlane {
  /** The origin it listens on. */
  url: string
  log: Logger
  /** Takes no new request, finishes those at work, stops the jobs, closes every client. */
  close(): Promise<void>
}

/**
 * Starts the control plane: configuration, clients, schema check, listener, jobs.
 *
 * @param env defaults to the process's own.
 * @throws ConfigError or SchemaError with one line for the person at the terminal.
 */
export async function startControlPlane(
  env?: Record<string, string | undefined>,
): Promise<RunningControlPlane> {
  const config = readConfig(env)
  const log = createLogger('control-plane', config.LOG_LEVEL)
  const sql = connectSql(config.DATABASE_URL)
  const closers: (() => unknown)[] = [() => sql.end({ timeout: 2 })]
  const close = async () => {
    for (let last = closers.pop(); last !== undefined; last = closers.pop()) await last()
  }
  try {
    await waitForSchema(sql, log)
    const ledger = await connectLedger({ redisUrl: config.REDIS_URL, databaseUrl: config.DATABASE_URL, log })
    closers.push(() => ledger.close())
    const mail = createMailer(config, log)
    closers.push(() => mail.close())
    const vault = createVault([deriveSecret(config.AGH_SECRET, 'provider-keys')])
    const sandbox = createSandbox()
    closers.push(() => sandbox.close())
    const deps: Deps = { config, sql, ledger, vault, mail, jobs: createJobs(), sandbox, log, now: Date.now }
    const url = await serve(deps, closers)
    log.info({ url }, 'the control plane listens')
    return { url, log, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Listens first and takes jobs after: a process that cannot have its port does no work. Closed in the opposite order. */
async function serve(deps: Deps, closers: (() => unknown)[]): Promise<string> {
  const { CONTROL_PLANE_HOST: host, CONTROL_PLANE_PORT: port } = deps.config
  let worker: JobWorker | null = null
  const app = buildApp(deps, { processMetrics: true, jobsRun: () => worker?.isRunning() ?? false })
  const url = await app.listen({ host, port })
  const republisher = startRepublisher(deps)
  closers.push(() => republisher.stop())
  worker = startJobs(deps, deps.config.DATABASE_URL)
  // Both at once: one after the other they would take longer than `agh start` waits before it kills.
  closers.push(() => Promise.all([drain(app), worker?.stop()]))
  return url
}

async function drain(app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), DRAIN_MS)
  await app.close()
  clearTimeout(cut)
}

/** @throws SchemaError at once for a wrong schema; ConfigError when PostgreSQL stays away. */
async function waitForSchema(sql: Sql, log: Logger): Promise<void> {
  const until = Date.now() + WAIT_FOR_DATABASE_MS
  for (;;) {
    try {
      await checkSchema(sql)
      return
    } catch (error) {
      if (error instanceof SchemaError) throw error
      const reason = (error as Error).message || String((error as { code?: string }).code)
      if (Date.now() > until) throw new ConfigError(`PostgreSQL at DATABASE_URL cannot be used: ${reason}`)
      log.warn({ reason }, 'PostgreSQL cannot be reached yet')
      await sleep(1_000)
    }
  }
}

/** The process: ends on SIGTERM or SIGINT after draining; a second signal ends it at once. */
async function main(): Promise<void> {
  const running = await startControlPlane()
  let isStopping = false
  const stop = (code: number) => {
    if (isStopping) process.exit(1)
    isStopping = true
    void running.close().finally(() => process.exit(code))
  }
  // One request's forgotten promise must not end everybody else's; an exception leaves unknown state behind.
  process.on('unhandledRejection', error => running.log.error({ err: error }, 'unhandled rejection'))
  process.on('uncaughtException', error => {
    running.log.fatal({ err: error }, 'uncaught exception')
    // Not 0, which tells whoever watches the process that it may stay down.
    stop(1)
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop(0))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main().catch(error => {
    const isForPeople = error instanceof ConfigError || error instanceof SchemaError
    console.error(isForPeople ? `agh: ${error.message}` : error)
    process.exit(1)
  })
}
