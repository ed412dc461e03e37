import { needText, wholeNumber } from './arguments.js'
import { type Builtin, fixed, open } from './builtin.js'
import { RenderFault } from './fault.js'
import { count, indexOf, lastIndexOf, replace, split, splitRight } from './find.js'
import { braceFormat } from './format-braces.js'
import type { Run } from './run.js'
import {
  capitalized,
  centered,
  lines,
  lower,
  padded,
  replaceEach,
  reversed,
  strip,
  upper,
  words,
} from './text-functions.js'
import { characters, isList, Tuple, type Value } from './values.js'

/** Python's methods of text. The target is known to be text. */
export const textMethods: Record<string, Builtin> = {
  upper: method('', (run, it) => upper(run, it)),
  lower: method('', (run, it) => lower(run, it)),
  casefold: method('', (run, it) => lower(run, it)),
  title: method('', (run, it) => title(run, it)),
  capitalize: method('', (run, it) => capitalized(run, it)),
  swapcase: method('', (run, it) => swapCase(run, it)),
  strip: method('chars?', (run, it, chars) => strip(run, it, charsOf(chars), 'both')),
  lstrip: method('chars?', (run, it, chars) => strip(run, it, charsOf(chars), 'left')),
  rstrip: method('chars?', (run, it, chars) => strip(run, it, charsOf(chars), 'right')),
  split: method('sep? maxsplit?', splitText),
  rsplit: method('sep? maxsplit?', splitTextRight),
  splitlines: method('keepends?', (run, it, keep) => lines(run, it, run.truthy(keep))),
  join: method('iterable', joinTexts),
  replace: method('old new count?', (run, it, old, by, most) =>
    replace(run, it, needText(old, 'replace'), needText(by, 'replace'), wholeNumber(most, -1)),
  ),
  startswith: method('prefix', (run, it, prefix) => anyText(run, prefix, text => it.startsWith(text))),
  endswith: method('suffix', (run, it, suffix) => anyText(run, suffix, text => it.endsWith(text))),
  removeprefix: method('prefix', (run, it, prefix) => {
    const start = needText(prefix, 'removeprefix')
    run.charge(start.length >> 4)
    return it.startsWith(start) ? it.slice(start.length) : it
  }),
  removesuffix: method('suffix', (run, it, suffix) => {
    const end = needText(suffix, 'removesuffix')
    run.charge(end.length >> 4)
    return end !== '' && it.endsWith(end) ? it.slice(0, -end.length) : it
  }),
  find: method('sub', (run, it, sub) => place(run, it, indexOf(run, it, needText(sub, 'find')))),
  rfind: method('sub', (run, it, sub) => place(run, it, lastIndexOf(run, it, needText(sub, 'rfind')))),
  index: method('sub', (run, it, sub) => {
    const at = place(run, it, indexOf(run, it, needText(sub, 'index')))
    if (at < 0) throw new RenderFault('index: the text is not in there')
    return at
  }),
  count: method('sub', (run, it, sub) => count(run, it, needText(sub, 'count'))),
  partition: method('sep', (run, it, sep) =>
    partition(it, needText(sep, 'partition'), text => indexOf(run, it, text)),
  ),
  rpartition: method('sep', (run, it, sep) => {
    const parts = partition(it, needText(sep, 'rpartition'), text => lastIndexOf(run, it, text))
    return parts[1] === '' ? Tuple.copy(['', '', it]) : parts
  }),
  center: method('width fillchar?', (run, it, width, fill) =>
    centered(run, it, wholeNumber(width, 0), one(fill)),
  ),
  ljust: method('width fillchar?', (run, it, width, fill) =>
    padded(run, it, wholeNumber(width, 0), one(fill), 'right'),
  ),
  rjust: method('width fillchar?', (run, it, width, fill) =>
    padded(run, it, wholeNumber(width, 0), one(fill), 'left'),
  ),
  zfill: method('width', (run, it, width) => {
    const sign = /^[-+]?/.exec(it)?.[0] ?? ''
    return sign + padded(run, it.slice(sign.length), wholeNumber(width, 0) - sign.length, '0', 'left')
  }),
  isdigit: method('', (run, it) => every(run, it, /^\p{Nd}+$/u)),
  isnumeric: method('', (run, it) => every(run, it, /^\p{N}+$/u)),
  isalpha: method('', (run, it) => every(run, it, /^\p{L}+$/u)),
  isalnum: method('', (run, it) => every(run, it, /^[\p{L}\p{N}]+$/u)),
  isspace: method('', (run, it) => every(run, it, /^\s+$/u)),
  islower: method('', (run, it) => every(run, it, /\p{Ll}/u) && !every(run, it, /[\p{Lu}\p{Lt}]/u)),
  isupper: method('', (run, it) => every(run, it, /\p{Lu}/u) && !every(run, it, /[\p{Ll}\p{Lt}]/u)),
  format: open((run, it, args, named) => braceFormat(run, it as string, args, named)),
}

function method(params: string, call: (run: Run, it: string, ...args: Value[]) => Value): Builtin {
  return fixed(params, (run, target, ...args) => call(run, target as string, ...args))
}

const charsOf = (chars: Value) => (chars === undefined || chars === null ? null : needText(chars, 'strip'))

function every(run: Run, it: string, pattern: RegExp): boolean {
  run.chargeCharacters(it.length)
  return pattern.test(it)
}

function one(fill: Value): string {
  if (fill === undefined) return ' '
  const character = needText(fill, 'the fill character')
  if (characters(character).length !== 1) throw new RenderFault('the fill character is one character')
  return character
}

/** Every run of letters starts with a capital: `it's` becomes `It'S`, as in Python. */
function title(run: Run, it: string): string {
  // Every word could be a letter.
  run.charge(1 + (it.length >> 1))
  return it.replace(/\p{L}+/gu, word => {
    const [first = ''] = word
    return first.toUpperCase() + word.slice(first.length).toLowerCase()
  })
}

const swapCase = (run: Run, it: string): string =>
  replaceEach(run, it, /\p{L}/gu, letter => {
    const raised = letter.toUpperCase()
    return raised === letter ? letter.toLowerCase() : raised
  })

function splitText(run: Run, it: string, separator: Value, most: Value): Value {
  const cuts = cutsOf(most)
  if (separator === undefined || separator === null) return words(run, it, cuts)
  return split(run, it, needText(separator, 'split'), cuts)
}

function splitTextRight(run: Run, it: string, separator: Value, most: Value): Value {
  const cuts = cutsOf(most)
  if (separator !== undefined && separator !== null)
    return splitRight(run, it, needText(separator, 'rsplit'), cuts)
  // White space is the same read backwards.
  return words(run, reversed(run, it), cuts)
    .map(word => reversed(run, word))
    .reverse()
}

function cutsOf(most: Value): number {
  const cuts = wholeNumber(most, -1)
  return cuts < 0 ? Number.POSITIVE_INFINITY : cuts
}

function joinTexts(run: Run, separator: string, list: Value): string {
  let out = ''
  for (const [at, member] of run.list(list).entries()) {
    run.step()
    const part = needText(member, 'join')
    out += (at > 0 ? separator : '') + part
    run.chargeText(part.length + separator.length)
    run.fits(out.length)
  }
  return out
}

function anyText(run: Run, wanted: Value, test: (text: string) => boolean): boolean {
  if (wanted instanceof Tuple) return wanted.some(text => anyText(run, text, test))
  if (isList(wanted)) throw new RenderFault('the comparison needs text or a tuple of texts')
  const text = needText(wanted, 'the comparison')
  run.charge(1 + (text.length >> 4))
  return test(text)
}

/** A place in UTF-16 as a place in characters. */
function place(run: Run, it: string, at: number): number {
  if (at <= 0) return at
  run.chargeText(at)
  return characters(it.slice(0, at)).length
}

function partition(it: string, separator: string, find: (text: string) => number): Tuple {
  if (separator === '') throw new RenderFault('text cannot be split at an empty separator')
  const at = find(separator)
  return Tuple.copy(at < 0 ? [it, '', ''] : [it.slice(0, at), separator, it.slice(at + separator.length)])
}
