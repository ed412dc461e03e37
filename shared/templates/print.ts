import { RenderFault } from './fault.js'
import { VALUE_DEPTH_MAX } from './limits.js'
import type { Run } from './run.js'
import { replaceEach } from './text-functions.js'
import { Float, isList, LoopState, Namespace, Tuple, type Value } from './values.js'

/** What `{{ value }}` prints: Python's `str(value)`, nothing for an undefined value. */
export function text(run: Run, value: Value): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return numberText(value)
  if (value === undefined) return ''
  return repr(run, value)
}

/** Python's `repr(value)`: what a value looks like inside a list. */
export function repr(run: Run, value: Value): string {
  return new Printer(run).show(value, 0)
}

class Printer {
  #length = 0

  constructor(readonly run: Run) {}

  show(value: Value, depth: number): string {
    if (value === null) return 'None'
    switch (typeof value) {
      case 'boolean':
        return value ? 'True' : 'False'
      case 'number':
        return numberText(value)
      case 'string':
        return this.#counted(quoted(this.run, value))
      case 'undefined':
        return 'Undefined'
    }
    if (value instanceof Float) return floatText(value.value)
    if (value instanceof LoopState) return `<LoopContext ${value.index0 + 1}/${value.items.length}>`
    if (depth >= VALUE_DEPTH_MAX)
      throw new RenderFault(`a value is nested deeper than ${VALUE_DEPTH_MAX} levels`)
    if (isList(value)) return this.#list(value, depth)
    if (value instanceof Namespace) return `<Namespace ${this.show(value.fields, depth + 1)}>`
    return this.#dict(this.run.entries(value), depth)
  }

  #list(list: readonly Value[], depth: number): string {
    this.run.charge(1 + list.length)
    this.#counted('', list.length * 2)
    const inner = list.map(item => this.show(item, depth + 1)).join(', ')
    if (!(list instanceof Tuple)) return `[${inner}]`
    return list.length === 1 ? `(${inner},)` : `(${inner})`
  }

  #dict(entries: [Value, Value][], depth: number): string {
    this.run.charge(1 + entries.length)
    const shown = entries.map(([key, item]) => `${this.show(key, depth + 1)}: ${this.show(item, depth + 1)}`)
    this.#counted('', entries.length * 4)
    return `{${shown.join(', ')}}`
  }

  /** What a list of lists of the same list would print is refused before it is built. */
  #counted(shown: string, length = shown.length): string {
    this.#length += length
    this.run.chargeText(length)
    this.run.fits(this.#length)
    return shown
  }
}

/** JavaScript's and Python's shortest digits are the same; Python writes exponents from 1e16 on and below 1e-4. */
export function floatText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf'
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0'
  const size = Math.abs(value)
  if (size < 1e16 && size >= 1e-4) return Number.isInteger(value) ? `${value}.0` : `${value}`
  const [digits = '', exponent = ''] = value.toExponential().split('e')
  const sign = exponent.startsWith('-') ? '-' : '+'
  return `${digits}e${sign}${exponent.slice(1).padStart(2, '0')}`
}

export function numberText(value: number): string {
  if (!Number.isInteger(value)) return floatText(value)
  // From 1e21 on JavaScript writes exponents, Python's int never does.
  return Math.abs(value) < 1e21 ? `${value === 0 ? 0 : value}` : BigInt(value).toString()
}

const UNPRINTABLE = /[\\\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu
const NAMED: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Python prefers single quotes and takes double ones when that saves a backslash. */
function quoted(run: Run, text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  let inner = replaceEach(run, text, UNPRINTABLE, character => NAMED[character] ?? escaped(character))
  if (quote === "'") inner = inner.replaceAll("'", "\\'")
  return quote + inner + quote
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0
  const hex = code.toString(16)
  if (code <= 0xff) return `\\x${hex.padStart(2, '0')}`
  return code <= 0xffff ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`
}
