import { setTimeout as pause } from 'node:timers/promises'

const ATTEMPTS = 5
/** Deadlock and serialization failure; a lock that was not had in time. The next attempt finds another world. */
const passing = new Set(['40P01', '40001', '55P03'])

/** A row was on its way to the default partition while its week was being created: no constraint of ours by name. */
const isMovedPartition = (error: unknown) =>
  sqlState(error) === '23514' && !(error as { constraint_name?: string }).constraint_name

const isPassing = (error: unknown) => passing.has(sqlState(error)) || isMovedPartition(error)

/** Runs a transaction again, up to five times in all, when it failed only because of what ran beside it. */
export async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === ATTEMPTS || !isPassing(error)) throw error
      // Up to 20 ms, then 40, 80, 160: two that collided must not do so again in step.
      await pause(Math.random() * 10 * 2 ** attempt)
    }
  }
}

/** PostgreSQL's five characters; empty for an error that is not its own. */
export function sqlState(error: unknown): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** A value that PostgreSQL will never take: data exceptions, constraint violations, its limits. */
export const isAboutData = (error: unknown) => /^(21|22|23|54)/.test(sqlState(error))

/** The statement deadline passed on a server that answers: less at a time may do. */
export const isTooMuch = (error: unknown) => sqlState(error) === '57014'

/** By code and name only: PostgreSQL's messages quote the value that it refused, which may be a prompt. */
export function refusal(error: unknown): string {
  const named = error as { constraint_name?: string; column_name?: string; routine?: string }
  const where = named.constraint_name ?? named.column_name ?? named.routine ?? ''
  return `PostgreSQL refused it: ${sqlState(error)} ${where}`.trim()
}
