import { readFileSync, readlinkSync } from 'node:fs'

/**
 * A limit on the time that a thread works. On a machine with more to do than it has cores, a thread may wait for 100 ms
 * before it runs for one; so where the kernel tells what a thread has run (Linux), the limit is on that, and on ten times
 * as much of the wall clock. Elsewhere it is the wall clock's alone.
 */
export class ThreadClock {
  readonly limitMs: number
  readonly #thread: string | null
  readonly #startedMs = performance.now()
  readonly #workedBeforeMs: number | null

  /** @param thread from `thisThread`, called in that thread. */
  constructor(limitMs: number, thread: string | null) {
    this.limitMs = limitMs
    this.#thread = thread
    this.#workedBeforeMs = workedMs(thread)
  }

  /** Milliseconds until it makes sense to ask again; 0: the time is over. */
  leftMs(): number {
    const wallMs = performance.now() - this.#startedMs
    if (wallMs < this.limitMs) return this.limitMs - wallMs
    const worked = workedMs(this.#thread)
    if (worked === null || this.#workedBeforeMs === null || wallMs >= MOST_WALL * this.limitMs) return 0
    // It counts in scheduler ticks, up to 4 ms: what is left of one is not waited for.
    return Math.max(0, this.limitMs - (worked - this.#workedBeforeMs) - TICK_MS)
  }
}

const MOST_WALL = 10
const TICK_MS = 4

/** The calling thread, for a clock in any thread of the process; null where there is no such thing. */
export function thisThread(): string | null {
  try {
    const thread = `/proc/self/task/${readlinkSync('/proc/thread-self').split('/').at(-1)}`
    return workedMs(thread) === null ? null : thread
  } catch {
    return null
  }
}

/** The first figure of schedstat: nanoseconds on a core. Some 10 µs. */
function workedMs(thread: string | null): number | null {
  if (thread === null) return null
  try {
    const ns = Number(readFileSync(`${thread}/schedstat`, 'latin1').split(' ')[0])
    return ns > 0 ? ns / 1e6 : null
  } catch {
    return null
  }
}
