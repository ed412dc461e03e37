import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Timed, unlisted } from './deadlines.js'
import { EdgeExchange, type EdgeState } from './edge-exchange.js'
import type { HeaderList, RequestHeaders } from './exchange.js'
import { checkHeaders, hasNoBody, sentValue, without } from './reply-head.js'

export class NodeExchange extends EdgeExchange {
  readonly remoteAddress: string
  protected readonly volatilePieces = false
  private reading = false
  private drained: (() => void) | null = null
  private blocked = false
  /** Written although the producer was told to wait. */
  private surplusBytes = 0
  /** Cuts a client that takes nothing for `drainMs` while something waits for it. */
  private readonly stalled: Timed
  private bytesTaken = 0
  private beyondAscii = false

  constructor(
    server: EdgeState,
    private readonly req: IncomingMessage,
    private readonly res: ServerResponse,
    path: string,
    query: string,
    headers: RequestHeaders,
    declaredBytes: number,
  ) {
    super(server, req.method ?? '', path, query, headers, declaredBytes)
    this.remoteAddress = (req.socket.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/, '')
    this.stalled = { slot: unlisted, expiresAtTick: 0, expire: () => this.checkProgress() }
    // Errors of a broken connection come as 'close' too; without listeners they would end the process.
    req.on('error', () => {})
    res.on('error', () => {})
    res.on('close', () => {
      this.server.deadlines.remove(this.stalled)
      this.gone()
    })
    res.on('drain', () => {
      this.blocked = false
      this.server.deadlines.remove(this.stalled)
      if (!this.closed && this.drained !== null) this.guard(this.drained)
    })
  }

  get bufferedBytes(): number {
    return this.res.writableLength
  }

  protected beginReading(): void {
    if (this.reading) return
    this.reading = true
    this.req.on('data', (piece: Buffer) => this.incoming(piece, false))
    this.req.on('end', () => this.incoming(Buffer.alloc(0), true))
  }

  protected pauseReading(): void {
    this.req.pause()
  }

  protected resumeReading(): void {
    this.req.resume()
  }

  protected sendReply(status: number, headers: HeaderList, body: string | Uint8Array): void {
    this.writeHead(status, this.withLength(status, headers, body))
    this.res.end(hasNoBody(status) ? '' : this.asBytes(body))
    this.watchDrain()
  }

  protected sendLingering(status: number, headers: HeaderList, body: string | Uint8Array): void {
    this.closeAfter = true
    this.writeHead(status, this.withLength(status, headers, body))
    if (this.method === 'HEAD' || hasNoBody(status)) this.res.flushHeaders()
    else this.res.write(this.asBytes(body))
  }

  protected endLingering(): void {
    this.res.end()
  }

  protected sendHead(status: number, headers: HeaderList): void {
    this.writeHead(status, without(headers, 'content-length'))
  }

  protected sendPiece(chunk: Uint8Array | string): boolean {
    this.surplusBytes = this.blocked ? this.surplusBytes + chunk.length : 0
    const room = this.res.write(this.asBytes(chunk))
    if (room) return true
    this.blocked = true
    this.watchDrain()
    // The producer was told to wait. What it sends all the same may pile up to here; one piece may be larger.
    if (Math.min(this.surplusBytes, this.bufferedBytes) > this.server.limits.bufferedBytes) this.cut()
    return false
  }

  protected sendEnd(): void {
    this.res.end()
    this.watchDrain()
  }

  onDrain(listener: () => void): void {
    this.drained = listener
  }

  protected cutConnection(): void {
    this.server.deadlines.remove(this.stalled)
    this.req.socket.destroy()
  }

  private writeHead(status: number, headers: HeaderList): void {
    this.beyondAscii = checkHeaders(headers)
    const close = this.closing ? ['connection', 'close'] : []
    this.res.writeHead(status, ['x-request-id', this.requestId, ...headers, ...close])
  }

  private withLength(status: number, headers: HeaderList, body: string | Uint8Array): HeaderList {
    const rest = without(headers, 'content-length')
    if (hasNoBody(status)) return rest
    const reported = this.method === 'HEAD' ? sentValue(headers, 'content-length') : undefined
    return [...rest, 'content-length', reported ?? String(Buffer.byteLength(body))]
  }

  /**
   * node:http writes a head together with a text body as UTF-8, which would change header bytes beyond ASCII; in front
   * of bytes it writes one byte per character.
   */
  private asBytes(body: string | Uint8Array): string | Uint8Array {
    return this.beyondAscii && typeof body === 'string' ? Buffer.from(body) : body
  }

  private watchDrain(): void {
    if (this.res.writableLength === 0) return
    this.bytesTaken = this.req.socket.bytesWritten - this.req.socket.writableLength
    if (this.stalled.slot === unlisted) this.server.deadlines.add(this.stalled, this.server.limits.drainMs)
  }

  private checkProgress(): void {
    const before = this.bytesTaken
    const { socket } = this.req
    const taken = socket.bytesWritten - socket.writableLength
    if (taken === before) {
      this.cut()
      return
    }
    this.bytesTaken = taken
    this.server.deadlines.add(this.stalled, this.server.limits.drainMs)
  }
}
