import { AppError } from '../../shared/errors/app-error.js'
import type { ErrorCode } from '../../shared/errors/catalogue.js'
import { errorReply } from '../../shared/errors/envelope.js'
import { uuidV7 } from '../uuid-v7.js'
import { BodyBuffer } from './body-buffer.js'
import { Deadlines, type Timed, unlisted } from './deadlines.js'
import type { BodyResult, Exchange, Handler, HeaderList, ListenOptions, RequestHeaders } from './exchange.js'
import { defaultLimits, type EdgeLimits } from './limits.js'
import { chunkedBody } from './request-head.js'

/** What the exchanges of one server share. */
export interface EdgeState {
  readonly limits: EdgeLimits
  readonly deadlines: Deadlines
  readonly handler: Handler
  readonly onFault: (error: unknown, requestId: string) => void
  draining: boolean
  live: number
}

export function newEdgeState(options: ListenOptions, handler: Handler): EdgeState {
  const limits = { ...defaultLimits, ...options.limits }
  return {
    limits,
    deadlines: new Deadlines(tickOf(limits)),
    handler,
    onFault: options.onFault ?? (() => {}),
    draining: false,
    live: 0,
  }
}

/** One tick of the deadlines: fine enough for the shortest of them. */
export const tickOf = (limits: { receiveMs: number; drainMs: number; lingerMs: number }) =>
  Math.min(1000, Math.max(10, Math.min(limits.receiveMs, limits.drainMs, limits.lingerMs) / 4))

/** An unread body up to this size is discarded and the connection kept; a larger one is not worth waiting for. */
const discardableBytes = 256 * 1024

const streamedBodyFactor = 5

type Sink = (piece: Buffer, last: boolean) => void

/**
 * What both engines have in common: the life of an exchange, reading a body, deadlines, and that nothing a handler or a
 * listener throws gets out.
 */
export abstract class EdgeExchange implements Exchange, Timed {
  readonly requestId = uuidV7()
  closed = false
  slot = unlisted
  expiresAtTick = 0
  /** Close the connection after the reply. */
  protected closeAfter = false
  protected received: boolean
  protected started = false
  private failed = false
  private sink: Sink | null = null
  private aborted: (() => void) | null = null

  constructor(
    protected readonly server: EdgeState,
    readonly method: string,
    readonly path: string,
    readonly query: string,
    readonly headers: RequestHeaders,
    /** Bytes, or `chunkedBody`. */
    protected readonly declaredBytes: number,
  ) {
    this.received = declaredBytes === 0
    server.live++
  }

  abstract readonly remoteAddress: string
  abstract readonly bufferedBytes: number

  /** Pieces of a body are valid only during the call and must be copied to be kept. */
  protected abstract readonly volatilePieces: boolean
  protected abstract beginReading(): void
  protected abstract pauseReading(): void
  protected abstract resumeReading(): void
  protected abstract sendReply(status: number, headers: HeaderList, body: string | Uint8Array): void
  /** Sends the reply whole, and leaves the connection open until `endLingering`. */
  protected abstract sendLingering(status: number, headers: HeaderList, body: string | Uint8Array): void
  protected abstract endLingering(): void
  protected abstract sendHead(status: number, headers: HeaderList): void
  protected abstract sendPiece(chunk: Uint8Array | string): boolean
  protected abstract sendEnd(): void
  protected abstract cutConnection(): void
  abstract onDrain(listener: () => void): void

  protected get closing(): boolean {
    return this.closeAfter || this.server.draining
  }

  readBody(limitBytes: number, done: (result: BodyResult) => void): void {
    if (this.closed) return
    if (this.declaredBytes > limitBytes) {
      this.read(() => {}, this.server.limits.receiveMs)
      done({ kind: 'tooLarge' })
      return
    }
    const body = new BodyBuffer(this.declaredBytes)
    if (this.received) {
      done({ kind: 'complete', bytes: body.take() })
      return
    }
    this.read((piece, last) => {
      if (body.length + piece.length > limitBytes) {
        this.sink = null
        return done({ kind: 'tooLarge' })
      }
      body.add(piece)
      if (last) done({ kind: 'complete', bytes: body.take() })
    }, this.server.limits.receiveMs)
  }

  streamBody(onChunk: (chunk: Buffer) => void, onEnd: () => void): { pause(): void; resume(): void } {
    const control = {
      pause: () => !this.closed && !this.received && this.pauseReading(),
      resume: () => !this.closed && !this.received && this.resumeReading(),
    }
    if (this.closed) return control
    if (this.received) {
      // Later, so that the caller has the control in its hands first.
      queueMicrotask(() => this.guard(onEnd))
      return control
    }
    this.read((piece, last) => {
      if (piece.length > 0) onChunk(this.volatilePieces ? Buffer.from(piece) : piece)
      if (last && !this.closed) onEnd()
    }, this.server.limits.receiveMs * streamedBodyFactor)
    return control
  }

  private read(sink: Sink, withinMs: number): void {
    this.sink = sink
    this.server.deadlines.add(this, withinMs)
    this.beginReading()
  }

  onAbort(listener: () => void): void {
    this.aborted = listener
  }

  reply(status: number, headers: HeaderList, body: string | Uint8Array): void {
    if (this.closed) return
    if (this.started) throw new Error('reply() after startStream().')
    const unread = !this.received && this.lengthAtMost(discardableBytes) === false
    try {
      if (unread) this.sendLingering(status, headers, body)
      else this.sendReply(status, headers, body)
    } catch (error) {
      this.fault(error)
      return
    }
    this.finish()
    if (unread) this.linger()
  }

  startStream(status: number, headers: HeaderList): void {
    if (this.closed || this.started) return
    try {
      this.sendHead(status, headers)
      this.started = true
    } catch (error) {
      this.fault(error)
    }
  }

  write(chunk: Uint8Array | string): boolean {
    if (this.closed || chunk.length === 0) return true
    return this.sendPiece(chunk)
  }

  end(): void {
    if (this.closed) return
    this.finish()
    this.sendEnd()
  }

  destroy(): void {
    if (this.closed) return
    this.finish()
    this.cutConnection()
  }

  /** Refuses a request that never reached the handler. */
  refuse(code: ErrorCode, message: string, status?: number): void {
    this.closeAfter = true
    this.fail(new AppError(code, message, status === undefined ? {} : { status }))
  }

  handle(): void {
    try {
      const returned: unknown = this.server.handler(this)
      // A handler may be an async function: its type allows that.
      if (returned instanceof Promise) returned.catch((error: unknown) => this.fault(error))
    } catch (error) {
      this.fault(error)
    }
  }

  /** The deadline for receiving the body, or for lingering after the reply, has passed. */
  expire(): void {
    if (this.closed) this.endLingering()
    else this.cut()
  }

  /** The edge gives up on a client: for the handler it went away. */
  protected cut(): void {
    this.cutConnection()
    this.gone()
  }

  /** The client went away, or was cut off. */
  protected gone(): void {
    if (this.closed) {
      this.server.deadlines.remove(this)
      return
    }
    this.finish()
    if (this.aborted !== null) this.guard(this.aborted)
  }

  /** A piece of the body, from the engine. */
  protected incoming(piece: Buffer, last: boolean): void {
    if (last) {
      this.received = true
      this.server.deadlines.remove(this)
    }
    const { sink } = this
    if (last) this.sink = null
    if (sink === null) return
    try {
      sink(piece, last)
    } catch (error) {
      this.fault(error)
    }
  }

  protected guard(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.fault(error)
    }
  }

  /** Nothing a handler throws may reach the event loop, where it would end the process. */
  protected fault(error: unknown): void {
    if (!(error instanceof AppError)) this.server.onFault(error, this.requestId)
    this.fail(error)
  }

  private fail(error: unknown): void {
    if (this.closed) return
    if (this.started || this.failed) {
      this.destroy()
      return
    }
    this.failed = true
    const { status, headers, body } = errorReply(error, this.requestId)
    const list = ['content-type', 'application/json; charset=utf-8', ...Object.entries(headers).flat()]
    this.reply(status, list, JSON.stringify(body))
  }

  private finish(): void {
    this.closed = true
    this.sink = null
    this.server.live--
    this.server.deadlines.remove(this)
  }

  /**
   * Closing while the client still sends makes the kernel answer with a reset, which can destroy the reply on its way
   * (RFC 9112, section 9.6). So what still comes is discarded for a moment first.
   */
  private linger(): void {
    const { limits, deadlines } = this.server
    let discarded = 0
    this.sink = (piece, last) => {
      discarded += piece.length
      if (!last && discarded <= limits.lingerBytes) return
      deadlines.remove(this)
      this.sink = null
      this.endLingering()
    }
    this.beginReading()
    deadlines.add(this, limits.lingerMs)
  }

  private lengthAtMost(bytes: number): boolean {
    return this.declaredBytes !== chunkedBody && this.declaredBytes <= bytes
  }
}
