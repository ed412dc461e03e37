import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Logger as GraphileLogger, parseCrontab, type Runner, run, type TaskList } from 'graphile-worker'
import pg from 'pg'
import type { Logger } from '../../shared/log/logger.js'
import { connectSql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { crontab, jobList } from './index.js'
import type { Job } from './job.js'

export interface JobWorker {
  /** Whether jobs are being taken. */
  isRunning(): boolean
  /** Takes no more jobs, waits for those at work, at most 8 s; what is cut off runs again elsewhere. */
  stop(): Promise<void>
}

const CONCURRENCY = 4
const JOB_STATEMENT_MS = 60_000
const RESTART_AFTER_MS = 2_000
const STOP_WITHIN_MS = 8_000
const POLL_MS = 2_000
/** Of all workers together, with no success between them: after some 5 s. */
const MOST_FAILURES = 3 * CONCURRENCY

/**
 * Runs the queue inside this process, and starts it again for as long as the process lives. graphile-worker would not
 * take another job, nor end, when PostgreSQL drops the connection on which it first looks its tasks up: it keeps the
 * failed answer.
 */
export function startJobs(
  deps: Deps,
  databaseUrl: string,
  jobs: readonly Job[] = jobList,
  cronLines: readonly string[] = crontab,
): JobWorker {
  const stopping = new AbortController()
  const pool = jobPool(databaseUrl, CONCURRENCY + 2, deps.log, stopping.signal)
  pool.on('error', error => deps.log.warn({ error }, 'a job connection was lost'))
  const sql = connectSql(databaseUrl, { deadlineMs: JOB_STATEMENT_MS, max: CONCURRENCY, name: 'agh-jobs' })
  const state: { runner: Runner | null } = { runner: null }
  // An object of its own for every start: graphile-worker remembers by it.
  const options = () => ({
    pgPool: pool,
    concurrency: CONCURRENCY,
    noHandleSignals: true,
    pollInterval: POLL_MS,
    taskList: taskList(jobs, { ...deps, sql }),
    parsedCronItems: parseCrontab(cronLines.join('\n')),
    logger: graphileLogger(deps.log),
    events: failureWatch(() => state.runner?.stop().catch(() => {})),
  })
  const supervise = async () => {
    while (!stopping.signal.aborted) {
      try {
        const runner = await run(options())
        if (stopping.signal.aborted) await runner.stop()
        else state.runner = runner
        await runner.promise
      } catch (error) {
        deps.log.warn({ error }, 'the job queue stopped; starting it again')
      }
      state.runner = null
      await sleep(RESTART_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }
  const supervised = supervise()

  return {
    isRunning: () => state.runner !== null,
    async stop() {
      stopping.abort()
      const graceful = (async () => {
        await state.runner?.stop().catch(() => {})
        await supervised
      })()
      await Promise.race([graceful, sleep(STOP_WITHIN_MS, undefined, { ref: false })])
      await sql.end({ timeout: 1 })
      await Promise.race([pool.end().catch(() => {}), sleep(1_000, undefined, { ref: false })])
    },
  }
}

/**
 * Statements of the pool itself, the schedule's alone (graphile-worker's cron.js), are tried until they succeed: each may
 * be said twice. A schedule that fails at the full minute of an outage leaves a promise behind that nobody awaits, which
 * ends a Node process that does not listen for that.
 */
function jobPool(databaseUrl: string, max: number, log: Logger, stopping: AbortSignal): pg.Pool {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max,
    application_name: 'agh-jobs',
    connectionTimeoutMillis: 5_000,
    query_timeout: 30_000,
    keepAlive: true,
  })
  const query = pool.query.bind(pool)
  const patient = async (text: string, values?: unknown[]) => {
    for (;;) {
      try {
        return await query(text, values)
      } catch (error) {
        if (stopping.aborted) return { rows: [] }
        log.warn({ error }, 'the schedule of the jobs waits for PostgreSQL')
        await sleep(RESTART_AFTER_MS, undefined, { signal: stopping }).catch(() => {})
      }
    }
  }
  return Object.assign(pool, { query: patient })
}

/** @param giveUp called when workers only fail. */
function failureWatch(giveUp: () => void): EventEmitter {
  let failures = 0
  const events = new EventEmitter()
  const works = () => {
    failures = 0
  }
  events.on('worker:getJob:empty', works)
  events.on('job:start', works)
  events.on('worker:getJob:error', () => {
    if (++failures === MOST_FAILURES) giveUp()
  })
  return events
}

function taskList(jobs: readonly Job[], deps: Deps): TaskList {
  const entries = jobs.map(({ name, run: body }) => {
    const task = async (payload: unknown) => {
      const startedAt = deps.now()
      await body(payload, deps)
      deps.log.debug({ job: name, durationMs: deps.now() - startedAt }, 'job done')
    }
    return [name, task] as const
  })
  return Object.fromEntries(entries)
}

/** graphile-worker's lines in ours. Its own info lines repeat what `job done` says. */
function graphileLogger(log: Logger): GraphileLogger {
  return new GraphileLogger(() => (level, message) => {
    if (level === 'error') log.error({ from: 'graphile-worker' }, message)
    else if (level === 'warning') log.warn({ from: 'graphile-worker' }, message)
    else log.debug({ from: 'graphile-worker' }, message)
  })
}
