import { RenderFault } from './fault.js'
import { formatNumber, type NumberFormat } from './format-number.js'
import { repr, text } from './print.js'
import type { Run } from './run.js'
import { dictGet, isDict, isList, isNumber, Tuple, toNumber, typeName, type Value } from './values.js'

const PLACE = /%(?:\(([^()]*)\))?([-+ 0#]*)(\d{1,7}|\*)?(?:\.(\d{0,7}))?([a-zA-Z%])?/g

/** `"%s: %.2f" % (name, price)` and `"%(name)s" % dict`, also as the filter `format`. */
export function percentFormat(run: Run, format: string, given: Value): string {
  const values = given instanceof Tuple ? given : [given]
  let next = 0
  run.charge(1 + (format.length >> 1))
  const take = (): Value => {
    if (next >= values.length) throw new RenderFault('there are fewer values than places in the format')
    return values[next++]
  }
  let length = format.length
  const out = format.replace(PLACE, (...match: (string | undefined)[]) => {
    const [place, key, flags = '', width, precision, conversion] = match
    if (conversion === undefined) throw new RenderFault(`\`${place}\` is not a complete place of a format`)
    if (conversion === '%') return '%'
    if (width === '*') throw new RenderFault('`*` as the width of a place is not available')
    const value = key === undefined ? take() : named(given, key)
    const wide = Number(width ?? 0)
    run.fits(length + wide + Number(precision ?? 0))
    const shown = filled(run, value, conversion, {
      flags,
      precision: precision === undefined ? null : Number(precision),
    })
    const padded = pad(shown, wide, flags, conversion)
    length += padded.length
    run.chargeText(padded.length)
    run.fits(length)
    return padded
  })
  // Python asks this of tuples and plain values only: a dict or list may hold more than the format takes.
  const mayHoldMore = given === undefined || isDict(given) || (isList(given) && !(given instanceof Tuple))
  if (next < values.length && !(next === 0 && mayHoldMore)) {
    throw new RenderFault('there are more values than places in the format')
  }
  return out
}

function named(given: Value, key: string): Value {
  if (!isDict(given)) throw new RenderFault('a format with names needs a dict')
  const value = dictGet(given, key)
  if (value === undefined) throw new RenderFault(`the format's '${key}' is not in the dict`)
  return value
}

function filled(
  run: Run,
  value: Value,
  conversion: string,
  { flags, precision }: { flags: string; precision: number | null },
): string {
  if (conversion === 's' || conversion === 'r' || conversion === 'a') {
    const shown = conversion === 's' ? text(run, value) : repr(run, value)
    return precision === null ? shown : shown.slice(0, precision)
  }
  if (conversion === 'c') return typeof value === 'string' ? value : String.fromCodePoint(codePoint(value))
  if (!'diouxXeEfFgG'.includes(conversion)) throw new RenderFault(`%${conversion} is not a format`)
  if (!isNumber(value)) throw new RenderFault(`%${conversion} needs a number, not ${typeName(value)}`)
  const type = 'diu'.includes(conversion) ? 'd' : (conversion as NumberFormat['type'])
  const number = 'diu'.includes(conversion) ? Math.trunc(toNumber(value)) : toNumber(value)
  return formatNumber(number, {
    type,
    precision,
    sign: flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '-',
    prefix: flags.includes('#'),
    grouping: '',
  })
}

function codePoint(value: Value): number {
  const code = isNumber(value) ? toNumber(value) : -1
  if (!Number.isInteger(code) || code < 0 || code > 0x10ffff) throw new RenderFault('%c needs a character')
  return code
}

function pad(shown: string, width: number, flags: string, conversion: string): string {
  if (shown.length >= width) return shown
  if (flags.includes('-')) return shown.padEnd(width)
  if (!flags.includes('0') || 'sracrR'.includes(conversion)) return shown.padStart(width)
  const sign = /^[-+ ]?(?:0[xXo])?/.exec(shown)?.[0] ?? ''
  return sign + shown.slice(sign.length).padStart(width - sign.length, '0')
}
