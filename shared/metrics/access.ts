import { timingSafeEqual } from 'node:crypto'
import { forbidden, unauthorized } from '../errors/app-error.js'

export interface MetricsReader {
  /** METRICS_TOKEN, when one is set. */
  token: string | undefined
  /** The request's Authorization header. */
  authorization: string | undefined
  /** The peer's address, textual. */
  remoteAddress: string
  /** Its `x-forwarded-for` or `forwarded` header: a local reverse proxy speaks for somebody who is not local. */
  forwardedFor: string | undefined
}

/**
 * Who may read `GET /metrics`: the bearer of METRICS_TOKEN when it is set, else loopback peers alone (spec 4,
 * sections 1 and 9).
 *
 * @throws AppError UNAUTHORIZED for a missing or wrong token, FORBIDDEN for a peer that is not local.
 */
export function checkMetricsReader(reader: MetricsReader): void {
  if (reader.token !== undefined) {
    if (!sameText(reader.authorization ?? '', `Bearer ${reader.token}`)) throw unauthorized()
    return
  }
  const isLocal = isLoopback(reader.remoteAddress) && reader.forwardedFor === undefined
  if (!isLocal)
    throw forbidden(
      'Metrics are open to loopback addresses only; set METRICS_TOKEN to read them from elsewhere.',
    )
}

/** 127.0.0.0/8 and ::1, the IPv4-mapped forms among them. */
export const isLoopback = (address: string): boolean =>
  address === '::1' || /^(::ffff:)?127\.\d+\.\d+\.\d+$/i.test(address) || isExpandedLoopback(address)

/** uWebSockets.js prints IPv6 addresses unabbreviated: 0000:…:0001, or 0000:…:ffff:7f00:0001. */
function isExpandedLoopback(address: string): boolean {
  const groups = address
    .toLowerCase()
    .split(':')
    .map(group => group.replace(/^0+(?=.)/, ''))
  if (groups.length !== 8) return false
  const [head, tail] = [groups.slice(0, 5), groups.slice(5)]
  if (head.some(group => group !== '0')) return false
  return tail.join(':') === '0:0:1' || /^ffff:7f[0-9a-f]{2}:/.test(tail.join(':'))
}

/** Compares in a time that does not tell how much of a secret was right. */
function sameText(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}
