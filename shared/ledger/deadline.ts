/**
 * No ledger command waits longer. A healthy store answers in 1 to 10 ms; a frozen one never does, and the clients have
 * no deadline of their own that covers it (reliability notes, 4.3). Callers see LedgerUnavailable within one deadline
 * plus at most one timer tick.
 */
export const LEDGER_DEADLINE_MS = 250

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

  constructor(private readonly deadlineMs: number = LEDGER_DEADLINE_MS) {}

  /** @returns the function to call when the command is over, in time or not. */
  watch(expire: () => void): () => void {
    const entry: Waiting = { sentAtMs: performance.now(), isOver: false, expire }
    this.waiting.push(entry)
    this.timer ??= setTimeout(() => this.check(), this.deadlineMs)
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
    if (oldest !== undefined) {
      const leftMs = oldest.sentAtMs + this.deadlineMs - performance.now()
      this.timer = setTimeout(() => this.check(), Math.max(1, leftMs))
    }
  }
}
