import { needNumber, textOr, wholeNumber } from './arguments.js'
import { arithmetic } from './arithmetic.js'
import { type Builtin, fixed } from './builtin.js'
import { equals, order } from './compare.js'
import { RenderFault } from './fault.js'
import { reverse } from './filters-text.js'
import { attribute, item } from './lookup.js'
import { parseFloatValue, round, roundTo, toInteger } from './number-functions.js'
import { text } from './print.js'
import type { Run } from './run.js'
import { lower, textLength } from './text-functions.js'
import {
  Float,
  float,
  Group,
  isDict,
  isFloat,
  isList,
  isNumber,
  Tuple,
  toNumber,
  typeName,
  type Value,
} from './values.js'

/** Filters over lists, dicts and numbers (Jinja's documentation, "List of Builtin Filters"). */
export const listFilters: Record<string, Builtin> = {
  default: fixed('default_value? boolean?', orDefault),
  d: fixed('default_value? boolean?', orDefault),
  length: fixed('', length),
  count: fixed('', length),
  first: fixed('', (run, value) => run.list(value)[0]),
  last: fixed('', (run, value) => run.list(value).at(-1)),
  list: fixed('', (run, value) => [...run.list(value)]),
  join: fixed('d? attribute?', join),
  reverse: fixed('', reverse),
  sort: fixed('reverse? case_sensitive? attribute?', sort),
  unique: fixed('case_sensitive? attribute?', unique),
  min: fixed('case_sensitive? attribute?', (run, value, cased, by) => extreme(run, value, cased, by, -1)),
  max: fixed('case_sensitive? attribute?', (run, value, cased, by) => extreme(run, value, cased, by, 1)),
  sum: fixed('attribute? start?', sum),
  batch: fixed('linecount fill_with?', batch),
  slice: fixed('slices fill_with?', slices),
  groupby: fixed('attribute default? case_sensitive?', groupBy),
  items: fixed('', (run, value) => (value === undefined ? [] : pairs(run, value, 'items'))),
  dictsort: fixed('case_sensitive? by? reverse?', dictSort),
  int: fixed('default? base?', (run, value, fallback, base) => {
    if (value === undefined) throw new RenderFault('int needs a value that is defined')
    if (typeof value === 'string') run.chargeCharacters(value.length)
    return toInteger(value, wholeNumber(base, 10)) ?? (fallback === undefined ? 0 : fallback)
  }),
  float: fixed('default?', (run, value, fallback) => {
    if (typeof value === 'string') run.chargeCharacters(value.length)
    if (value === undefined) throw new RenderFault('float needs a value that is defined')
    const number = parseFloatValue(value)
    return number === null ? (fallback === undefined ? new Float(0) : fallback) : float(number)
  }),
  abs: fixed('', (_run, value) => {
    const size = Math.abs(needNumber(value, 'abs'))
    return isFloat(value) ? float(size) : size
  }),
  round: fixed('precision? method?', (run, value, precision, method) => {
    if (!isNumber(value)) throw new RenderFault(`round needs a number, not ${typeName(value)}`)
    const how = textOr(run, method, 'common')
    const digits = wholeNumber(precision, 0)
    if (how === 'common') return round(value, digits)
    if (how !== 'ceil' && how !== 'floor') throw new RenderFault('round knows common, ceil and floor')
    return roundTo(toNumber(value), digits, how)
  }),
}

function orDefault(run: Run, value: Value, fallback: Value, boolean: Value): Value {
  const taken = value === undefined || (run.truthy(boolean) && !run.truthy(value))
  return taken ? (fallback === undefined ? '' : fallback) : value
}

export function length(run: Run, value: Value): number {
  if (typeof value === 'string') return textLength(run, value)
  if (isList(value)) return value.length
  if (value === undefined) return 0
  if (isDict(value)) return run.size(value)
  throw new RenderFault(`${typeName(value)} has no length`)
}

function join(run: Run, value: Value, separator: Value, by: Value): string {
  const between = textOr(run, separator, '')
  const read = by === undefined ? null : getter(run, by)
  let out = ''
  let first = true
  for (const member of run.list(value)) {
    run.step()
    const shown = text(run, read === null ? member : read(member))
    out += first ? shown : between + shown
    first = false
    run.chargeText(shown.length + between.length)
    run.fits(out.length)
  }
  return out
}

/** `'a'`, `'a.b'`, `'a.0'` or a number, as `attribute=` takes them; `fallback` stands for what is missing. */
export function getter(run: Run, path: Value, fallback?: Value): (value: Value) => Value {
  const parts = typeof path === 'number' ? [path] : text(run, path).split('.').map(partOf)
  run.charge(parts.length)
  return value => {
    let found = value
    for (const part of parts) {
      run.step()
      if (found === undefined) throw new RenderFault(`'${part}' cannot be read of an undefined value`)
      found = typeof part === 'number' ? item(run, found, part) : attribute(run, found, part)
      if (found === undefined && fallback !== null) found = fallback
    }
    return found
  }
}

const partOf = (part: string): string | number => (/^\d{1,9}$/.test(part) ? Number(part) : part)

/** What sorting, grouping and uniqueness look at: the attribute, without its case unless that counts. */
function keyed(run: Run, by: Value, caseSensitive: Value, fallback?: Value): (value: Value) => Value {
  const read = by === undefined || by === null ? (value: Value) => value : getter(run, by, fallback)
  if (run.truthy(caseSensitive)) return read
  return value => {
    const key = read(value)
    return typeof key === 'string' ? lower(run, key) : key
  }
}

function sort(run: Run, value: Value, backwards: Value, caseSensitive: Value, by: Value): Value[] {
  const paths = typeof by === 'string' ? by.split(',') : [by]
  const keys = paths.map(path => keyed(run, path, caseSensitive))
  return sorted(run, run.list(value), member => keys.map(key => key(member)), run.truthy(backwards))
}

/** Stable, also backwards: equal members keep their order, as Python's `reverse=True`. */
function sorted(
  run: Run,
  list: readonly Value[],
  keysOf: (member: Value) => Value[],
  backwards: boolean,
): Value[] {
  const rows = list.map(member => ({ member, keys: keysOf(member) }))
  rows.sort((a, b) => {
    const way = orderAll(run, a.keys, b.keys)
    return backwards ? -way : way
  })
  return rows.map(({ member }) => member)
}

function orderAll(run: Run, left: Value[], right: Value[]): number {
  for (let at = 0; at < left.length; at++) {
    if (left.length > 1 && equals(run, left[at], right[at])) continue
    return order(run, left[at], right[at])
  }
  return 0
}

function unique(run: Run, value: Value, caseSensitive: Value, by: Value): Value[] {
  const key = keyed(run, by, caseSensitive)
  const seen = new Set<unknown>()
  return run.list(value).filter(member => {
    run.step()
    const found = key(member)
    if (typeof found === 'object' && found !== null && !(found instanceof Float)) {
      throw new RenderFault(`unique cannot compare ${typeName(found)}`)
    }
    const plain = isNumber(found) ? toNumber(found) : found
    if (seen.has(plain)) return false
    seen.add(plain)
    return true
  })
}

function extreme(run: Run, value: Value, caseSensitive: Value, by: Value, sign: number): Value {
  const key = keyed(run, by, caseSensitive)
  const list = run.list(value)
  let best = list[0]
  if (list.length === 0) return undefined
  let bestKey = key(best)
  for (const member of list.slice(1)) {
    const memberKey = key(member)
    if (order(run, memberKey, bestKey) * sign > 0) {
      best = member
      bestKey = memberKey
    }
  }
  return best
}

function sum(run: Run, value: Value, by: Value, start: Value): Value {
  const read = by === undefined || by === null ? null : getter(run, by)
  let total: Value = start === undefined ? 0 : start
  if (typeof total === 'string') throw new RenderFault('sum adds numbers, not text')
  for (const member of run.list(value)) {
    total = arithmetic(run, '+', total, read === null ? member : read(member))
  }
  return total
}

function batch(run: Run, value: Value, count: Value, fill: Value): Value[] {
  const size = wholeNumber(count, 1)
  const list = run.list(value)
  const rows: Value[] = []
  if (size < 1) throw new RenderFault('batch needs a size of at least 1')
  for (let from = 0; from < list.length; from += size) rows.push(list.slice(from, from + size))
  const last = rows.at(-1)
  if (isList(last) && fill !== undefined && fill !== null && last.length < size) {
    run.items(size)
    rows[rows.length - 1] = [...last, ...Array<Value>(size - last.length).fill(fill)]
  }
  return rows
}

/** As many columns as asked for; the first ones are the longer ones. */
function slices(run: Run, value: Value, count: Value, fill: Value): Value[] {
  const columns = wholeNumber(count, 1)
  const list = run.list(value)
  if (columns < 1) throw new RenderFault('slice needs a number of at least 1')
  run.items(columns)
  const size = Math.floor(list.length / columns)
  const longer = list.length % columns
  const rows: Value[] = []
  let from = 0
  for (let at = 0; at < columns; at++) {
    const to = from + size + (at < longer ? 1 : 0)
    const row = list.slice(from, to)
    if (fill !== undefined && fill !== null && at >= longer) row.push(fill)
    rows.push(row)
    from = to
  }
  return rows
}

function groupBy(run: Run, value: Value, by: Value, fallback: Value, caseSensitive: Value): Value[] {
  const key = keyed(run, by, caseSensitive, fallback)
  const shown = getter(run, by, fallback)
  const groups: Group[] = []
  let last: Value
  for (const member of sorted(run, run.list(value), row => [key(row)], false)) {
    const found = key(member)
    const group = groups.at(-1)
    if (group !== undefined && equals(run, found, last)) {
      ;(group[1] as Value[]).push(member)
      continue
    }
    last = found
    const fresh = new Group(2)
    fresh[0] = shown(member)
    fresh[1] = [member]
    groups.push(fresh)
  }
  return groups
}

/** `(key, value)` pairs. @throws RenderFault for anything but a dict */
export function pairs(run: Run, value: Value, what: string): Tuple[] {
  if (!isDict(value)) throw new RenderFault(`${what} needs a dict, not ${typeName(value)}`)
  return run.entries(value).map(([key, member]) => Tuple.of2(key, member))
}

function dictSort(run: Run, value: Value, caseSensitive: Value, by: Value, backwards: Value): Value[] {
  const which = textOr(run, by, 'key')
  if (which !== 'key' && which !== 'value') throw new RenderFault("dictsort sorts by 'key' or by 'value'")
  const key = keyed(run, which === 'key' ? 0 : 1, caseSensitive)
  return sorted(run, pairs(run, value, 'dictsort'), pair => [key(pair)], run.truthy(backwards))
}
