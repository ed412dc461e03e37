import dns from 'node:dns'
import { isIP } from 'node:net'
import { type AddressPolicy, hostRefusal, refusal } from '../../shared/network/addresses.js'
import { type AllowedHost, isAllowedHost, portOf } from '../../shared/network/allowed-hosts.js'
import type { Resolve } from '../../shared/network/guarded-connect.js'

/** What decides where an http executor may lead. */
export interface OutboundRules {
  /** TOOL_ALLOW_PRIVATE_HOSTS. */
  allowed: readonly AllowedHost[]
  /** For tests: resolves names in place of the system. */
  resolve?: Resolve
}

/** A resolver that is slow when a version is committed does not hold the commit up: the call asks again. */
const RESOLVE_WITHIN_MS = 2_000

/**
 * What the addresses of a URL's host must be: public; or, for a host that the operator listed, anything that hands out
 * no credentials (link-local and cloud metadata addresses stay refused).
 */
export const policyOf = (url: URL, { allowed }: OutboundRules): AddressPolicy =>
  isAllowedHost(url, allowed) ? 'private-allowed' : 'public'

/**
 * Why a URL cannot be called, by what it says itself: a sentence for its author, or null.
 *
 * Ports below 1024 other than 80 and 443 are refused, since what listens there is no web server: an HTTP request to a
 * mail server can be a mail.
 */
export function refusedText(url: URL, rules: OutboundRules): string | null {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'only http and https URLs can be called.'
  if (url.username !== '' || url.password !== '') return 'it must not hold a user name or password.'
  const policy = policyOf(url, rules)
  const port = portOf(url)
  if (policy === 'public' && port < 1024 && port !== 80 && port !== 443)
    return `port ${port} is not a web port.`
  const reason = hostRefusal(url.hostname, policy)
  return reason === null ? null : `${url.hostname} is ${reason}.`
}

/**
 * Why a URL cannot be called, its host's addresses included. A name that has no address now, or whose resolver takes
 * too long, passes: it may be set up later, and every call resolves and checks again.
 *
 * @param template an absolute URL; references such as `{{arg.id}}` may stand in its path and query.
 */
export async function refusedAddress(template: string, rules: OutboundRules): Promise<string | null> {
  if (!URL.canParse(template)) return 'it is not an absolute URL.'
  const url = new URL(template)
  const refused = refusedText(url, rules)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (refused !== null || isIP(host) !== 0) return refused
  for (const address of await addressesOf(host, rules.resolve ?? system)) {
    const reason = refusal(address, policyOf(url, rules))
    if (reason !== null) return `${url.hostname} resolves to ${reason}.`
  }
  return null
}

function addressesOf(host: string, resolve: Resolve): Promise<string[]> {
  return new Promise(answer => {
    const timer = setTimeout(() => answer([]), RESOLVE_WITHIN_MS)
    resolve(host, (_error, addresses) => {
      clearTimeout(timer)
      answer(addresses.map(({ address }) => address))
    })
  })
}

const system: Resolve = (host, answer) =>
  dns.lookup(host, { all: true, verbatim: true }, (error, addresses) => answer(error, addresses ?? []))
