import type { RequestHeaders } from './exchange.js'
import { isHeaderName } from './header-name.js'

/** Results of `bodyLength` that are no length. */
export const chunkedBody = -1
export const refusedHead = -2

/**
 * How long the body of a request is, by its headers; 0 when it has none.
 *
 * Strict, because whatever stands before this server may read the same bytes in another way (request smuggling,
 * RFC 9112 section 6.3): one Host; one Content-Length of plain digits, or one Transfer-Encoding that is exactly
 * `chunked`, never both.
 *
 * @param flat [name, value, …], names in lower case.
 * @returns bytes, `chunkedBody`, or `refusedHead`: answer 400 and close.
 */
export function bodyLength(flat: readonly string[]): number {
  let hosts = 0
  let length = ''
  let coding = ''
  for (let i = 0; i < flat.length; i += 2) {
    const name = flat[i]!
    // By length first: three of some ten names get a real comparison.
    if (name.length === 4 && name === 'host') {
      if (++hosts > 1 || flat[i + 1] === '') return refusedHead
    } else if (name.length === 14 && name === 'content-length') {
      if (length !== '' || !/^[0-9]{1,15}$/.test(flat[i + 1]!)) return refusedHead
      length = flat[i + 1]!
    } else if (name.length === 17 && name === 'transfer-encoding') {
      if (coding !== '' || flat[i + 1]!.toLowerCase() !== 'chunked') return refusedHead
      coding = 'chunked'
    }
  }
  if (hosts !== 1 || (coding !== '' && length !== '')) return refusedHead
  if (coding !== '') return chunkedBody
  return length === '' ? 0 : Number(length)
}

const control = /[\0\r\n]/

/** Names that are tokens, values without CR, LF or NUL: what a lenient parser lets through is refused here. */
export function wellFormed(flat: readonly string[]): boolean {
  // One test over all values: a regular expression costs 300 instructions to start and 5 a character.
  let values = ''
  for (let i = 0; i < flat.length; i += 2) {
    if (!isHeaderName(flat[i]!)) return false
    values += flat[i + 1]!
  }
  return !control.test(values)
}

/** Bytes of the headers as they were sent, give or take optional white space. */
export function headerBytes(flat: readonly string[]): number {
  let bytes = 0
  for (let i = 0; i < flat.length; i++) bytes += flat[i]!.length + 2
  return bytes
}

/** Path and query of a request target, also of the absolute form, whose authority is dropped. null: neither form. */
export function splitTarget(target: string): { path: string; query: string } | null {
  const relative = target.startsWith('/') ? target : withoutAuthority(target)
  if (relative === null) return null
  const mark = relative.indexOf('?')
  return mark === -1
    ? { path: relative, query: '' }
    : { path: relative.slice(0, mark), query: relative.slice(mark + 1) }
}

function withoutAuthority(target: string): string | null {
  const scheme = /^https?:\/\/[^/?#]*/i.exec(target)
  if (scheme === null) return null
  const rest = target.slice(scheme[0].length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII, control characters included
const beyondAscii = /[^\x00-\x7f]/

/**
 * Headers of a request. Values beyond ASCII are the one place where the engines differ: uWebSockets.js hands them over
 * as decoded UTF-8, node:http as one character per byte.
 */
export class HeaderBlock implements RequestHeaders {
  /** @param pairs [name, value, …], names in lower case. */
  constructor(
    private readonly pairs: readonly string[],
    private readonly values: 'text' | 'bytes',
  ) {}

  get(name: string): string | undefined {
    const { pairs } = this
    let found: string | undefined
    for (let i = 0; i < pairs.length; i += 2) {
      if (pairs[i] !== name) continue
      const value = pairs[i + 1]!
      found = found === undefined ? value : `${found}${name === 'cookie' ? '; ' : ', '}${value}`
    }
    if (found === undefined || this.values === 'text' || !beyondAscii.test(found)) return found
    const text = Buffer.from(found, 'latin1').toString('utf8')
    return text.includes('\ufffd') ? found : text
  }

  get flat(): readonly string[] {
    const { pairs } = this
    if (this.values === 'bytes' || !pairs.some(text => beyondAscii.test(text))) return pairs
    return pairs.map(text => (beyondAscii.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text))
  }
}
