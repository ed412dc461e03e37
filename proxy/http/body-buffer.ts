/** A declared length is believed up to here before the bytes have come: a liar costs one such buffer. */
const trustedBytes = 1024 * 1024

/**
 * Collects a body. What comes in one piece is copied once; what comes in several is copied once when its length was
 * declared, and amortised twice when it was not.
 */
export class BodyBuffer {
  private buffer: Buffer | null = null
  private used = 0

  /** @param declaredBytes negative when unknown. */
  constructor(private readonly declaredBytes: number) {}

  get length(): number {
    return this.used
  }

  add(piece: Uint8Array): void {
    const needed = this.used + piece.length
    if (this.buffer === null || needed > this.buffer.length) this.grow(needed)
    this.buffer!.set(piece, this.used)
    this.used = needed
  }

  take(): Buffer {
    return this.buffer === null ? Buffer.alloc(0) : this.buffer.subarray(0, this.used)
  }

  private grow(needed: number): void {
    const doubled = this.buffer === null ? needed : needed * 2
    const wanted =
      this.declaredBytes < 0
        ? doubled
        : this.declaredBytes <= trustedBytes
          ? this.declaredBytes
          : Math.min(doubled, this.declaredBytes)
    const larger = Buffer.allocUnsafe(Math.max(wanted, needed))
    if (this.buffer !== null) this.buffer.copy(larger, 0, 0, this.used)
    this.buffer = larger
  }
}
