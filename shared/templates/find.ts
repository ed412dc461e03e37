/**
 * Searching text in linear time. V8's own `indexOf` is quadratic for needles beyond 250 characters (10,000 in 1,000,000:
 * 1.4 s measured) and its `lastIndexOf` from the first character on; long needles are searched with Knuth, Morris and
 * Pratt's table instead.
 */
import { RenderFault } from './fault.js'
import { ITEMS_MAX } from './limits.js'
import type { Run } from './run.js'

const LONG_NEEDLE = 200
const LONG_NEEDLE_BACKWARDS = 8

/** -1 when it is not in there. */
export function indexOf(run: Run, text: string, needle: string, from = 0): number {
  run.charge(1 + ((text.length - from) >> 6))
  if (needle.length <= LONG_NEEDLE) return text.indexOf(needle, from)
  return scan(run, text, needle, from, 'first')
}

export function lastIndexOf(run: Run, text: string, needle: string): number {
  run.charge(1 + (text.length >> 6))
  if (needle.length <= LONG_NEEDLE_BACKWARDS) return text.lastIndexOf(needle)
  return scan(run, text, needle, 0, 'last')
}

function scan(run: Run, text: string, needle: string, from: number, which: 'first' | 'last'): number {
  if (needle.length > text.length - from) return -1
  run.chargeCharacters(needle.length + text.length - from)
  const back = borders(needle)
  let found = -1
  let matched = 0
  for (let at = from; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    while (matched > 0 && needle.charCodeAt(matched) !== unit) matched = back[matched - 1] ?? 0
    if (needle.charCodeAt(matched) === unit) matched++
    if (matched === needle.length) {
      found = at - needle.length + 1
      if (which === 'first') return found
      matched = back[matched - 1] ?? 0
    }
  }
  return found
}

/** For each prefix of the needle the length of its longest proper prefix that is a suffix too. */
function borders(needle: string): Uint32Array {
  const table = new Uint32Array(needle.length)
  let matched = 0
  for (let at = 1; at < needle.length; at++) {
    while (matched > 0 && needle[matched] !== needle[at]) matched = table[matched - 1] ?? 0
    if (needle[matched] === needle[at]) matched++
    table[at] = matched
  }
  return table
}

/** The parts between the first `most` separators; a list, so at most ITEMS_MAX. */
export function split(run: Run, text: string, separator: string, most = Number.POSITIVE_INFINITY): string[] {
  if (separator === '') throw new RenderFault('text cannot be split at an empty separator')
  const parts: string[] = []
  let from = 0
  run.charge(1 + (text.length >> 6))
  while (parts.length < most) {
    const at = next(run, text, separator, from)
    if (at < 0) break
    if (parts.length >= ITEMS_MAX) run.items(parts.length + 1)
    run.step()
    parts.push(text.slice(from, at))
    from = at + separator.length
  }
  parts.push(text.slice(from))
  return parts
}

/** The same from the right end. */
export function splitRight(run: Run, text: string, separator: string, most: number): string[] {
  const parts = split(run, text, separator)
  if (parts.length <= most + 1) return parts
  const kept = parts.length - most
  return [parts.slice(0, kept).join(separator), ...parts.slice(kept)]
}

/** How often the needle is in the text, without overlaps; one more than its characters for an empty needle. */
export function count(run: Run, text: string, needle: string): number {
  if (needle === '') return text.length + 1
  let found = 0
  run.charge(1 + (text.length >> 6))
  for (let at = next(run, text, needle, 0); at >= 0; at = next(run, text, needle, at + needle.length)) {
    run.step()
    found++
  }
  return found
}

/** The first `most` occurrences replaced; an empty needle is before every character and at the end, as in Python. */
export function replace(run: Run, text: string, needle: string, by: string, most?: number): string {
  const limit = most === undefined || most < 0 ? Number.POSITIVE_INFINITY : most
  if (needle === '') return interleaved(run, text, by, limit)
  let out = ''
  let from = 0
  let replaced = 0
  run.charge(1 + (text.length >> 6))
  while (replaced < limit) {
    const at = next(run, text, needle, from)
    if (at < 0) break
    run.step()
    out += text.slice(from, at) + by
    run.fits(out.length)
    from = at + needle.length
    replaced++
  }
  if (replaced === 0) return text
  run.text(out.length + text.length - from)
  return out + text.slice(from)
}

/** One search of a walk whose text the caller has charged once: only long needles cost again, by what they read. */
function next(run: Run, text: string, needle: string, from: number): number {
  if (needle.length <= LONG_NEEDLE) return text.indexOf(needle, from)
  return scan(run, text, needle, from, 'first')
}

function interleaved(run: Run, text: string, by: string, limit: number): string {
  const characters = [...text]
  const places = Math.min(limit, characters.length + 1)
  run.chargeCharacters(text.length)
  run.text(text.length + places * by.length)
  let out = ''
  for (let at = 0; at <= characters.length; at++) {
    if (at < places) out += by
    out += characters[at] ?? ''
  }
  return out
}
