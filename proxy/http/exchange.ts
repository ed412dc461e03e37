import type { EdgeLimits } from './limits.js'

/**
 * The proxy's HTTP edge as the pipeline sees it: one request and its one reply. Implemented on uWebSockets.js and on
 * node:http; the same test suite runs on both. Callback style, because this is the hot path: a promise per event costs
 * more than the event.
 *
 * Safety that every implementation gives: nothing throws after the client went away (the calls become no-ops); a head
 * that cannot be sent is answered 500 and reported, whoever asked for it and however late; headers and path are copied,
 * so they stay readable at any time; bodies are copied once.
 */
export interface Exchange {
  readonly method: string
  /** Path without the query, as sent (percent-encoded). */
  readonly path: string
  /** Without `?`; '' when there is none. */
  readonly query: string
  readonly headers: RequestHeaders
  /** The peer's address, textual; '' when it is first asked for after the client went away. */
  readonly remoteAddress: string
  /** UUID; sent as x-request-id and x-gateway-request-id, and names the call in ledger, spool and span. */
  readonly requestId: string
  /** True once the client went away or the reply ended. */
  readonly closed: boolean

  /**
   * Reads the whole body. `done` gets `tooLarge` as soon as the declared or received length passes the limit; the
   * connection is closed after the reply then. It is not called if the client goes away first.
   */
  readBody(limitBytes: number, done: (result: BodyResult) => void): void
  /**
   * Reads the body piece by piece; pieces are the receiver's to keep. `pause()` and `resume()` hold the client back.
   */
  streamBody(onChunk: (chunk: Buffer) => void, onEnd: () => void): { pause(): void; resume(): void }
  /** Called once if the client goes away before the reply has ended. One listener; a later call replaces it. */
  onAbort(listener: () => void): void

  /**
   * The whole reply at once. `headers`: our own names and values, lower-case, free of CR and LF (the implementation
   * refuses others); `content-length` and `x-request-id` are added. Without the body when the request was HEAD (a
   * `content-length` in `headers` is then taken for the body's) or the status has none. No-op when closed. A reply to a
   * large body that was not read to its end closes the connection.
   */
  reply(status: number, headers: HeaderList, body: string | Uint8Array): void

  /** Starts a reply of unknown length (chunked). The head leaves with the first piece, in one packet. */
  startStream(status: number, headers: HeaderList): void
  /**
   * `chunk` is the edge's to keep. A client that takes nothing for 30 s, or that 1 MB waits for because the producer
   * went on regardless, is cut (`onAbort`).
   *
   * @returns false when the client should be given time: stop producing until `onDrain`.
   */
  write(chunk: Uint8Array | string): boolean
  /** Called when a write that returned false has drained. One listener. */
  onDrain(listener: () => void): void
  /** Bytes written but not yet taken by the client. */
  readonly bufferedBytes: number
  /** Ends a started stream properly. */
  end(): void
  /** Cuts the connection so that the client sees a broken reply, never a complete one. */
  destroy(): void
}

export type BodyResult = { kind: 'complete'; bytes: Buffer } | { kind: 'tooLarge' }

/** Flat [name, value, name, value, …]: no object per reply on the hot path. */
export type HeaderList = readonly string[]

export interface RequestHeaders {
  /** Value of a header by lower-case name, or undefined. Repeated headers are joined by ', ' (cookies by '; '). */
  get(name: string): string | undefined
  /** All of them, in order, flat, names in lower case; one character per byte, so what is forwarded stays as sent. */
  readonly flat: readonly string[]
}

export interface HttpServer {
  /** The port that was bound; useful when 0 was asked for. */
  readonly port: number
  /** Which implementation serves; logged at start. */
  readonly engine: 'uwebsockets' | 'node'
  /** Number of exchanges whose reply has not ended. */
  readonly live: number
  /** Stops accepting, answers what comes on kept-alive connections with `connection: close`. */
  stopListening(): void
  /** Cuts what is left. */
  close(): void
}

export type Handler = (exchange: Exchange) => void

export interface ListenOptions {
  host: string
  port: number
  /**
   * Several processes may bind the port. uWebSockets.js binds with SO_REUSEPORT, so the kernel spreads connections over
   * processes that know nothing of each other; node:http shares a port only between workers of node:cluster.
   */
  shared: boolean
  /** Shorter times for tests. */
  limits?: Partial<EdgeLimits>
  /** What a handler or a listener threw; the client has been answered 500 INTERNAL_ERROR, or cut off. For the log. */
  onFault?: (error: unknown, requestId: string) => void
}
