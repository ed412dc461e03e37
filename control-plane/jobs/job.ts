import type { Deps } from '../deps.js'
import type { JobPayload } from './enqueue.js'

/** A background job: its name in the queue and what it does. A body that throws is tried again, later and later. */
export interface Job {
  name: string
  run(payload: unknown, deps: Deps): Promise<void>
}

/**
 * @param run may run more than once for one job (the process died after the work and before the acknowledgement): make
 *   it idempotent. Its `deps.sql` has a deadline of a minute a statement.
 */
export const job = <P extends object = JobPayload>(
  name: string,
  run: (payload: P, deps: Deps) => Promise<void>,
): Job => ({ name, run: (payload, deps) => run((payload ?? {}) as P, deps) })
