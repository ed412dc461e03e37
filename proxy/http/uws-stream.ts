import { type Deadlines, type Timed, unlisted } from './deadlines.js'
import type { UwsResponse } from './load-uwebsockets.js'

/** Largest piece handed over at once: what the native side holds beyond our count. */
const sliceBytes = 64 * 1024

/**
 * A streamed reply on uWebSockets.js with a bound on what waits for the client.
 *
 * The native `write` never refuses: it returns false and keeps what the kernel did not take, without telling how much
 * (201 MB were seen for a client that did not read). So after the first false everything waits here, where it is
 * counted, and goes over in slices for as long as they are taken whole. To learn whether the native buffer is empty
 * again, one byte is sent first: a false then costs 7 bytes, not a slice.
 */
export class UwsStream implements Timed {
  slot = unlisted
  expiresAtTick = 0
  private readonly waiting: Buffer[] = []
  private waitingBytes = 0
  /** What the native side may hold. */
  private nativeBytes = 0
  private blocked = false
  /** Written although the producer was told to wait. */
  private surplusBytes = 0
  private ending = false
  private listensForRoom = false
  private drained: (() => void) | null = null

  constructor(
    private readonly res: UwsResponse,
    /** Status line and headers, once. */
    private writeHead: (() => void) | null,
    private readonly deadlines: Deadlines,
    private readonly limits: { drainMs: number; bufferedBytes: number },
    /** Cuts the client off. */
    private readonly cut: () => void,
    /** Ends the reply; the response is dead afterwards. */
    private readonly finish: (res: UwsResponse, headWritten: boolean) => void,
  ) {}

  get bufferedBytes(): number {
    return this.waitingBytes + this.nativeBytes
  }

  onDrain(listener: () => void): void {
    this.drained = listener
  }

  write(chunk: Uint8Array | string): boolean {
    if (this.blocked) {
      this.enqueue(chunk)
      // The producer was told to wait. What it sends all the same may pile up to here; one piece may be larger.
      this.surplusBytes += chunk.length
      if (Math.min(this.surplusBytes, this.bufferedBytes) > this.limits.bufferedBytes) this.cut()
      return false
    }
    if (this.nativeBytes === 0 && chunk.length <= sliceBytes) {
      if (this.send(chunk)) return true
      this.nativeBytes = Buffer.byteLength(chunk)
    } else {
      this.enqueue(chunk)
      if (this.pump()) return true
    }
    this.block()
    return false
  }

  /** Ends the reply when all of it was handed over. */
  end(): void {
    if (this.waiting.length > 0) {
      this.ending = true
      return
    }
    this.deadlines.remove(this)
    this.finish(this.res, this.writeHead === null)
  }

  expire(): void {
    this.cut()
  }

  stop(): void {
    this.deadlines.remove(this)
    this.waiting.length = 0
    this.waitingBytes = 0
  }

  private enqueue(chunk: Uint8Array | string): void {
    const bytes =
      typeof chunk === 'string'
        ? Buffer.from(chunk)
        : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    this.waiting.push(bytes)
    this.waitingBytes += bytes.length
  }

  private send(chunk: Uint8Array | string): boolean {
    let taken = false
    // Corked: otherwise chunk length, chunk and their line ends are four system calls.
    this.res.cork(() => {
      this.writeHead?.()
      this.writeHead = null
      taken = this.res.write(chunk)
    })
    return taken
  }

  /** @returns true when nothing waits any more and the native side has taken it all. */
  private pump(): boolean {
    if (this.nativeBytes > 0) {
      if (!this.send(this.shift(1))) return false
      this.nativeBytes = 0
    }
    while (this.waiting.length > 0) {
      const slice = this.shift(sliceBytes)
      if (this.send(slice)) continue
      this.nativeBytes = slice.length
      return false
    }
    return true
  }

  private shift(atMost: number): Buffer {
    const first = this.waiting[0]!
    const slice = first.subarray(0, atMost)
    if (slice.length === first.length) this.waiting.shift()
    else this.waiting[0] = first.subarray(slice.length)
    this.waitingBytes -= slice.length
    return slice
  }

  private block(): void {
    this.blocked = true
    this.surplusBytes = 0
    this.deadlines.add(this, this.limits.drainMs)
    if (this.listensForRoom) return
    this.listensForRoom = true
    this.res.onWritable(() => this.room())
  }

  /** The kernel has room again. */
  private room(): boolean {
    if (!this.blocked) return true
    if (this.waiting.length === 0) {
      // Without something to write the native side keeps its rest; an empty cork makes it write. Whether that was all
      // of it is not told: nativeBytes stays, and the next write begins with one byte.
      this.res.cork(() => {})
    } else if (!this.pump()) {
      this.deadlines.add(this, this.limits.drainMs)
      return false
    }
    this.blocked = false
    this.deadlines.remove(this)
    if (this.ending) this.end()
    else this.drained?.()
    return true
  }
}
