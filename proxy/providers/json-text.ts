/**
 * Walks over JSON as bytes, for the two places where parsing a body would cost more than the whole rest of a call: the
 * client's request, whose model is replaced in its own bytes, and the provider's answer, whose usage is read in passing.
 * Every function takes an offset and gives an offset. Bytes above 127 are inside of strings, so UTF-8 needs no decoding.
 *
 * Bytes, not a latin1 string: V8 knows strings in more shapes than its inline caches hold, and with every shape seen
 * `text.charCodeAt` becomes a look-up by name: 60 of 418 thousand instructions of a call.
 */

// Not exported: what a module exports lies in a cell, which every use reads and checks anew. With five comparisons a
// byte that was half of a walk's instructions.
const QUOTE = 34
const COMMA = 44
const COLON = 58
const BACKSLASH = 92
const OPEN_BRACE = 123
const CLOSE_BRACE = 125
const OPEN_BRACKET = 91
const CLOSE_BRACKET = 93

/** A string that is longer is skipped by memchr: calling it costs what a walk over some ten bytes does. */
const LONG_STRING = 20

export const isSpace = (code: number | undefined) => code === 32 || code === 10 || code === 13 || code === 9

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

/**
 * The members of an object, one after the other, without an object for each. It takes for granted that the text is JSON
 * and finds out only what a caller asks: a text that is none ends the walk somewhere.
 */
export class Members {
  /** Of the key, between its quotes. */
  keyStart = 0
  keyEnd = 0
  valueStart = 0
  valueEnd = 0
  /** Behind the closing brace once `next` found it; -1 before, and when it found something else. */
  end = -1
  #at: number

  /** @param from anywhere between two members: behind the opening brace, behind a value. */
  constructor(
    readonly bytes: Buffer,
    from: number,
  ) {
    this.#at = from
  }

  /** @returns false at the closing brace, and at what no walk should go on with: an escape in a key, a cut text. */
  next(): boolean {
    const { bytes } = this
    let at = skipSpace(bytes, this.#at)
    if (byteAt(bytes, at) === COMMA) at = skipSpace(bytes, at + 1)
    const code = byteAt(bytes, at)
    if (code === CLOSE_BRACE) this.end = at + 1
    if (code !== QUOTE) return false
    this.keyStart = at + 1
    this.keyEnd = plainKeyEnd(bytes, at + 1)
    if (this.keyEnd < 0) return false
    at = skipSpace(bytes, this.keyEnd + 1)
    if (byteAt(bytes, at) !== COLON) return false
    this.valueStart = skipSpace(bytes, at + 1)
    this.valueEnd = valueEnd(bytes, this.valueStart)
    this.#at = this.valueEnd
    return this.valueEnd >= 0
  }

  isNamed(name: Buffer): boolean {
    return this.keyEnd - this.keyStart === name.length && standsAt(this.bytes, this.keyStart, name)
  }
}

/** @returns the offset of the quote that closes a key, or -1 when an escape or the end of the text comes first. */
function plainKeyEnd(bytes: Buffer, from: number): number {
  const { length } = bytes
  for (let at = from; at < length; at++) {
    const code = bytes[at]
    if (code === QUOTE) return at
    if (code === BACKSLASH) return -1
  }
  return -1
}

/** @returns the offset behind the string that opens at `from - 1`, or -1. */
function stringEnd(bytes: Buffer, from: number): number {
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
