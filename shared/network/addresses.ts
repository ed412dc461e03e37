import { isIP, isIPv4, isIPv6 } from 'node:net'

/**
 * Which addresses agh may dial for a user's URL (spec 4, sections 1 and 9; reliability notes, 5.3). Checked when a URL
 * is stored and again, on every address that a name resolves to, when a socket is opened.
 *
 * - `public`: global unicast only; what http executors get, and providers under `PROVIDER_PRIVATE_HOSTS=deny`.
 * - `private-allowed`: a model server of one's own may be on loopback or in a private network. Link-local and cloud
 *   metadata addresses hand out credentials, so they are refused here too, however they are written.
 */
export type AddressPolicy = 'public' | 'private-allowed'

type Stance = 'never' | 'private'

/** [network, prefix bits, stance, reason]. The first match counts, so single addresses precede their networks. */
type Rule = readonly [string, number, Stance, string]

const V4_RULES: readonly Rule[] = [
  ['169.254.0.0', 16, 'never', 'a link-local address'],
  // Alibaba, Oracle, Azure.
  ['100.100.100.200', 32, 'never', 'a cloud metadata address'],
  ['192.0.0.192', 32, 'never', 'a cloud metadata address'],
  ['168.63.129.16', 32, 'never', 'a cloud metadata address'],
  ['224.0.0.0', 4, 'never', 'a multicast address'],
  ['240.0.0.0', 4, 'never', 'a reserved address'],
  ['0.0.0.0', 8, 'private', 'an address of this host'],
  ['127.0.0.0', 8, 'private', 'a loopback address'],
  ['10.0.0.0', 8, 'private', 'a private address'],
  ['172.16.0.0', 12, 'private', 'a private address'],
  ['192.168.0.0', 16, 'private', 'a private address'],
  ['100.64.0.0', 10, 'private', 'a shared (CGNAT) address'],
  ['198.18.0.0', 15, 'private', 'a benchmarking address'],
  ['192.0.0.0', 24, 'private', 'a special-purpose address'],
  ['192.0.2.0', 24, 'private', 'a documentation address'],
  ['198.51.100.0', 24, 'private', 'a documentation address'],
  ['203.0.113.0', 24, 'private', 'a documentation address'],
  ['192.31.196.0', 24, 'private', 'a special-purpose address'],
  ['192.52.193.0', 24, 'private', 'a special-purpose address'],
  ['192.88.99.0', 24, 'private', 'a special-purpose address'],
  ['192.175.48.0', 24, 'private', 'a special-purpose address'],
]

const V6_RULES: readonly Rule[] = [
  ['fe80::', 10, 'never', 'a link-local address'],
  // AWS instance metadata, DNS, time and EKS pod identity; Google.
  ['fd00:ec2::', 32, 'never', 'a cloud metadata address'],
  ['fd20:ce::254', 128, 'never', 'a cloud metadata address'],
  ['ff00::', 8, 'never', 'a multicast address'],
  // Where the IPv4 address sits depends on the network's own prefix, so nobody can tell what it leads to.
  ['64:ff9b:1::', 48, 'never', 'a local NAT64 address'],
  ['::', 128, 'private', 'an address of this host'],
  ['::1', 128, 'private', 'a loopback address'],
  ['fc00::', 7, 'private', 'a private address'],
  ['fec0::', 10, 'private', 'a site-local address'],
  ['64:ff9b::', 96, 'private', 'a NAT64 address'],
  ['2002::', 16, 'private', 'a 6to4 address'],
  ['2001::', 23, 'private', 'a special-purpose address'],
  ['2001:db8::', 32, 'private', 'a documentation address'],
  ['3fff::', 20, 'private', 'a documentation address'],
]

const MAPPED = '::ffff:0:0'

/**
 * Why an IP literal may not be dialled, as a phrase such as `a loopback address`; null when it may.
 *
 * @param address as a resolver, a socket or a URL's hostname gives it; brackets of a URL are taken off. Decimal, hex
 *   and octal forms of IPv4 are what URL parsing normalises, so parse first.
 */
export function refusal(address: string, policy: AddressPolicy): string | null {
  const bare = address.replace(/^\[|\]$/g, '')
  if (isIPv4(bare)) return v4Refusal(v4Value(bare), policy)
  // A zone id belongs to link-local addresses alone.
  if (bare.includes('%') && isIP(bare) === 6) return 'an address with a zone'
  if (isIPv6(bare)) return v6Refusal(v6Value(bare), policy)
  return 'not an IP address'
}

/**
 * Why a URL's host may not be used, by what can be said without asking a resolver; null when it may, which for a name
 * still leaves every address that it resolves to.
 *
 * @param hostname `new URL(text).hostname`: lower-case, punycode, IPv4 in its usual form.
 */
export function hostRefusal(hostname: string, policy: AddressPolicy): string | null {
  const bare = hostname.replace(/^\[|\]$/g, '')
  if (bare === '') return 'an empty host'
  if (isIP(bare) !== 0) return refusal(bare, policy)
  const name = bare.replace(/\.$/, '')
  if (METADATA_NAMES.has(name)) return 'a cloud metadata host'
  if (policy === 'private-allowed') return null
  if (!name.includes('.') || PRIVATE_NAMES.test(name)) return 'a private host name'
  // What still looks like a number was not understood as an address here, and may be by a resolver.
  return /^[0-9.]+$/.test(name) || /(^|\.)0x[0-9a-f]*$/.test(name) ? 'a malformed address' : null
}

const METADATA_NAMES = new Set([
  'metadata',
  'metadata.google.internal',
  'instance-data',
  'instance-data.ec2.internal',
])
const PRIVATE_NAMES =
  /(^|\.)(localhost|localdomain|local|internal|intranet|lan|home|corp|svc|home\.arpa|in-addr\.arpa|ip6\.arpa)$/

function v4Refusal(value: bigint, policy: AddressPolicy): string | null {
  return verdict(
    v4Networks.find(rule => rule.holds(value)),
    policy,
  )
}

/** An address inside an address is judged as well: whoever owns the translator or tunnel decides where it leads. */
function v6Refusal(value: bigint, policy: AddressPolicy): string | null {
  if (mapped.holds(value)) return v4Refusal(low32(value), policy)
  for (const inner of embedded(value)) {
    const rule = v4Networks.find(network => network.holds(inner))
    if (rule?.stance === 'never') return rule.reason
  }
  const rule = v6Networks.find(network => network.holds(value))
  if (rule !== undefined) return verdict(rule, policy)
  if (policy === 'private-allowed') return null
  // Only 2000::/3 is global unicast today.
  if (value >> 125n !== 1n) return 'not a global address'
  return isIsatap(value) ? 'an ISATAP address' : null
}

function verdict(rule: Network | undefined, policy: AddressPolicy): string | null {
  if (rule === undefined) return null
  return rule.stance === 'never' || policy === 'public' ? rule.reason : null
}

/** IPv4 addresses that an IPv6 address carries: compatible, translated, NAT64, 6to4, Teredo, ISATAP. */
function embedded(value: bigint): bigint[] {
  if (value >> 32n === 0n || value >> 32n === 0xffff0000n || nat64.holds(value)) return [low32(value)]
  if (sixToFour.holds(value)) return [low32(value >> 80n)]
  // Teredo: the server in the clear, the client with every bit flipped.
  if (teredo.holds(value)) return [low32(value >> 64n), low32(value) ^ 0xffffffffn]
  return isIsatap(value) ? [low32(value)] : []
}

const isIsatap = (value: bigint) => ((value >> 32n) & 0xfdffffffn) === 0x5efen
const low32 = (value: bigint) => value & 0xffffffffn

interface Network {
  holds(value: bigint): boolean
  stance: Stance
  reason: string
}

function network(base: bigint, bits: number, width: number, stance: Stance, reason: string): Network {
  const shift = BigInt(width - bits)
  return { holds: value => value >> shift === base >> shift, stance, reason }
}

const v4Value = (text: string) => text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)

/** Any form that `isIPv6` accepts: `::` for a run of zeros, the last 32 bits dotted. */
function v6Value(text: string): bigint {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text)
  const plain = dotted === null ? text : (dotted[1] as string) + hexWords(v4Value(dotted[2] as string))
  const [head = '', tail] = plain.split('::')
  const words = (part: string) => (part === '' ? [] : part.split(':'))
  const left = words(head)
  const right = tail === undefined ? [] : words(tail)
  const zeros = tail === undefined ? [] : Array<string>(8 - left.length - right.length).fill('0')
  return [...left, ...zeros, ...right].reduce((sum, word) => (sum << 16n) | BigInt(`0x${word}`), 0n)
}

const hexWords = (v4: bigint) => `${(v4 >> 16n).toString(16)}:${(v4 & 0xffffn).toString(16)}`

const v4Networks = V4_RULES.map(([base, bits, stance, reason]) =>
  network(v4Value(base), bits, 32, stance, reason),
)
const v6Network = ([base, bits, stance, reason]: Rule) => network(v6Value(base), bits, 128, stance, reason)
const v6Networks = V6_RULES.map(v6Network)
const mapped = v6Network([MAPPED, 96, 'private', ''])
const nat64 = v6Network(['64:ff9b::', 96, 'private', ''])
const sixToFour = v6Network(['2002::', 16, 'private', ''])
const teredo = v6Network(['2001::', 32, 'private', ''])
