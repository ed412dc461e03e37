import { RenderFault } from './fault.js'
import { floatText, numberText } from './print.js'

export interface NumberFormat {
  type: 'd' | 'o' | 'x' | 'X' | 'b' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%'
  precision: number | null
  sign: '-' | '+' | ' '
  /** `#`: `0x`, `0o`, `0b`. */
  prefix: boolean
  grouping: '' | ',' | '_'
}

/** JavaScript's own toFixed ends here; nobody reads a hundred decimals. */
const PRECISION_MAX = 100

/** A number as C's and Python's format codes write it, without padding. */
export function formatNumber(value: number, format: NumberFormat): string {
  if ((format.precision ?? 0) > PRECISION_MAX) {
    throw new RenderFault(`a precision above ${PRECISION_MAX} is not available`)
  }
  const size = Math.abs(value)
  const digits = Number.isFinite(value) ? unsigned(size, format) : floatText(size)
  const sign = value < 0 || Object.is(value, -0) ? '-' : format.sign === '-' ? '' : format.sign
  const upper = format.type === 'X' || format.type === 'E' || format.type === 'G'
  return sign + (upper ? digits.toUpperCase() : digits)
}

function unsigned(size: number, { type, precision, prefix, grouping }: NumberFormat): string {
  switch (type) {
    case 'd':
      return grouped(numberText(Math.trunc(size)).padStart(precision ?? 0, '0'), grouping)
    case 'o':
      return (prefix ? '0o' : '') + inBase(size, 8)
    case 'b':
      return (prefix ? '0b' : '') + inBase(size, 2)
    case 'x':
    case 'X':
      return (prefix ? '0x' : '') + inBase(size, 16)
    case 'f':
    case 'F':
      return grouped(fixed(size, precision ?? 6), grouping)
    case '%':
      return `${fixed(size * 100, precision ?? 6)}%`
    case 'e':
    case 'E':
      return exponent(size.toExponential(precision ?? 6))
    case 'g':
    case 'G':
      return grouped(general(size, precision ?? 6), grouping)
  }
}

function inBase(size: number, base: number): string {
  if (!Number.isInteger(size)) throw new RenderFault('this format needs a whole number')
  return BigInt(size).toString(base)
}

const exponent = (shown: string) => shown.replace(/e([-+])(\d)$/, 'e$10$2')

function general(size: number, precision: number): string {
  const digits = Math.max(1, precision)
  if (size === 0) return '0'
  const power = Number(size.toExponential(digits - 1).split('e')[1])
  if (power < -4 || power >= digits) {
    return exponent(size.toExponential(digits - 1).replace(/\.?0+e/, 'e'))
  }
  const shown = fixed(size, Math.max(0, digits - 1 - power))
  return shown.includes('.') ? shown.replace(/\.?0+$/, '') : shown
}

/**
 * Decimals of a number's exact binary value, a tie to the even digit, as Python rounds (JavaScript rounds ties up).
 * @param size not negative
 */
export function fixed(size: number, precision: number): string {
  const decimals = Math.min(precision, PRECISION_MAX)
  // From 1e21 on toFixed writes exponents; such numbers are whole.
  if (size >= 1e21) return numberText(size) + (decimals > 0 ? `.${'0'.repeat(decimals)}` : '')
  const rounded = size.toFixed(decimals)
  if (decimals + 1 > PRECISION_MAX || !isTie(size, decimals)) return rounded
  const last = Number(rounded.at(-1))
  return last % 2 === 0
    ? rounded
    : size
        .toFixed(decimals + 1)
        .slice(0, -1)
        .replace(/\.$/, '')
}

/** Exactly between two neighbours: the binary value ends at the digit behind the last one, and that digit is 5. */
function isTie(size: number, decimals: number): boolean {
  const exact = size.toFixed(Math.min(PRECISION_MAX, decimals + 30))
  return /^50*$/.test(exact.slice((exact.indexOf('.') + 1 || exact.length) + decimals))
}

function grouped(digits: string, separator: NumberFormat['grouping']): string {
  if (separator === '') return digits
  const [whole = '', fraction] = digits.split('.')
  const parts: string[] = []
  for (let end = whole.length; end > 0; end -= 3) parts.unshift(whole.slice(Math.max(0, end - 3), end))
  return parts.join(separator) + (fraction === undefined ? '' : `.${fraction}`)
}
