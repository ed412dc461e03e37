import type { RawBody } from '../providers/adapter.js'
import {
  BACKSLASH,
  byteAt,
  CLOSE_BRACE,
  COLON,
  COMMA,
  OPEN_BRACE,
  QUOTE,
  skipSpace,
  standsAt,
  valueEnd,
} from '../providers/json-text.js'

const MODEL = Buffer.from('model')

/** Where the top-level `model` of a request lies, and how many members the object has. */
export interface TopLevel {
  keys: number
  modelStart: number
  modelEnd: number
  insertAt: number
}

/**
 * Walks the top level of a JSON object that JSON.parse has accepted, so that `model` can be replaced in the client's
 * own bytes. Parsing plus stringifying a 100 KB body costs 360 µs, this walk about 6 µs.
 *
 * @param bytes the body; offsets count bytes.
 * @returns null for anything unusual (an escaped key, a second `model`): the caller writes the body anew then. A walk
 *   that took the first `model` while the provider takes the last would be a way around the scope check.
 */
export function scanTopLevel(bytes: Buffer): TopLevel | null {
  const found: TopLevel = { keys: 0, modelStart: -1, modelEnd: -1, insertAt: 0 }
  let at = skipSpace(bytes, 0)
  if (byteAt(bytes, at) !== OPEN_BRACE) return null
  found.insertAt = ++at

  for (;;) {
    at = skipSpace(bytes, at)
    if (byteAt(bytes, at) === COMMA) at = skipSpace(bytes, at + 1)
    const code = byteAt(bytes, at)
    if (code === CLOSE_BRACE) return found
    if (code !== QUOTE) return null
    const keyEnd = plainKeyEnd(bytes, at + 1)
    if (keyEnd < 0) return null
    const isModel = keyEnd - at === 6 && standsAt(bytes, at + 1, MODEL)
    found.keys++

    at = skipSpace(bytes, keyEnd + 1)
    if (byteAt(bytes, at) !== COLON) return null
    const valueStart = skipSpace(bytes, at + 1)
    const after = valueEnd(bytes, valueStart)
    if (after < 0) return null
    if (isModel) {
      if (found.modelStart >= 0) return null
      found.modelStart = valueStart
      found.modelEnd = after
    }
    at = after
  }
}

/** Fields of RawBody that the scan gives, or null when the body must be written anew. */
export function spliceable(
  bytes: Buffer,
  memberCount: number,
): Pick<RawBody, 'modelStart' | 'modelEnd' | 'insertAt'> | null {
  const top = scanTopLevel(bytes)
  // Fewer members after parsing than on the wire: a name came twice.
  if (top === null || top.keys !== memberCount || top.modelStart < 0) return null
  return top
}

/** @returns the offset of the quote that closes a key, or -1 when an escape or the end of the text comes first. */
function plainKeyEnd(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const code = bytes[at]
    if (code === QUOTE) return at
    if (code === BACKSLASH) return -1
  }
  return -1
}
