/** What the filters and the methods of text share. Each charges by the length of what it reads. */

import type { Run } from './run.js'
import { characters, joined } from './values.js'

export function upper(run: Run, text: string): string {
  run.chargeText(text.length * 4)
  return text.toUpperCase()
}

export function lower(run: Run, text: string): string {
  run.chargeText(text.length * 4)
  return text.toLowerCase()
}

export function capitalized(run: Run, text: string): string {
  const [first = ''] = text
  return upper(run, first) + lower(run, text.slice(first.length))
}

/** White space, or any of `chars`, off one end or both. */
export function strip(run: Run, text: string, chars: string | null, ends: 'both' | 'left' | 'right'): string {
  run.chargeText(text.length)
  if (chars === null) {
    return ends === 'both' ? text.trim() : ends === 'left' ? text.trimStart() : text.trimEnd()
  }
  run.chargeCharacters(chars.length)
  const off = new Set(chars)
  const all = characters(text)
  let from = 0
  let to = all.length
  if (ends !== 'right') while (from < to && off.has(all[from] as string)) from++
  if (ends !== 'left') while (to > from && off.has(all[to - 1] as string)) to--
  run.charge((from + all.length - to) >> 3)
  return joined(all.slice(from, to))
}

export function reversed(run: Run, text: string): string {
  run.chargeCharacters(text.length * 2)
  return [...text].reverse().join('')
}

/** Characters as Python counts them. */
export function textLength(run: Run, text: string): number {
  run.chargeText(text.length)
  return characters(text).length
}

const CHUNK_LENGTH = 8_192

/**
 * Every match of a pattern that matches single characters replaced. In chunks, because V8 finds all matches before it
 * calls back for the first: a million of them take 150 ms that nothing could end.
 */
export function replaceEach(
  run: Run,
  text: string,
  pattern: RegExp,
  by: (character: string) => string,
): string {
  let out = ''
  for (let from = 0; from < text.length; ) {
    let to = Math.min(text.length, from + CHUNK_LENGTH)
    // Not between the halves of a surrogate pair.
    if (to < text.length && (text.charCodeAt(to) & 0xfc00) === 0xdc00) to--
    run.chargeCharacters(to - from)
    out += text.slice(from, to).replace(pattern, character => {
      run.step()
      return by(character)
    })
    run.fits(out.length)
    from = to
  }
  return out
}

// What str.splitlines of Python ends a line at, but for the control characters U+001C to U+001E.
const LINE_BREAK = /\r\n|[\n\r\v\f\x85\u2028\u2029]/g

/** Python's `splitlines()`: a break at the very end ends the last line instead of starting another. */
export function lines(run: Run, text: string, keepEnds = false): string[] {
  run.chargeCharacters(text.length)
  const found: string[] = []
  let from = 0
  for (const match of text.matchAll(LINE_BREAK)) {
    const end = match.index + match[0].length
    found.push(text.slice(from, keepEnds ? end : match.index))
    from = end
    run.step()
  }
  if (from < text.length) found.push(text.slice(from))
  return found
}

export function padded(run: Run, text: string, width: number, fill: string, side: 'left' | 'right'): string {
  const missing = width - textLength(run, text)
  if (missing <= 0) return text
  run.text(text.length + missing * fill.length)
  return side === 'left' ? fill.repeat(missing) + text : text + fill.repeat(missing)
}

/** Python puts the odd space to the left when the width is odd too. */
export function centered(run: Run, text: string, width: number, fill = ' '): string {
  const missing = width - textLength(run, text)
  if (missing <= 0) return text
  run.text(text.length + missing * fill.length)
  const left = Math.floor(missing / 2) + (missing & width & 1)
  return fill.repeat(left) + text + fill.repeat(missing - left)
}

/** Words between runs of white space; at most `most` cuts, the rest as it is. */
export function words(run: Run, text: string, most = Number.POSITIVE_INFINITY): string[] {
  run.chargeCharacters(text.length)
  const found: string[] = []
  let rest = 0
  for (const match of text.matchAll(/\S+/g)) {
    if (found.length >= most) return [...found, text.slice(match.index)]
    run.step()
    if (found.length % 1024 === 0) run.items(found.length)
    found.push(match[0])
    rest = match.index + match[0].length
  }
  run.items(found.length)
  return rest === 0 ? [] : found
}
