import cluster from 'node:cluster'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError } from '../../shared/errors/app-error.js'
import { errorReply } from '../../shared/errors/envelope.js'
import { uuidV7 } from '../uuid-v7.js'
import { type EdgeState, newEdgeState, tickOf } from './edge-exchange.js'
import type { Handler, HttpServer, ListenOptions } from './exchange.js'
import { NodeExchange } from './node-exchange.js'
import { statusLine } from './reply-head.js'
import { bodyLength, HeaderBlock, refusedHead, splitTarget, wellFormed } from './request-head.js'

/**
 * The same edge on node:http, for platforms without a uWebSockets.js binary. Twice to three times the CPU per request.
 *
 * @throws Error when the port is taken.
 */
export async function listenOnNode(options: ListenOptions, handler: Handler): Promise<HttpServer> {
  const state = newEdgeState(options, handler)
  const { limits } = state
  /** Connections on which a malformed request came: nothing behind it is believed. */
  const distrusted = new WeakSet<Socket>()
  const server = createServer(
    {
      maxHeaderSize: limits.headerBytes,
      keepAliveTimeout: limits.idleMs,
      headersTimeout: Math.min(limits.idleMs, limits.receiveMs),
      requestTimeout: limits.receiveMs * 5,
      connectionsCheckingInterval: tickOf(limits),
      insecureHTTPParser: false,
      // Checked here, to answer with our envelope.
      requireHostHeader: false,
      noDelay: true,
    },
    (req, res) => accept(state, distrusted, req, res),
  )
  server.on('clientError', answerParserError)
  await new Promise<void>((resolve, reject) => {
    // node:cluster asks the supervisor for a shared port, and one that is gone never answers.
    const orphaned = () => reject(new Error('The supervisor that shares the port is gone.'))
    if (cluster.worker?.isConnected() === false) orphaned()
    process.once('disconnect', orphaned)
    server.once('error', reject)
    server.listen({ host: options.host, port: options.port, exclusive: !options.shared }, () => {
      process.off('disconnect', orphaned)
      resolve()
    })
  })
  const stopListening = () => {
    if (state.draining) return
    state.draining = true
    // http.Server's own close() would also cut idle connections, on which a request may be on its way.
    NetServer.prototype.close.call(server)
  }
  return {
    port: (server.address() as AddressInfo).port,
    engine: 'node',
    get live() {
      return state.live
    },
    stopListening,
    close() {
      stopListening()
      state.deadlines.stop()
      server.closeAllConnections()
    },
  }
}

function accept(
  state: EdgeState,
  distrusted: WeakSet<Socket>,
  req: IncomingMessage,
  res: ServerResponse,
): void {
  if (distrusted.has(req.socket)) {
    req.socket.destroy()
    return
  }
  const flat = req.rawHeaders.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text))
  const length = bodyLength(flat)
  const target = splitTarget(req.url ?? '')
  const exchange = new NodeExchange(
    state,
    req,
    res,
    target?.path ?? '',
    target?.query ?? '',
    new HeaderBlock(flat, 'bytes'),
    length === refusedHead ? 0 : length,
  )
  // HTTP/1.0 too, for the sake of one behaviour: uWebSockets.js does not serve it.
  const refusal =
    req.httpVersion !== '1.1'
      ? { status: 505, message: 'Only HTTP/1.1 is served.' }
      : flat.length > state.limits.headerCount * 2
        ? { status: 431, message: 'Request headers are too large.' }
        : length === refusedHead || target === null || !wellFormed(flat)
          ? { status: 400, message: 'Malformed HTTP request.' }
          : null
  if (refusal === null) {
    exchange.handle()
    return
  }
  distrusted.add(req.socket)
  exchange.refuse('VALIDATION_ERROR', refusal.message, refusal.status)
}

/** What node's parser refuses, and requests that time out. The reply is written by hand: there is no response object. */
function answerParserError(error: NodeJS.ErrnoException, socket: Duplex & { _httpMessage?: unknown }): void {
  const timedOut = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
  // Behind a reply that is under way another one would be taken for its rest.
  if (timedOut || !socket.writable || socket._httpMessage) {
    socket.destroy()
    return
  }
  const tooLarge = error.code === 'HPE_HEADER_OVERFLOW'
  const message = tooLarge ? 'Request headers are too large.' : 'Malformed HTTP request.'
  const requestId = uuidV7()
  const status = tooLarge ? 431 : 400
  const body = JSON.stringify(
    errorReply(new AppError('VALIDATION_ERROR', message, { status }), requestId).body,
  )
  const head = [
    `HTTP/1.1 ${statusLine(status)}`,
    `x-request-id: ${requestId}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
