import { fixed } from './format-number.js'
import { Float, float, isFloat, isNumber, toNumber, type Value } from './values.js'

const FLOAT_TEXT = /^[+-]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:e[+-]?\d+)?$/i

/** Python's `float(value)`; null where it raises. */
export function parseFloatValue(value: Value): number | null {
  if (isNumber(value)) return toNumber(value)
  if (typeof value !== 'string' || value.length > 2_000) return null
  const text = value.trim()
  if (FLOAT_TEXT.test(text)) return Number(text.replaceAll('_', ''))
  const word = /^([+-]?)(inf|infinity|nan)$/i.exec(text)
  if (word === null) return null
  if (word[2]?.toLowerCase() === 'nan') return Number.NaN
  return word[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}

const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'
const PREFIX: Record<number, RegExp> = { 2: /^0b/i, 8: /^0o/i, 16: /^0x/i }

/** Python's `int(text, base)`; null where it raises. */
function parseInteger(value: string, base: number): number | null {
  if (value.length > 2_000 || base < 2 || base > 36) return null
  const [, sign = '', digits = ''] = /^([+-]?)(.*)$/s.exec(value.trim().toLowerCase()) ?? []
  const bare = digits.replace(PREFIX[base] ?? /^(?!)/, '').replace(/(?<=[^_])_(?=[^_])/g, '')
  if (bare === '') return null
  let number = 0
  for (const digit of bare) {
    const worth = DIGITS.indexOf(digit)
    if (worth < 0 || worth >= base) return null
    number = number * base + worth
  }
  return sign === '-' ? -number : number
}

/** The filter `int`: text of a float counts too (`'3.7'` is 3); null where Python gives up. */
export function toInteger(value: Value, base: number): number | null {
  if (typeof value === 'string') {
    const whole = parseInteger(value, base)
    if (whole !== null && Number.isFinite(whole)) return whole
  }
  const number = parseFloatValue(value)
  return number === null || !Number.isFinite(number) ? null : Math.trunc(number) + 0
}

/** Python's `round`: ties to even, by the number's exact binary value; an int stays an int. */
export function round(value: number | boolean | Float, precision: number): Value {
  const number = toNumber(value)
  if (!isFloat(value)) return precision >= 0 ? number : roundTens(number, -precision)
  if (!Number.isFinite(number)) return number
  if (precision < 0) return new Float(roundTens(number, -precision))
  const size = Number(fixed(Math.abs(number), precision))
  return float(number < 0 || Object.is(number, -0) ? -size : size)
}

function roundTens(number: number, zeros: number): number {
  if (zeros > 308) return 0
  const unit = 10 ** zeros
  const down = Math.floor(number / unit)
  const rest = number - down * unit
  const up = rest > unit / 2 || (rest === unit / 2 && down % 2 !== 0)
  return (up ? down + 1 : down) * unit
}

/** `round(precision, 'ceil' | 'floor')`: always a float. */
export function roundTo(value: number, precision: number, method: 'ceil' | 'floor'): Value {
  const unit = 10 ** precision
  const whole = method === 'ceil' ? Math.ceil(value * unit) : Math.floor(value * unit)
  return float((whole + 0) / unit)
}
