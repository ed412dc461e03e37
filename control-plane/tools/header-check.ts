import { validation } from '../../shared/errors/app-error.js'
import type { TemplatePart } from './template-references.js'

/** RFC 9110, 5.6.2. */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** What belongs to the connection and to the framing of a message is the HTTP client's own (RFC 9110, 7.6.1). */
const framing = new Set([
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'host', 'content-length', 'expect'],
])

/** Why a name cannot be a header of an outgoing call, or null. */
export function refusedHeaderName(name: string): string | null {
  if (!token.test(name)) return 'This is not a header name.'
  return framing.has(name.toLowerCase()) ? `'${name}' is set by the service itself.` : null
}

/** Whether bytes, one a character, can be a header's value: no line break and no other control character. */
export const isHeaderValue = (bytes: string): boolean => /^[\t\x20-\x7e\x80-\xff]*$/.test(bytes)

/**
 * A header of an executor, as far as its template says.
 *
 * @param field of the header, `executor.headers.0`.
 * @throws AppError VALIDATION_ERROR
 */
export function checkHeader(name: string, value: readonly TemplatePart[], field: string): void {
  const refused = refusedHeaderName(name)
  if (refused !== null) throw validation(`${field}.name: ${refused}`)
  if (value.some(part => part.kind === 'text' && !isHeaderValue(utf8Bytes(part.text)))) {
    throw validation(`${field}.value: A header value holds no line breaks or control characters.`)
  }
}

/** Headers go out as UTF-8: header values are bytes, each one a character to HTTP clients. */
export const utf8Bytes = (text: string): string => Buffer.from(text).toString('latin1')
