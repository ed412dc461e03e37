import { STATUS_CODES } from 'node:http'
import type { HeaderList } from './exchange.js'
import { isHeaderName } from './header-name.js'

/** '404 Not Found' per status. */
const statusLines: string[] = []
for (let status = 100; status < 600; status++) {
  statusLines[status] = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`
}

export const statusLine = (status: number) => statusLines[status] ?? `${status} Unknown`

// One character per byte on the wire; a line break would start a header, or a reply, of somebody else's making.
const unsafeValue = /[^\t\x20-\x7e\x80-\xff]/

/** All of it is sent as it is: neither unsafe nor, which the writer must know, beyond ASCII. */
const unusual = /[^\t\x20-\x7e]/

/** @throws Error naming the header that must not be sent. */
function refuse(name: string): never {
  throw new Error(`Header ${JSON.stringify(name)} cannot be sent: its name or value is malformed.`)
}

/**
 * @returns whether a value goes beyond ASCII.
 * @throws Error on a name or value that is malformed.
 */
export function checkHeaders(headers: HeaderList): boolean {
  let beyondAscii = false
  for (let i = 0; i < headers.length; i += 2) {
    const value = headers[i + 1]!
    if (!isHeaderName(headers[i]!) || unsafeValue.test(value)) refuse(headers[i]!)
    beyondAscii ||= /[\x80-\xff]/.test(value)
  }
  return beyondAscii
}

/** A reply's headers as one text of one character per byte. */
export interface JoinedHeaders {
  text: string
  /** Whether UTF-8 would write them as they are. */
  isAscii: boolean
}

/**
 * The value of x-request-id with all other headers behind it, each on its line, for one `writeHeader`: a call into the
 * native library per header costs 0.3 µs, ten joined ones save 2 µs (7,000 instructions) a request. Safe because
 * every value is checked for line breaks first.
 *
 * @throws Error on a name or value that is malformed.
 */
export function joinedHeaders(requestId: string, headers: HeaderList): JoinedHeaders {
  let joined = requestId
  // All values in one test, which costs a third of one test each.
  let values = ''
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    const value = headers[i + 1]!
    if (!isHeaderName(name)) refuse(name)
    values += value
    joined += `\r\n${name}: ${value}`
  }
  if (!unusual.test(values)) return { text: joined, isAscii: true }
  if (unsafeValue.test(values))
    refuse(headers.find((_, i) => i % 2 === 0 && unsafeValue.test(headers[i + 1]!))!)
  return { text: joined, isAscii: false }
}

/** Statuses whose replies have neither body nor content-length (RFC 9110, section 6.4.1). */
export const hasNoBody = (status: number) => status === 204 || status === 304

/** Value of a header in a reply's own list, or undefined. */
export function sentValue(headers: HeaderList, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1]
  return undefined
}

/** The list without the headers of that name. */
export function without(headers: HeaderList, name: string): HeaderList {
  if (sentValue(headers, name) === undefined) return headers
  return headers.filter((_, i) => headers[i - (i % 2)] !== name)
}
