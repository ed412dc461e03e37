import type { Named } from './builtin.js'
import { RenderFault } from './fault.js'
import { formatNumber, type NumberFormat } from './format-number.js'
import { floatText, repr, text } from './print.js'
import type { Run } from './run.js'
import { padded } from './text-functions.js'
import { isFloat, isNumber, toNumber, typeName, type Value } from './values.js'

const PLACE = /\{\{|\}\}|\{([A-Za-z_]\w*|\d{1,6})?(?:!([rs]))?(?::([^{}]*))?\}|[{}]/g
const SPEC = /^(?:(.)?([<>^=]))?([-+ ])?(#)?(0)?(\d{1,7})?([,_])?(?:\.(\d{1,3}))?([bdeEfFgGosxX%])?$/su

/** `'{} of {1:.2f} {name}'.format(...)`. Places name arguments only: `{0.x}` and `{0[x]}` are refused. */
export function braceFormat(run: Run, format: string, args: readonly Value[], named: Named): string {
  let next = 0
  let length = format.length
  run.charge(1 + (format.length >> 1))
  return format.replace(PLACE, (place: string, key?: string, conversion?: string, spec?: string) => {
    if (place === '{{' || place === '}}') return place.slice(1)
    if (place.length === 1)
      throw new RenderFault('the format has a brace without its pair, or an unknown place')
    const position = key === undefined ? next++ : /^\d/.test(key) ? Number(key) : null
    const known = position === null ? named.has(key ?? '') : position < args.length
    if (!known) throw new RenderFault(`the format's place ${place} has no value`)
    const value = position === null ? named.get(key ?? '') : args[position]
    const shown = conversion === 'r' ? repr(run, value) : value
    const filled = spec === undefined || spec === '' ? text(run, shown) : specified(run, shown, spec)
    length += filled.length
    run.chargeText(filled.length)
    run.fits(length)
    return filled
  })
}

function specified(run: Run, value: Value, spec: string): string {
  const parts = SPEC.exec(spec)
  if (parts === null) throw new RenderFault(`\`${spec}\` is not a format`)
  const [, fill = ' ', align, sign = '-', prefix, zero, width = '0', grouping = '', precision, type] = parts
  const digits = precision === undefined ? null : Number(precision)
  if (!isNumber(value) || typeof value === 'boolean') {
    if (type !== undefined && type !== 's')
      throw new RenderFault(`${typeName(value)} cannot be shown as ${type}`)
    const shown = text(run, value)
    return aligned(run, digits === null ? shown : shown.slice(0, digits), align ?? '<', fill, Number(width))
  }
  const shown = numberShown(value, type, {
    precision: digits,
    sign: sign as NumberFormat['sign'],
    prefix: prefix === '#',
    grouping: grouping as NumberFormat['grouping'],
  })
  if (zero === '0' && align === undefined) return aligned(run, shown, '=', '0', Number(width))
  return aligned(run, shown, align ?? '>', fill, Number(width))
}

function numberShown(value: Value, type: string | undefined, format: Omit<NumberFormat, 'type'>): string {
  const number = toNumber(value as number)
  if (type !== undefined) {
    if (type === 's' || (type === 'd' && isFloat(value))) {
      throw new RenderFault(`${typeName(value)} cannot be shown as ${type}`)
    }
    return formatNumber(number, { type: type as NumberFormat['type'], ...format })
  }
  if (!isFloat(value)) return formatNumber(number, { type: 'd', ...format })
  if (format.precision !== null) return formatNumber(number, { type: 'g', ...format })
  const decimals = floatText(Math.abs(number)).split('.')[1]?.length ?? 1
  const plain = !/[en]/.test(floatText(number))
  return plain ? formatNumber(number, { type: 'f', ...format, precision: decimals }) : floatText(number)
}

function aligned(run: Run, shown: string, align: string, fill: string, width: number): string {
  if (align === '^') {
    const missing = Math.max(0, width - shown.length)
    // Unlike str.center, format puts the odd space to the right.
    const left = Math.floor(missing / 2)
    return padded(run, padded(run, shown, shown.length + left, fill, 'left'), width, fill, 'right')
  }
  if (align === '<') return padded(run, shown, width, fill, 'right')
  if (align === '>') return padded(run, shown, width, fill, 'left')
  const sign = /^[-+ ]?/.exec(shown)?.[0] ?? ''
  return sign + padded(run, shown.slice(sign.length), width - sign.length, fill, 'left')
}
