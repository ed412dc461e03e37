import { EdgeExchange, type EdgeState } from './edge-exchange.js'
import type { HeaderList, RequestHeaders } from './exchange.js'
import type { UwsResponse } from './load-uwebsockets.js'
import { hasNoBody, type JoinedHeaders, joinedHeaders, sentValue, statusLine, without } from './reply-head.js'
import { chunkedBody } from './request-head.js'
import { UwsStream } from './uws-stream.js'

/**
 * True while uWebSockets.js parses: inside a handler or a body callback. A reply that closes the connection waits until
 * that is over, because a reply ended inside lets the parser go on with the bytes behind this request: a hidden second
 * request would be answered. As long as a reply is pending, the parser closes the connection on a second request.
 */
let parsing = false

/** Of a body that nobody reads yet. */
const heldBytesLimit = 64 * 1024

/** Runs what uWebSockets.js calls from its parser. `call` does not throw. */
export function insideParser(call: () => void): void {
  const outer = parsing
  parsing = true
  call()
  parsing = outer
}

export class UwsExchange extends EdgeExchange {
  protected readonly volatilePieces = true
  /** null as soon as it may not be touched any more: every call on it would throw. */
  private res: UwsResponse | null
  private stream: UwsStream | null = null
  private reading = false
  private paused = false
  /** What came before anybody wanted to read. */
  private held: { piece: Buffer; last: boolean }[] | null = null
  private heldBytes = 0
  private address: string | null = null

  constructor(
    server: EdgeState,
    res: UwsResponse,
    method: string,
    path: string,
    query: string,
    headers: RequestHeaders,
    declaredBytes: number,
  ) {
    super(server, method, path, query, headers, declaredBytes)
    this.res = res
    // The parser of this build takes malformed chunk ends for the end of the body (LF alone, `0\r\nXX`): what follows a
    // chunked body on its connection is not to be believed.
    this.closeAfter = declaredBytes === chunkedBody
    // First of all: a handler that returns with neither a reply nor this ends the process.
    res.onAborted(() => {
      this.res = null
      this.stream?.stop()
      this.gone()
    })
  }

  get remoteAddress(): string {
    if (this.address === null) {
      if (this.res === null) return ''
      this.address = readableAddress(Buffer.from(this.res.getRemoteAddressAsText()).toString('latin1'))
    }
    return this.address
  }

  get bufferedBytes(): number {
    return this.stream?.bufferedBytes ?? 0
  }

  /** After the handler returned without reading a body that is coming: keeps what comes, and little of it. */
  holdBody(): void {
    if (this.closed || this.received || this.reading) return
    this.held = []
    this.server.deadlines.add(this, this.server.limits.receiveMs)
    this.attach()
  }

  protected beginReading(): void {
    this.attach()
    const { held } = this
    if (held === null) return
    this.held = null
    for (const { piece, last } of held) this.incoming(piece, last)
    if (!this.received) this.resumeReading()
  }

  private attach(): void {
    if (this.reading || this.res === null) return
    this.reading = true
    this.res.onData((data, last) => {
      insideParser(() => {
        const piece = Buffer.from(data)
        if (this.held === null) return this.incoming(piece, last)
        this.held.push({ piece: Buffer.from(piece), last })
        this.heldBytes += piece.length
        // A paused socket does not tell that its client left, so short bodies are taken in.
        if (!last && this.heldBytes > heldBytesLimit) this.pauseReading()
      })
    })
  }

  protected pauseReading(): void {
    if (this.paused) return
    this.paused = true
    this.res?.pause()
  }

  protected resumeReading(): void {
    if (!this.paused) return
    this.paused = false
    this.res?.resume()
  }

  protected sendReply(status: number, headers: HeaderList, body: string | Uint8Array): void {
    const isHead = this.method === 'HEAD'
    const close = this.closing
    if (!isHead && !hasNoBody(status)) {
      const joined = joinedHeaders(this.requestId, without(headers, 'content-length'))
      this.afterParsing(close, res => {
        res.cork(() => {
          writeHead(res, status, joined)
          res.end(body, close)
        })
      })
      return
    }
    const rest = withoutBody(status, headers, body)
    const joined = joinedHeaders(this.requestId, close ? [...rest, 'connection', 'close'] : rest)
    this.afterParsing(close, res => {
      res.cork(() => {
        writeHead(res, status, joined, close ? '\r\n' : '')
        // With a length or with the wish to close, this build's endWithoutBody never finishes the reply. So the length
        // is a header of ours, and a head that is to close ends with a line break of ours, as in `sendLingering`.
        if (!close) res.endWithoutBody()
      })
      if (close) res.close()
    })
  }

  /** See `parsing`. */
  private afterParsing(wait: boolean, send: (res: UwsResponse) => void): void {
    const go = () => {
      const { res } = this
      if (res === null) return
      this.res = null
      send(res)
    }
    if (wait && parsing) setImmediate(go)
    else go()
  }

  /**
   * The native side has no reply that is complete for the client and still ours to close; once `end` was called the
   * response is dead while the body goes on coming. So the whole reply goes out as the tail of a header value. The
   * native side adds one line break behind it, which clients skip.
   */
  protected sendLingering(status: number, headers: HeaderList, body: string | Uint8Array): void {
    const length = String(Buffer.byteLength(body))
    const bare = this.method === 'HEAD' || hasNoBody(status)
    const rest = bare
      ? withoutBody(status, headers, body)
      : [...without(headers, 'content-length'), 'content-length', length]
    const joined = joinedHeaders(this.requestId, [...rest, 'connection', 'close'])
    const behind = bare ? '\r\n' : `\r\n\r\n${Buffer.from(body).toString('latin1')}`
    const { res } = this
    res?.cork(() => writeHead(res, status, joined, behind))
  }

  protected endLingering(): void {
    this.afterParsing(true, res => res.close())
  }

  protected sendHead(status: number, headers: HeaderList): void {
    const { res } = this
    if (res === null) return
    const close: HeaderList = this.closing ? ['connection', 'close'] : []
    const joined = joinedHeaders(this.requestId, [...without(headers, 'content-length'), ...close])
    this.stream = new UwsStream(
      res,
      () => writeHead(res, status, joined),
      this.server.deadlines,
      this.server.limits,
      () => this.cut(),
      (live, headWritten) => this.endStream(live, headWritten, status, joined),
    )
  }

  protected sendPiece(chunk: Uint8Array | string): boolean {
    if (this.method === 'HEAD' || this.stream === null) return true
    return this.stream.write(chunk)
  }

  protected sendEnd(): void {
    if (this.res !== null) this.stream?.end()
  }

  private endStream(res: UwsResponse, headWritten: boolean, status: number, joined: JoinedHeaders): void {
    this.res = null
    res.cork(() => {
      if (headWritten) {
        res.end()
        return
      }
      writeHead(res, status, joined)
      if (this.method === 'HEAD' || hasNoBody(status)) res.endWithoutBody()
      else res.end()
    })
  }

  onDrain(listener: () => void): void {
    this.stream?.onDrain(() => {
      if (!this.closed) this.guard(listener)
    })
  }

  protected cutConnection(): void {
    const { res } = this
    this.res = null
    this.stream?.stop()
    res?.close()
  }
}

/** @param behind goes out behind the headers: one character per byte. */
function writeHead(res: UwsResponse, status: number, joined: JoinedHeaders, behind = ''): void {
  // 200 OK is what the native side writes by itself.
  if (status !== 200) res.writeStatus(statusLine(status))
  // Strings go out as UTF-8, so anything beyond ASCII goes as bytes.
  const isText = joined.isAscii && behind === ''
  res.writeHeader('x-request-id', isText ? joined.text : Buffer.from(joined.text + behind, 'latin1'))
}

/** Headers of a reply without a body: to HEAD with the length that the body would have. */
function withoutBody(status: number, headers: HeaderList, body: string | Uint8Array): HeaderList {
  const rest = without(headers, 'content-length')
  if (hasNoBody(status)) return rest
  return [...rest, 'content-length', sentValue(headers, 'content-length') ?? String(Buffer.byteLength(body))]
}

/** uWebSockets.js writes IPv6 in full, and IPv4 on a dual-stack socket as mapped IPv6. */
function readableAddress(address: string): string {
  if (!address.includes(':')) return address
  const mapped = /^(?:0{1,4}:){5}ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(address)
  if (mapped !== null) {
    const [high, low] = [Number.parseInt(mapped[1]!, 16), Number.parseInt(mapped[2]!, 16)]
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
  }
  return new URL(`http://[${address}]`).hostname.slice(1, -1)
}
