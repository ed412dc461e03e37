/**
 * Walks over JSON as text, for the two places where parsing a body would cost more than the whole rest of a call: the
 * client's request, whose model is replaced in its own bytes, and the provider's answer, whose usage is read in passing.
 * Strings are skipped by indexOf, which is a memchr. Every function takes an offset and gives an offset.
 */
export const QUOTE = 34
export const COMMA = 44
export const COLON = 58
export const BACKSLASH = 92
export const OPEN_BRACE = 123
export const CLOSE_BRACE = 125
export const OPEN_BRACKET = 91
export const CLOSE_BRACKET = 93

const isSpace = (code: number) => code === 32 || code === 10 || code === 13 || code === 9

export function skipSpace(text: string, from: number): number {
  let at = from
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

/** @returns the offset behind the string that opens at `from - 1`, or -1. */
export function stringEnd(text: string, from: number): number {
  for (let at = from; ; ) {
    const quote = text.indexOf('"', at)
    if (quote < 0) return -1
    let slashes = 0
    while (text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote + 1
    at = quote + 1
  }
}

/** @returns the offset behind the value that starts at `from`, or -1 when the text ends before it. */
export function valueEnd(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; ) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = stringEnd(text, at + 1)
      if (at < 0 || depth === 0) return at
      continue
    }
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (depth === 0) return at
      if (--depth === 0) return at + 1
    } else if (depth === 0 && (code === COMMA || isSpace(code))) return at
    at++
  }
  return -1
}
