import { isIP } from 'node:net'

/** An exception from the public addresses: a host as URLs write it, and its port; null: every port. */
export interface AllowedHost {
  /** As `new URL(text).hostname` gives it: lower-case, punycode, IPv6 in brackets. */
  hostname: string
  port: number | null
}

const ENTRY = /^(\[[0-9a-f:.]+\]|[^\s/\\:@?#*[\]]+)(?::([1-9]\d{0,4}))?$/i

/** Reads `host` or `host:port`; an IPv6 address stands in brackets where a port follows. Null: neither. */
export function allowedHost(entry: string): AllowedHost | null {
  const match = ENTRY.exec(isIP(entry) === 6 ? `[${entry}]` : entry)
  const port = match?.[2] === undefined ? null : Number(match[2])
  if (match === null || (port ?? 0) > 65_535 || !URL.canParse(`http://${match[1]}/`)) return null
  return { hostname: new URL(`http://${match[1]}/`).hostname, port }
}

/** Whether an exception names the URL's host and port. */
export function isAllowedHost(url: URL, allowed: readonly AllowedHost[]): boolean {
  return allowed.some(
    ({ hostname, port }) => hostname === url.hostname && (port === null || port === portOf(url)),
  )
}

/** The port that a request to the URL goes to. */
export const portOf = (url: URL): number =>
  url.port !== '' ? Number(url.port) : url.protocol === 'https:' ? 443 : 80
