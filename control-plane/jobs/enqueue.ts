import type { Sql } from '../db/sql.js'

/** What a job may carry: JSON. */
export type JobPayload = Record<string, unknown>

export interface EnqueueOptions {
  /** While a job with this key waits, another one replaces it. */
  key?: string
  /** Not before this instant, epoch milliseconds. */
  runAtMs?: number
  maxAttempts?: number
}

export interface Jobs {
  /**
   * Adds a job in the caller's transaction: it exists if and only if the change that makes it necessary does
   * (design D8).
   */
  enqueue(tx: Sql, name: string, payload: JobPayload, options?: EnqueueOptions): Promise<void>
}

/** Jobs over graphile-worker's own `add_job`, which runs in whatever transaction calls it. */
export const createJobs = (): Jobs => ({
  async enqueue(tx, name, payload, options = {}) {
    const runAt = options.runAtMs === undefined ? null : new Date(options.runAtMs)
    await tx`select 1 from graphile_worker.add_job(
      ${name}, ${tx.json(payload as never)}::json, run_at => ${runAt}::timestamptz,
      max_attempts => ${options.maxAttempts ?? null}::int, job_key => ${options.key ?? null}::text)`
  },
})
