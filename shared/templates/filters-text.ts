import { textOr, wholeNumber } from './arguments.js'
import { type Builtin, fixed, open } from './builtin.js'
import { RenderFault } from './fault.js'
import { replace } from './find.js'
import { percentFormat } from './format-percent.js'
import { toJson } from './json.js'
import { text } from './print.js'
import type { Run } from './run.js'
import { capitalized, centered, lines, lower, replaceEach, reversed, strip, upper } from './text-functions.js'
import { characters, isDict, isList, joined, Tuple, type Value } from './values.js'

const INDENT_MAX = 1_000
const JSON_INDENT_MAX = 16

/** Filters that answer with text (Jinja's documentation, "List of Builtin Filters"). */
export const textFilters: Record<string, Builtin> = {
  upper: fixed('', (run, value) => upper(run, text(run, value))),
  lower: fixed('', (run, value) => lower(run, text(run, value))),
  capitalize: fixed('', (run, value) => capitalized(run, text(run, value))),
  title: fixed('', (run, value) => title(run, text(run, value))),
  trim: fixed('chars?', (run, value, chars) =>
    strip(run, text(run, value), chars === undefined || chars === null ? null : text(run, chars), 'both'),
  ),
  string: fixed('', text),
  replace: fixed('old new count?', (run, value, old, by, count) =>
    replace(run, text(run, value), text(run, old), text(run, by), limit(count)),
  ),
  center: fixed('width?', (run, value, width) => centered(run, text(run, value), wholeNumber(width, 80))),
  indent: fixed('width? first? blank?', indent),
  truncate: fixed('length? killwords? end? leeway?', truncate),
  wordcount: fixed('', (run, value) => wordCount(run, text(run, value))),
  escape: fixed('', (run, value) => escapeHtml(run, text(run, value))),
  e: fixed('', (run, value) => escapeHtml(run, text(run, value))),
  forceescape: fixed('', (run, value) => escapeHtml(run, text(run, value))),
  // Nothing is escaped unless a template says so, hence nothing to keep from it.
  safe: fixed('', text),
  striptags: fixed('', (run, value) => stripTags(run, text(run, value))),
  urlencode: fixed('', urlEncode),
  format: open((run, value, args, named) =>
    percentFormat(run, text(run, value), named.size > 0 ? new Map(named) : Tuple.copy(args)),
  ),
  tojson: fixed('indent?', (run, value, indentation) =>
    toJson(
      run,
      value,
      indentation === undefined || indentation === null
        ? null
        : within(wholeNumber(indentation, 0), JSON_INDENT_MAX),
    ),
  ),
}

const limit = (count: Value) => (count === undefined || count === null ? undefined : wholeNumber(count, -1))

function within(value: number, most: number): number {
  if (value > most) throw new RenderFault(`an indentation above ${most} is not available`)
  return Math.max(0, value)
}

/** Words start after white space, `-` or an opening bracket: `it's` stays one word, unlike in the method `title`. */
function title(run: Run, value: string): string {
  // Every word could be a letter.
  run.charge(1 + (value.length >> 1))
  return value.toLowerCase().replace(/(?<![^-\s({[<])[^-\s({[<]/gu, first => first.toUpperCase())
}

function indent(run: Run, value: Value, width: Value, first: Value, blank: Value): string {
  const by = typeof width === 'string' ? width : ' '.repeat(within(wholeNumber(width, 4), INDENT_MAX))
  // The added break keeps a break at the very end, as in Jinja.
  const all = lines(run, `${text(run, value)}\n`)
  run.charge(all.length)
  run.text(text(run, value).length + all.length * by.length)
  const [head = '', ...rest] = all
  const every = run.truthy(blank)
  const tail = rest.map(line => (line !== '' || every ? by + line : line))
  return (run.truthy(first) ? by : '') + [head, ...tail].join('\n')
}

function truncate(
  run: Run,
  value: Value,
  length: Value,
  killWords: Value,
  end: Value,
  leeway: Value,
): string {
  const shown = text(run, value)
  run.chargeCharacters(shown.length >> 3)
  const all = characters(shown)
  const most = wholeNumber(length, 255)
  const ending = textOr(run, end, '...')
  const endLength = characters(ending).length
  if (most < endLength) throw new RenderFault(`truncate needs a length of at least ${endLength}`)
  if (all.length <= most + wholeNumber(leeway, 5)) return shown
  const kept = joined(all.slice(0, most - endLength))
  if (run.truthy(killWords)) return kept + ending
  const space = kept.lastIndexOf(' ')
  return (space < 0 ? kept : kept.slice(0, space)) + ending
}

function wordCount(run: Run, value: string): number {
  run.chargeCharacters(value.length)
  let found = 0
  for (const _ of value.matchAll(/[\p{L}\p{N}_]+/gu)) {
    run.step()
    found++
  }
  return found
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  "'": '&#39;',
  '"': '&#34;',
}

const escapeHtml = (run: Run, value: string): string =>
  replaceEach(run, value, /[&<>'"]/g, unit => ENTITIES[unit] ?? unit)

const NAMED_ENTITY: Record<string, string> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#34;': '"',
  '&#39;': "'",
  '&nbsp;': '\u00a0',
  '&amp;': '&',
}

function stripTags(run: Run, value: string): string {
  run.chargeCharacters(value.length * 2)
  // Every tag and every word is a step.
  run.charge(value.length >> 1)
  const bare = without(without(value, '<!--', '-->'), '<', '>')
  const words = bare.split(/\s+/).filter(word => word !== '')
  return words
    .join(' ')
    .replace(/&(?:lt|gt|quot|#34|#39|nbsp|amp);/g, entity => NAMED_ENTITY[entity] ?? entity)
}

/** One pass from left to right; a start without an end stays. */
function without(value: string, start: string, end: string): string {
  let out = ''
  let from = 0
  for (;;) {
    const opened = value.indexOf(start, from)
    const closed = opened < 0 ? -1 : value.indexOf(end, opened)
    if (closed < 0) return out + value.slice(from)
    out += value.slice(from, opened)
    from = closed + end.length
  }
}

/** A dict or a list of pairs becomes a query string, anything else one quoted part of a path. */
function urlEncode(run: Run, value: Value): string {
  if (!isDict(value) && !isList(value)) return quote(run, text(run, value), '/')
  const pairs = isDict(value) ? run.entries(value) : run.list(value).map(pair => pairOf(pair))
  return pairs.map(([key, item]) => `${formQuote(run, key)}=${formQuote(run, item)}`).join('&')
}

function pairOf(value: Value): [Value, Value] {
  if (isList(value) && value.length === 2) return [value[0], value[1]]
  throw new RenderFault('urlencode needs a dict or a list of pairs')
}

const formQuote = (run: Run, value: Value) => quote(run, text(run, value), '').replaceAll('%20', '+')

function quote(run: Run, value: string, safe: string): string {
  run.charge(1 + value.length)
  let out = ''
  for (const byte of Buffer.from(value, 'utf8')) {
    const character = String.fromCharCode(byte)
    const plain = /[\w.~-]/.test(character) || (safe !== '' && safe.includes(character))
    out += plain ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  run.text(out.length)
  return out
}

/** Text or list, the other way round. */
export function reverse(run: Run, value: Value): Value {
  if (typeof value === 'string') return reversed(run, value)
  return [...run.list(value)].reverse()
}
