import { Readable } from 'node:stream'
import { type Dispatcher, Pool } from 'undici'
import { AppError, notFound, unavailable, validation } from '../shared/errors/app-error.js'
import { errorReply } from '../shared/errors/envelope.js'
import type { Logger } from '../shared/log/logger.js'
import { isInternalPath } from './forward-path.js'
import type { Exchange } from './http/exchange.js'
import { bodyLength } from './http/request-head.js'

/** The largest body of any route of the control plane: trace ingestion (spec 4, section 2). */
const bodyLimitBytes = 20 * 1024 * 1024

/** A reply of known length up to this size goes out in one piece, with its length; others are streamed. */
const wholeReplyBytes = 256 * 1024

/** Never passed on: they belong to one connection (RFC 9110, section 7.6.1), or we write them ourselves. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** What a client says about itself that only this process may say. */
const untrusted = new Set([
  'host',
  'expect',
  'forwarded',
  'x-real-ip',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-forwarded-prefix',
  'x-request-id',
  'x-agh-internal',
])

/** Of the reply; the edge writes its own. */
const ownReplyHeaders = new Set(['date', 'x-request-id'])

export interface Forward {
  handle(exchange: Exchange): void
  close(): Promise<void>
}

/**
 * Hands every path that the proxy does not own to the control plane, streamed both ways (spec 4, section 1).
 *
 * Fails closed: without the control plane 503 UNAVAILABLE; `/internal/…` in any spelling is 404, because the internal
 * endpoints are for proxies alone. The control plane believes `x-forwarded-*` and `x-request-id` only of a peer that
 * shows the internal token in `x-agh-internal`.
 */
export function createForward(options: {
  controlPlaneUrl: string
  internalToken: string
  log: Logger
}): Forward {
  const pool = new Pool(options.controlPlaneUrl, {
    connections: 128,
    pipelining: 1,
    // Below the control plane's own: a request must not meet a connection that is being closed.
    keepAliveTimeout: 4_000,
    connect: { timeout: 2_000 },
    headersTimeout: 120_000,
    bodyTimeout: 120_000,
  })
  return {
    handle(exchange) {
      const { method } = exchange
      if (isInternalPath(exchange.path) || method === 'CONNECT' || method === 'TRACE') {
        replyError(exchange, notFound('Route'))
        return
      }
      const length = bodyLength(exchange.headers.flat)
      if (length > bodyLimitBytes) {
        replyError(exchange, bodyTooLarge())
        return
      }
      new Forwarding(exchange, options.log).start(pool, options.internalToken, length)
    },
    close: () => pool.close(),
  }
}

const bodyTooLarge = () => new AppError('PAYLOAD_TOO_LARGE', 'Request body is larger than 20 MB.')

function replyError(exchange: Exchange, error: AppError): void {
  const { status, headers, body } = errorReply(error, exchange.requestId)
  const list = ['content-type', 'application/json; charset=utf-8', ...Object.entries(headers).flat()]
  exchange.reply(status, list, JSON.stringify(body))
}

/** One request on its way to the control plane and back. Legacy dispatch handler: raw headers, 28 µs cheaper. */
class Forwarding implements Dispatcher.DispatchHandler {
  private abort: ((error: Error) => void) | null = null
  private upload: Readable | null = null
  private resumeReply: (() => void) | null = null
  private status = 0
  private replyHeaders: string[] = []
  /** Pieces of a reply that is sent whole. null: streamed. */
  private whole: Buffer[] | null = []
  private stopped = false

  constructor(
    private readonly exchange: Exchange,
    private readonly log: Logger,
  ) {}

  start(pool: Pool, internalToken: string, declaredBytes: number): void {
    const { exchange } = this
    exchange.onAbort(() => this.stop(new Error('The client went away.')))
    const body = declaredBytes === 0 ? null : this.uploadOf(exchange)
    try {
      pool.dispatch(
        {
          path: exchange.query === '' ? exchange.path : `${exchange.path}?${exchange.query}`,
          method: exchange.method as Dispatcher.HttpMethod,
          headers: requestHeaders(exchange, internalToken),
          body,
        },
        this,
      )
    } catch (error) {
      this.onError(error as Error)
    }
  }

  onConnect(abort: (error?: Error) => void): void {
    if (this.stopped) abort(new Error('The client went away.'))
    else this.abort = abort
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (status < 200) return true
    this.status = status
    this.resumeReply = resume
    const { list, length } = replyHeaders(rawHeaders)
    this.replyHeaders = list
    const bodiless = this.exchange.method === 'HEAD' || status === 204 || status === 304
    if (bodiless) {
      if (length !== null) list.push('content-length', length)
    } else if (length === null || Number(length) > wholeReplyBytes) {
      this.whole = null
      this.exchange.startStream(status, list)
      this.exchange.onDrain(() => this.resumeReply?.())
    }
    return true
  }

  onData(chunk: Buffer): boolean {
    if (this.stopped) return true
    if (this.whole === null) return this.exchange.write(chunk)
    this.whole.push(chunk)
    return true
  }

  onComplete(): void {
    if (this.stopped) return
    if (this.whole === null) this.exchange.end()
    else this.exchange.reply(this.status, this.replyHeaders, Buffer.concat(this.whole))
    this.stop(null)
  }

  onError(error: Error): void {
    if (this.stopped) return
    this.stopped = true
    this.upload?.destroy()
    const { exchange } = this
    if ((error as NodeJS.ErrnoException).code === 'UND_ERR_INVALID_ARG') {
      // The HTTP client refuses the request's own method or headers.
      replyError(exchange, validation('Malformed HTTP request.'))
      return
    }
    this.log.warn({ err: error, requestId: exchange.requestId, path: exchange.path }, 'control plane failed')
    if (this.status !== 0 && this.whole === null) exchange.destroy()
    else replyError(exchange, unavailable('The control plane cannot be reached.', 1, error))
  }

  private stop(error: Error | null): void {
    this.stopped = true
    this.upload?.destroy()
    if (error !== null) this.abort?.(error)
  }

  /** The client's body as a stream that holds the client back when the control plane is slow. */
  private uploadOf(exchange: Exchange): Readable {
    let received = 0
    let paused = false
    const upload = new Readable({
      read: () => {
        if (paused) control.resume()
        paused = false
      },
    })
    const control = exchange.streamBody(
      chunk => {
        received += chunk.length
        if (received > bodyLimitBytes) {
          replyError(exchange, bodyTooLarge())
          this.stop(new Error('The body is too large.'))
        } else if (!upload.destroyed && !upload.push(chunk)) {
          paused = true
          control.pause()
        }
      },
      () => {
        if (!upload.destroyed) upload.push(null)
      },
    )
    // A failed upload shows as the failure of the request.
    upload.on('error', () => {})
    this.upload = upload
    return upload
  }
}

function requestHeaders(exchange: Exchange, internalToken: string): string[] {
  const { flat } = exchange.headers
  const named = namedByConnection(exchange.headers.get('connection'))
  const list: string[] = []
  for (let i = 0; i < flat.length; i += 2) {
    const name = flat[i]!
    if (hopByHop.has(name) || untrusted.has(name) || named.has(name)) continue
    list.push(name, flat[i + 1]!)
  }
  list.push('x-request-id', exchange.requestId, 'x-agh-internal', internalToken)
  list.push('x-forwarded-for', exchange.remoteAddress, 'x-forwarded-proto', 'http')
  list.push('x-forwarded-host', exchange.headers.get('host') ?? '')
  return list
}

function replyHeaders(raw: Buffer[]): { list: string[]; length: string | null } {
  const pairs: [string, string][] = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    pairs.push([raw[i]!.toString('latin1').toLowerCase(), raw[i + 1]!.toString('latin1')])
  }
  const connection = pairs.find(([name]) => name === 'connection')?.[1]
  const named = namedByConnection(connection)
  const length = pairs.find(([name]) => name === 'content-length')?.[1] ?? null
  const kept = pairs.filter(
    ([name]) =>
      name !== 'content-length' && !hopByHop.has(name) && !ownReplyHeaders.has(name) && !named.has(name),
  )
  return { list: kept.flat(), length }
}

/** Headers that the Connection header declares to be of this connection only. Never the length of the body. */
function namedByConnection(value: string | undefined): Set<string> {
  if (value === undefined) return new Set()
  const names = value.split(',').map(name => name.trim().toLowerCase())
  return new Set(names.filter(name => name !== 'content-length'))
}
