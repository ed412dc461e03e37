import { AppError } from '../../shared/errors/app-error.js'
import { errorReply } from '../../shared/errors/envelope.js'
import { usdText } from '../../shared/money/nano.js'
import type { Exchange } from '../http/exchange.js'
import type { ProviderFailure } from '../providers/adapter.js'
import type { Recorded } from './record.js'

/** x-gateway-* headers that plain, streamed and cached replies share (spec 3, completions), flat. */
function gatewayHeaders(call: Recorded, cache: 'hit' | 'miss'): string[] {
  const { target, remainingRequests } = call.admission
  const headers = [
    'x-gateway-request-id',
    call.requestId,
    'x-gateway-provider',
    target.connection.provider,
    'x-gateway-model',
    target.model.upstreamModelHeader,
    'x-gateway-cache',
    cache,
    'x-gateway-trace-id',
    call.traceId,
  ]
  if (call.context.ignored.length > 0)
    headers.push('x-gateway-context-ignored', call.context.ignored.join(','))
  if (remainingRequests !== null) headers.push('x-gateway-ratelimit-remaining', String(remainingRequests))
  return headers
}

export function plainHeaders(call: Recorded, cache: 'hit' | 'miss', costNano: number): string[] {
  const headers = gatewayHeaders(call, cache)
  const priced = call.admission.target.model.prices !== null
  headers.push('content-type', 'application/json', 'x-gateway-cost-usd', priced ? usdText(costNano) : '')
  return headers
}

/** No cost: it is unknown until the end. */
export function streamHeaders(call: Recorded, cache: 'hit' | 'miss'): string[] {
  const headers = gatewayHeaders(call, cache)
  headers.push('content-type', 'text/event-stream', 'cache-control', 'no-cache', 'connection', 'keep-alive')
  return headers
}

/** Any error as the envelope, with the headers that errors carry too. `headers`: more, flat. */
export function replyError(exchange: Exchange, error: unknown, headers: readonly string[] = []): void {
  const reply = errorReply(error, exchange.requestId)
  const all = ['content-type', 'application/json', 'x-gateway-request-id', exchange.requestId, ...headers]
  for (const [name, value] of Object.entries(reply.headers)) all.push(name, value)
  exchange.reply(reply.status, all, JSON.stringify(reply.body))
}

/** Headers of an error after admission: the trace has the call's span. */
export const traceHeaders = (call: Recorded): string[] => {
  const { target } = call.admission
  const headers = ['x-gateway-trace-id', call.traceId, 'x-gateway-provider', target.connection.provider]
  headers.push('x-gateway-model', target.model.upstreamModelHeader)
  if (call.context.ignored.length > 0)
    headers.push('x-gateway-context-ignored', call.context.ignored.join(','))
  return headers
}

/** What a client gets for a provider's error: 4xx about the request forwarded, the rest summarised. */
export function providerError(failure: ProviderFailure): AppError {
  const headers: Record<string, string> = {}
  if (failure.retryAfterSeconds !== null) headers['retry-after'] = String(failure.retryAfterSeconds)
  return new AppError(failure.code, failure.message, { status: failure.status, headers })
}

/** The last frame of a stream that broke: no `[DONE]` follows, so it never looks like a complete answer. */
export function errorFrame(error: AppError): string {
  return `data: ${JSON.stringify({ error: { code: error.code, message: error.message } })}\n\n`
}
