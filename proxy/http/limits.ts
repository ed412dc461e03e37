import { headerBlockBytes } from './config.js'

/** What one connection may take of this process. The defaults are the product's; tests shorten the times. */
export interface EdgeLimits {
  headerBytes: number
  headerCount: number
  /** Head and whole body of a request that is read at once must be here by then; a streamed body gets five times that. */
  receiveMs: number
  /**
   * Connection without a request, or with half a request head. uWebSockets.js has 10 s built in, swept every 4 s, and
   * also cuts bodies slower than 16 KB/s; node:http follows this value.
   */
  idleMs: number
  /**
   * A client that takes nothing for this long while a reply waits for it is cut. uWebSockets.js cuts after 10 s of its
   * own when a whole reply or the end of a stream is what waits.
   */
  drainMs: number
  /** A client that does not read may hold this much of a stream whose producer writes on regardless; then it is cut. */
  bufferedBytes: number
  /** After a reply to a body that was not read: go on discarding this long and this much, so that the reply arrives. */
  lingerMs: number
  lingerBytes: number
}

export const defaultLimits: EdgeLimits = {
  headerBytes: headerBlockBytes,
  headerCount: 100,
  receiveMs: 60_000,
  idleMs: 10_000,
  drainMs: 30_000,
  bufferedBytes: 1024 * 1024,
  lingerMs: 2_000,
  lingerBytes: 32 * 1024 * 1024,
}
