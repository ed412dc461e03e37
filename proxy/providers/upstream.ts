import { buildConnector, type Client, type Dispatcher } from 'undici'
import type { AddressPolicy } from '../../shared/network/addresses.js'
import { Blocked, guardedConnect, guardedLookup, type Resolve } from '../../shared/network/guarded-connect.js'
import { OriginClients } from './upstream-clients.js'

/**
 * The proxy's way out: one pool of kept-alive HTTP/1.1 connections per provider origin, undici's `dispatch` with the
 * legacy handler (raw header buffers; some 30 µs of CPU per call less than `request`).
 *
 * Retry stance: a call whose connection is refused or reset before any byte of an answer is sent once more (spec 4,
 * section 5). That a reset provider may have read the first one is accepted there; to keep it rare, idle connections are
 * given up after 4 s, before servers do.
 */
export interface Upstream {
  /** Sends a POST. Handlers are called later, never inside `send`. */
  send(request: UpstreamMessage, handlers: UpstreamHandlers): Flight
  /** Cuts every live call (`onError` with kind `aborted`) and every connection. */
  close(): Promise<void>
}

export interface UpstreamMessage {
  /** As registered; its origin is where the call goes. */
  baseUrl: string
  /** Absolute path and query. */
  path: string
  /** Flat [name, value, …], lower-case names. No host, no content-length. */
  headers: string[]
  body: Buffer
}

/** Exactly one of onEnd and onError is called, last; none after `abort`. */
export interface UpstreamHandlers {
  /** `header` reads the answer's headers by lower-case name while the call lasts. */
  onHead(status: number, header: (name: string) => string | undefined): void
  /** The chunk is the receiver's to keep. @returns false to stop reading from the provider until `resume`. */
  onData(chunk: Buffer): boolean
  onEnd(): void
  onError(error: UpstreamError): void
}

/** One call under way. */
export interface Flight {
  /** Cuts the provider's connection at once. */
  abort(): void
  resume(): void
  /** How often the call was sent again: 0 or 1. */
  readonly retries: number
  /** Whether it ever got a connection. Before that the provider knows nothing of it. */
  readonly sent: boolean
}

export class UpstreamError extends Error {
  constructor(
    /**
     * refused: no connection. reset: the connection was lost. timeout: no connection, head or next chunk in time.
     * blocked: the address may not be dialled. broken: not HTTP, or a body of another length than declared.
     * aborted: by `close`.
     */
    readonly kind: 'refused' | 'reset' | 'timeout' | 'blocked' | 'broken' | 'aborted',
    cause: unknown,
  ) {
    super(`upstream ${kind}`, { cause })
    this.name = 'UpstreamError'
  }
}

export interface UpstreamOptions {
  privateHosts: 'allow' | 'deny'
  /** Milliseconds. A plain answer's head comes when the whole answer is made, hence the ten minutes. */
  timeouts?: { connect?: number; head?: number; betweenChunks?: number; idle?: number }
  /** Origins with a pool; the one unused longest is closed for a new one. */
  poolsMax?: number
  connectionsPerOrigin?: number
  /** For tests: resolves names in place of the system. */
  resolve?: Resolve
}

const HEADER_BYTES_MAX = 64 * 1024
const RETRY_DELAY_MS = 5

export function createUpstream(options: UpstreamOptions): Upstream {
  return new PooledUpstream(options)
}

class PooledUpstream implements Upstream {
  readonly #pools = new Map<string, OriginClients>()
  readonly #origins = new Map<string, string>()
  readonly #connect: buildConnector.connector
  readonly #options: UpstreamOptions
  #uses = 0

  constructor(options: UpstreamOptions) {
    this.#options = options
    const policy: AddressPolicy = options.privateHosts === 'deny' ? 'public' : 'private-allowed'
    const lookup = guardedLookup(policy, options.resolve)
    const timeout = options.timeouts?.connect ?? 10_000
    // `lookup` is an option of the sockets, which undici hands down.
    const base = buildConnector({ timeout, allowH2: false, lookup } as buildConnector.BuildOptions)
    this.#connect = guardedConnect(base, policy)
  }

  send(request: UpstreamMessage, handlers: UpstreamHandlers): Flight {
    const pool = this.#poolOf(request.baseUrl)
    const flight = new PooledFlight(pool, request, handlers)
    pool.use(++this.#uses)
    flight.dispatch()
    return flight
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    await Promise.all(pools.map(pool => pool.destroy()))
  }

  #poolOf(baseUrl: string): OriginClients {
    let origin = this.#origins.get(baseUrl)
    if (origin === undefined) {
      origin = new URL(baseUrl).origin
      if (this.#origins.size >= 1000) this.#origins.clear()
      this.#origins.set(baseUrl, origin)
    }
    const known = this.#pools.get(origin)
    if (known !== undefined) return known
    this.#makeRoom()
    const pool = new OriginClients(origin, this.#clientOptions(), this.#options.connectionsPerOrigin ?? 4096)
    this.#pools.set(origin, pool)
    return pool
  }

  #clientOptions(): Client.Options {
    const { timeouts } = this.#options
    const idle = timeouts?.idle ?? 4000
    return {
      connect: this.#connect,
      pipelining: 1,
      // A server's own hint may shorten this, never lengthen it.
      keepAliveTimeout: idle,
      keepAliveMaxTimeout: idle,
      headersTimeout: timeouts?.head ?? 600_000,
      bodyTimeout: timeouts?.betweenChunks ?? 120_000,
      maxHeaderSize: HEADER_BYTES_MAX,
    }
  }

  /** Pools with live calls stay, so their number may pass the bound while that many origins are busy. */
  #makeRoom(): void {
    if (this.#pools.size < (this.#options.poolsMax ?? 256)) return
    const idle = [...this.#pools].filter(([, pool]) => pool.live === 0)
    const oldest = idle.sort(([, a], [, b]) => a.lastUse - b.lastUse)[0]
    if (oldest === undefined) return
    this.#pools.delete(oldest[0])
    oldest[1].destroy().catch(() => {})
  }
}

/** One call: undici's handler and the caller's handle in one object, as there is one per call on the hot path. */
class PooledFlight implements Flight, Dispatcher.DispatchHandler {
  retries = 0
  sent = false
  client: Client | null = null
  isOver = false
  #answered = false
  /** Set while a request is on a socket. */
  #abort: (() => void) | null = null
  #resume: (() => void) | null = null

  constructor(
    readonly pool: OriginClients,
    readonly request: UpstreamMessage,
    readonly handlers: UpstreamHandlers,
  ) {}

  dispatch(): void {
    const { path, headers, body } = this.request
    this.pool.dispatch({ method: 'POST', path, headers, body }, this)
  }

  abort(): void {
    if (this.isOver) return
    this.#finish()
    this.#abort?.()
  }

  resume(): void {
    if (!this.isOver) this.#resume?.()
  }

  // From here on: called by undici.

  onConnect(abort: (error?: Error) => void): void {
    this.#abort = abort
    // The caller left while a connection was being made.
    if (this.isOver) abort()
    else this.sent = true
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void): boolean {
    if (status < 200 || this.isOver) return true
    this.#answered = true
    this.#resume = resume
    this.handlers.onHead(status, name => headerValue(raw, name))
    return true
  }

  onData(chunk: Buffer): boolean {
    return this.isOver || this.handlers.onData(chunk)
  }

  onComplete(): void {
    this.pool.giveBack(this)
    if (this.isOver) return
    this.#finish()
    this.handlers.onEnd()
  }

  onError(cause: Error): void {
    this.pool.giveBack(this)
    if (this.isOver) return
    this.#abort = null
    const error = asUpstreamError(cause)
    const mayRetry = !this.#answered && this.retries === 0
    if (mayRetry && (error.kind === 'refused' || error.kind === 'reset')) {
      this.retries = 1
      setTimeout(() => {
        if (!this.isOver) this.dispatch()
      }, RETRY_DELAY_MS)
      return
    }
    this.#finish()
    // undici may fail a dispatch before it returns, and then the caller has no flight yet.
    setImmediate(() => this.handlers.onError(error))
  }

  #finish(): void {
    this.isOver = true
    this.pool.live--
  }
}

/** Names come as the provider wrote them. @returns undefined when absent; repeated headers joined by ', '. */
function headerValue(raw: Buffer[], name: string): string | undefined {
  let value: string | undefined
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const key = raw[index]!
    if (key.length !== name.length || key.toString('latin1').toLowerCase() !== name) continue
    const next = raw[index + 1]!.toString('latin1')
    value = value === undefined ? next : `${value}, ${next}`
  }
  return value
}

function asUpstreamError(cause: Error & { code?: string }): UpstreamError {
  if (cause instanceof Blocked) return new UpstreamError('blocked', cause)
  return new UpstreamError(kinds[cause.code ?? ''] ?? 'broken', cause)
}

const kinds: Record<string, UpstreamError['kind']> = {
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'refused',
  ENETUNREACH: 'refused',
  EADDRNOTAVAIL: 'refused',
  ENOTFOUND: 'refused',
  EAI_AGAIN: 'refused',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_ABORTED: 'aborted',
  UND_ERR_DESTROYED: 'aborted',
  UND_ERR_CLOSED: 'aborted',
}
