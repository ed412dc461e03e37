import { type EdgeState, newEdgeState } from './edge-exchange.js'
import type { Handler, HttpServer, ListenOptions } from './exchange.js'
import type { Uws, UwsRequest, UwsResponse } from './load-uwebsockets.js'
import { bodyLength, HeaderBlock, headerBytes, refusedHead, splitTarget, wellFormed } from './request-head.js'
import { insideParser, UwsExchange } from './uws-exchange.js'

/** @throws Error when the port is taken. */
export async function listenOnUwebsockets(
  uws: Uws,
  options: ListenOptions,
  handler: Handler,
): Promise<HttpServer> {
  const state = newEdgeState(options, handler)
  const app = uws.App()
  app.any('/*', (res, req) => insideParser(() => accept(state, res, req)))
  const socket = await new Promise<object>((resolve, reject) => {
    const flags = options.shared ? 0 : uws.LIBUS_LISTEN_EXCLUSIVE_PORT
    app.listen(options.host, options.port, flags, bound => {
      if (bound === false) reject(new Error(`Cannot listen on ${options.host}:${options.port}.`))
      else resolve(bound)
    })
  })
  const port = uws.us_socket_local_port(socket)
  return {
    port,
    engine: 'uwebsockets',
    get live() {
      return state.live
    },
    stopListening() {
      if (state.draining) return
      state.draining = true
      uws.us_listen_socket_close(socket)
    },
    close() {
      state.draining = true
      state.deadlines.stop()
      app.close()
    },
  }
}

/**
 * Headers of the request being accepted. One array that has grown once and one visitor, so that a request allocates
 * neither a closure nor an array that grows.
 */
const scratch: string[] = []
let filled = 0
const visit = (name: string, value: string) => {
  scratch[filled++] = name
  scratch[filled++] = value
}

function accept(state: EdgeState, res: UwsResponse, req: UwsRequest): void {
  filled = 0
  // One pass over all headers, though most calls read three: it is the only way to see a header that came twice.
  req.forEach(visit)
  const flat = scratch.slice(0, filled)
  const length = bodyLength(flat)
  const target = splitTarget(req.getUrl())
  const exchange = new UwsExchange(
    state,
    res,
    req.getCaseSensitiveMethod(),
    target?.path ?? '',
    req.getQuery() ?? '',
    new HeaderBlock(flat, 'text'),
    length === refusedHead ? 0 : length,
  )
  if (length === refusedHead || target === null || !wellFormed(flat)) {
    exchange.refuse('VALIDATION_ERROR', 'Malformed HTTP request.')
    return
  }
  // The native limit judges what it has to keep between packets; a large head in one packet passes it.
  if (headerBytes(flat) > state.limits.headerBytes || flat.length > state.limits.headerCount * 2) {
    exchange.refuse('VALIDATION_ERROR', 'Request headers are too large.', 431)
    return
  }
  exchange.handle()
  exchange.holdBody()
}
