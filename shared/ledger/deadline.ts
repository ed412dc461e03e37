/**
 * No command on Redis waits longer. A healthy store answers in 1 to 10 ms; a frozen one never does, and the clients
 * have no deadline of their own that covers it (reliability notes, 4.3).
 */
export const REDIS_DEADLINE_MS = 250
/** PostgreSQL gets longer: a checkpoint or a new connection (fork, password check, first plan) can take 100s of ms. */
export const POSTGRES_DEADLINE_MS = 500

/**
 * A connection that has answered nothing for so long while asked is given up and made anew: a socket whose peer has
 * vanished without a word would stay open for many minutes. Not sooner, because late answers of a store that was only
 * frozen are worth having: what they admitted is given back.
 */
export const SILENCE_MS = 5_000

interface Waiting {
  sentAtMs: number
  isOver: boolean
  expire(): void
}

/**
 * Deadlines of many commands with one timer: every command has the same deadline, so they expire in the order in which
 * they were sent. A timer per command would cost more than the command.
 */
export class Deadlines {
  private readonly waiting: Waiting[] = []
  private timer: NodeJS.Timeout | null = null

  constructor(private readonly deadlineMs: number) {}

  /** @returns the function to call when the command is over, in time or not. */
  watch(expire: () => void): () => void {
    const entry: Waiting = { sentAtMs: performance.now(), isOver: false, expire }
    this.waiting.push(entry)
    this.timer ??= setTimeout(() => this.due(), this.deadlineMs)
    return () => {
      entry.isOver = true
    }
  }

  /** Expires everything that still waits. */
  close(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    for (const entry of this.waiting.splice(0)) if (!entry.isOver) entry.expire()
  }

  /**
   * Timers run before input is read. After a stall of this process the answers may lie in the sockets already, so one
   * round of input goes first: only silence of the store counts as silence.
   */
  private due(): void {
    setImmediate(() => this.check())
  }

  private check(): void {
    this.timer = null
    const dueMs = performance.now() - this.deadlineMs + 1
    let over = 0
    for (const entry of this.waiting) {
      if (!entry.isOver && entry.sentAtMs > dueMs) break
      over++
      if (!entry.isOver) entry.expire()
    }
    this.waiting.splice(0, over)
    const oldest = this.waiting[0]
    if (oldest === undefined) return
    const leftMs = oldest.sentAtMs + this.deadlineMs - performance.now()
    this.timer = setTimeout(() => this.due(), Math.max(1, leftMs))
  }
}
