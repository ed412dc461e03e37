import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { sameText } from '../access/same-text.js'
import type { Config } from '../config.js'

/** Sent by the proxy with what it forwards; only then are x-request-id and x-forwarded-* believed. */
export const INTERNAL_HEADER = 'x-agh-internal'

export function isForwardedByProxy(headers: IncomingHttpHeaders, config: Config): boolean {
  const token = headers[INTERNAL_HEADER]
  return typeof token === 'string' && sameText(token, config.internalToken)
}

/** The address that the request came from, for the sign-in limit. */
export function clientAddress(request: FastifyRequest, config: Config): string {
  const forwarded = request.headers['x-forwarded-for']
  if (typeof forwarded === 'string' && isForwardedByProxy(request.headers, config)) {
    const first = forwarded.split(',')[0]?.trim()
    if (first !== undefined && first !== '') return first
  }
  return request.socket.remoteAddress ?? 'unknown'
}

/**
 * Whether a browser says that the request comes from the service's own pages (spec 4, section 3). A page cannot forge
 * either header: `Sec-Fetch-Site: same-origin`, or an `Origin` that is APP_URL's or the one that was asked.
 */
export function isOwnOrigin(request: FastifyRequest, config: Config): boolean {
  if (request.headers['sec-fetch-site'] === 'same-origin') return true
  const origin = request.headers.origin
  if (origin === undefined || !URL.canParse(origin)) return false
  const url = new URL(origin)
  return url.origin === new URL(config.appUrl).origin || url.host === requestHost(request, config)
}

/** Whether a browser says that a page of another site sent the request; programs say nothing. */
export function isForeignPage(request: FastifyRequest, config: Config): boolean {
  const isBrowser = request.headers.origin !== undefined || request.headers['sec-fetch-site'] !== undefined
  return isBrowser && !isOwnOrigin(request, config)
}

function requestHost(request: FastifyRequest, config: Config): string | undefined {
  const forwarded = request.headers['x-forwarded-host']
  if (typeof forwarded === 'string' && isForwardedByProxy(request.headers, config)) return forwarded
  return request.headers.host
}
