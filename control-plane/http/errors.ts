import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { ConnectionError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError, conflict, unavailable, validation } from '../../shared/errors/app-error.js'
import { errorReply } from '../../shared/errors/envelope.js'
import { LedgerUnavailable } from '../../shared/ledger/ledger.js'
import { StatementDeadline } from '../db/sql.js'

/** The control plane's one catch: anything thrown becomes the envelope, its cause goes to the log and nowhere else. */
export function handleErrors(app: FastifyInstance): void {
  app.setErrorHandler(sendError)
  app.setNotFoundHandler(() => {
    throw routeNotFound()
  })
}

const routeNotFound = () => new AppError('NOT_FOUND', 'Route not found.')

export function sendError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = publicError(thrown)
  const answer = errorReply(error, request.id)
  const line = { error: thrown, requestId: request.id }
  if (answer.status >= 500) request.log.error(line, 'request failed')
  else if (error !== thrown) request.log.info(line, 'request refused')
  return reply
    .code(answer.status)
    .header('x-request-id', request.id)
    .headers(answer.headers)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(answer.body))
}

/** A request that the HTTP parser gave up on: too large a head, too slow, or not HTTP. The socket is closed. */
export function answerBrokenRequest(error: ConnectionError, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy()
    return
  }
  const isSlow = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
  const message = isSlow ? 'The request took too long to arrive.' : 'Malformed HTTP request.'
  const body = JSON.stringify({ error: { code: 'VALIDATION_ERROR', message } })
  const head = [
    'HTTP/1.1 400 Bad Request',
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${randomUUID()}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** What the libraries below throw, in the service's own words; anything unknown passes through and becomes a 500. */
export function publicError(error: unknown): unknown {
  if (error instanceof AppError) return error
  if (error instanceof LedgerUnavailable) {
    return new AppError('LEDGER_UNAVAILABLE', 'The ledger cannot be reached.', {
      cause: error,
      headers: { 'retry-after': '1' },
    })
  }
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown }
  if (error instanceof StatementDeadline || code === STATEMENT_TIMEOUT) {
    return unavailable('The database did not answer in time.', 2, error)
  }
  if (typeof code !== 'string') return error
  if (isDatabaseAway(code)) return unavailable('The database cannot be reached.', 2, error)
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new AppError('PAYLOAD_TOO_LARGE', 'The request body is larger than this route takes.', {
      cause: error,
    })
  }
  // No name in a path is that long, so what it names is not there.
  if (code === 'FST_ERR_MAX_PARAM_LENGTH') return routeNotFound()
  if (code.startsWith('FST_') && typeof statusCode === 'number' && statusCode < 500) {
    return validation((error as Error).message)
  }
  // It is our JSON that it reads, so a lone surrogate is all that it can find wrong with it.
  const isAboutJson = /\bjson\b/.test((error as Error).message)
  return badData(code, isAboutJson) ?? error
}

/** The server gave up on its own clock, which is a little ahead of ours. */
const STATEMENT_TIMEOUT = '57014'

const awayCodes = new Set([
  ...['CONNECTION_CLOSED', 'CONNECTION_ENDED', 'CONNECTION_DESTROYED', 'CONNECT_TIMEOUT'],
  ...['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EAI_AGAIN', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH'],
  // Shutting down, crashed, starting; too many connections; lock timeout; read-only after a failover; serialization
  // failure and deadlock: the same request may pass a moment later.
  ...['57P01', '57P02', '57P03', '53300', '55P03', '25006', '40001', '40P01', '25P03'],
])

const isDatabaseAway = (code: string): boolean => awayCodes.has(code) || /^08...$/.test(code)

/** PostgreSQL's refusals of values that JSON can carry and it cannot store: the request is at fault, not the service. */
function badData(code: string, isAboutJson: boolean): AppError | undefined {
  if (code === '22021' || code === '22P05') return validation('Text must not contain the NUL character.')
  if (code === '22P02' && isAboutJson) return validation('Text must not contain half of a surrogate pair.')
  if (code === '22P02') return validation('A value is not in the form that its field takes.')
  if (code === '23505') return conflict('The resource exists already.')
  return undefined
}
