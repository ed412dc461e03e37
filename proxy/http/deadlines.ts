/** Something that is cut when its time is up. The list keeps `slot` and `expiresAtTick`. */
export interface Timed {
  slot: number
  expiresAtTick: number
  expire(): void
}

/** `slot` of what is in no list. */
export const unlisted = -1

/**
 * Deadlines on a coarse wheel: a timer per request costs about 1 µs, an entry here some nanoseconds. Resolution is one
 * tick; a deadline never fires early.
 */
export class Deadlines {
  private readonly entries: Timed[] = []
  private readonly timer: NodeJS.Timeout
  private tick = 0

  constructor(private readonly tickMs: number) {
    this.timer = setInterval(() => this.sweep(), tickMs)
    this.timer.unref()
  }

  /** Starts a deadline, or starts it anew. */
  add(entry: Timed, afterMs: number): void {
    entry.expiresAtTick = this.tick + Math.ceil(afterMs / this.tickMs) + 1
    if (entry.slot !== unlisted) return
    entry.slot = this.entries.length
    this.entries.push(entry)
  }

  remove(entry: Timed): void {
    if (entry.slot === unlisted) return
    const last = this.entries.pop()!
    if (last !== entry) {
      this.entries[entry.slot] = last
      last.slot = entry.slot
    }
    entry.slot = unlisted
  }

  stop(): void {
    clearInterval(this.timer)
  }

  private sweep(): void {
    this.tick++
    // Backwards: removal moves the last entry, which was looked at already, into the gap.
    for (let i = this.entries.length - 1; i >= 0; i--) {
      const entry = this.entries[i]
      if (entry === undefined || entry.expiresAtTick > this.tick) continue
      this.remove(entry)
      entry.expire()
    }
  }
}
