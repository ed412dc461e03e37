import dns from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { buildConnector } from 'undici'
import { type AddressPolicy, hostRefusal, refusal } from './addresses.js'

/**
 * Where a provider connection may lead is decided when the socket is opened, on the address itself: a name that was fine
 * when it was registered may resolve to something else by now (reliability notes, 5.3). Closed: one bad address among a
 * name's answers refuses them all.
 */
export class Blocked extends Error {
  readonly code = 'AGH_ADDRESS_BLOCKED'

  constructor(host: string, reason: string) {
    super(`${host} is ${reason}`)
    this.name = 'Blocked'
  }
}

/** `dns.lookup` with `all: true`. */
export type Resolve = (
  host: string,
  answer: (error: Error | null, addresses: { address: string; family: number }[]) => void,
) => void

const system: Resolve = (host, answer) =>
  dns.lookup(host, { all: true, verbatim: true }, (error, addresses) => answer(error, addresses ?? []))

/**
 * Resolves for a socket: the socket then dials these very addresses (the first that answers), so nothing is resolved
 * twice, and Host and servername stay the name's.
 */
export function guardedLookup(policy: AddressPolicy, resolve: Resolve = system): LookupFunction {
  return (host, options, done) => {
    resolve(host, (error, addresses) => {
      const bad = addresses.find(({ address }) => refusal(address, policy) !== null)
      const failure =
        error ?? (bad === undefined ? null : new Blocked(host, refusal(bad.address, policy) ?? 'refused'))
      const first = addresses[0]
      if (failure !== null || first === undefined) {
        done(failure ?? Object.assign(new Error(`${host} has no address`), { code: 'ENOTFOUND' }), '', 0)
      } else if (options.all) done(null, addresses)
      else done(null, first.address, first.family)
    })
  }
}

/** Literals never reach a lookup, so they are checked here; the peer of an open socket once more. */
export function guardedConnect(
  base: buildConnector.connector,
  policy: AddressPolicy,
): buildConnector.connector {
  return (options, done) => {
    const host = options.hostname.replace(/^\[|\]$/g, '')
    const reason = hostRefusal(host, policy)
    if (reason !== null) {
      done(new Blocked(host, reason), null)
      return
    }
    // net and tls take a bare IPv6 literal; the Host header keeps its brackets.
    base(isIP(host) === 6 ? { ...options, hostname: host } : options, (...[error, socket]) => {
      const peer = socket?.remoteAddress
      const moved = peer === undefined ? null : refusal(peer, policy)
      if (error !== null || socket === null || moved === null) {
        if (error === null) done(null, socket)
        else done(error, null)
        return
      }
      socket.destroy()
      done(new Blocked(host, moved), null)
    })
  }
}
