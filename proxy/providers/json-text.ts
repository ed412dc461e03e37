/**
 * Walks over JSON as bytes, for the two places where parsing a body would cost more than the whole rest of a call: the
 * client's request, whose model is replaced in its own bytes, and the provider's answer, whose usage is read in passing.
 * Every function takes an offset and gives an offset. Bytes above 127 are inside of strings, so UTF-8 needs no decoding.
 *
 * Bytes, not a latin1 string: V8 knows strings in more shapes than its inline caches hold, and with every shape seen
 * `text.charCodeAt` becomes a look-up by name: 60 of 418 thousand instructions of a call.
 */
export const QUOTE = 34
export const COMMA = 44
export const COLON = 58
export const BACKSLASH = 92
export const OPEN_BRACE = 123
export const CLOSE_BRACE = 125
export const OPEN_BRACKET = 91
export const CLOSE_BRACKET = 93

/** A string that is longer is skipped by memchr, which costs some 60 ns to call and then next to nothing. */
const LONG_STRING = 48

const isSpace = (code: number | undefined) => code === 32 || code === 10 || code === 13 || code === 9

export function skipSpace(bytes: Buffer, from: number): number {
  const { length } = bytes
  let at = from
  while (at < length && isSpace(bytes[at])) at++
  return at
}

/** The byte at an offset; 0, which JSON does not have, behind the end. */
export const byteAt = (bytes: Buffer, at: number): number => (at < bytes.length ? (bytes[at] as number) : 0)

/** Whether the text, of ASCII characters, stands at an offset. */
export function standsAt(bytes: Buffer, at: number, text: Buffer): boolean {
  if (at + text.length > bytes.length) return false
  for (let index = 0; index < text.length; index++) {
    if (bytes[at + index] !== text[index]) return false
  }
  return true
}

/** @returns the offset behind the string that opens at `from - 1`, or -1. */
export function stringEnd(bytes: Buffer, from: number): number {
  const near = Math.min(bytes.length, from + LONG_STRING)
  let at = from
  while (at < near) {
    const code = bytes[at]
    if (code === QUOTE) return at + 1
    at += code === BACKSLASH ? 2 : 1
  }
  return longStringEnd(bytes, at)
}

/** @param from inside of a string, not behind a backslash. */
function longStringEnd(bytes: Buffer, from: number): number {
  for (let at = from; ; ) {
    const quote = bytes.indexOf(QUOTE, at)
    if (quote < 0) return -1
    let slashes = 0
    while (quote - slashes > from && bytes[quote - 1 - slashes] === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote + 1
    at = quote + 1
  }
}

/** @returns the offset behind the value that starts at `from`, or -1 when the text ends before it. */
export function valueEnd(bytes: Buffer, from: number): number {
  const { length } = bytes
  if (from >= length) return -1
  const first = bytes[from]
  if (first === QUOTE) return stringEnd(bytes, from + 1)
  return first === OPEN_BRACE || first === OPEN_BRACKET ? nestedEnd(bytes, from) : literalEnd(bytes, from)
}

/** Of an object or array. Brackets are counted, not matched: who walks here has parsed the text or does not trust it. */
function nestedEnd(bytes: Buffer, from: number): number {
  const { length } = bytes
  let depth = 0
  for (let at = from; at < length; at++) {
    const code = bytes[at] as number
    if (code === QUOTE) {
      at = stringEnd(bytes, at + 1) - 1
      if (at < 0) return -1
      continue
    }
    // Digits, commas, colons and spaces are below, letters of literals between the two pairs.
    if (code < OPEN_BRACKET) continue
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) return at + 1
  }
  return -1
}

/** Of a number, true, false or null: up to what cannot be in one. */
function literalEnd(bytes: Buffer, from: number): number {
  const { length } = bytes
  for (let at = from; at < length; at++) {
    const code = bytes[at] as number
    if (code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || isSpace(code)) return at
  }
  return -1
}
