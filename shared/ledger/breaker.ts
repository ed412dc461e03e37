/** This many failures in a row open the breaker. */
export const BREAKER_FAILURES = 5
/** While it is open one command goes through each second, to see whether the store is back. */
export const BREAKER_PROBE_MS = 1000

/**
 * Keeps a store that does not answer from costing every call the whole deadline: after five failures in a row calls
 * fail at once, and one probe a second finds out when the store is back.
 */
export class Breaker {
  private failures = 0
  private nextProbeAtMs = 0

  get isOpen(): boolean {
    return this.failures >= BREAKER_FAILURES
  }

  /** The last command was answered. */
  get isFlawless(): boolean {
    return this.failures === 0
  }

  /** Whether a command may be sent now. While open, `true` hands out the second's one probe. */
  allows(): boolean {
    if (!this.isOpen) return true
    const nowMs = performance.now()
    if (nowMs < this.nextProbeAtMs) return false
    this.nextProbeAtMs = nowMs + BREAKER_PROBE_MS
    return true
  }

  succeeded(): void {
    this.failures = 0
  }

  failed(): void {
    this.failures++
    if (this.failures === BREAKER_FAILURES) this.nextProbeAtMs = performance.now() + BREAKER_PROBE_MS
  }
}
