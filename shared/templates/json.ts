import { RenderFault } from './fault.js'
import { VALUE_DEPTH_MAX } from './limits.js'
import { floatText, numberText } from './print.js'
import type { Run } from './run.js'
import { replaceEach } from './text-functions.js'
import { Float, isDict, isList, typeName, type Value } from './values.js'

/**
 * The filter `tojson`, as Jinja has it: keys sorted, `, ` and `: ` as separators, ASCII only, and `<`, `>`, `&`, `'` as
 * `\u` escapes.
 * @param indent spaces per level; null for one line
 */
export function toJson(run: Run, value: Value, indent: number | null): string {
  return new JsonWriter(run, indent).write(value, 0)
}

class JsonWriter {
  #length = 0

  constructor(
    readonly run: Run,
    readonly indent: number | null,
  ) {}

  write(value: Value, depth: number): string {
    if (value === null) return 'null'
    if (typeof value === 'boolean') return String(value)
    if (typeof value === 'number') return jsonNumber(numberText(value))
    if (typeof value === 'string') return this.#text(value)
    if (value instanceof Float) return jsonNumber(floatText(value.value))
    if (depth >= VALUE_DEPTH_MAX)
      throw new RenderFault(`a value is nested deeper than ${VALUE_DEPTH_MAX} levels`)
    if (isList(value)) {
      this.run.charge(1 + value.length)
      return this.#wrapped(
        '[',
        ']',
        value.map(item => this.write(item, depth + 1)),
        depth,
      )
    }
    if (!isDict(value)) throw new RenderFault(`${typeName(value)} cannot become JSON`)
    const entries = this.run.entries(value).map(([key, item]): [string, Value] => [jsonKey(key), item])
    this.run.charge(1 + entries.length * 4)
    entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    const members = entries.map(([key, item]) => `${this.#text(key)}: ${this.write(item, depth + 1)}`)
    return this.#wrapped('{', '}', members, depth)
  }

  #wrapped(start: string, end: string, parts: string[], depth: number): string {
    if (parts.length === 0) return start + end
    if (this.indent === null) return this.#counted(`${start}${parts.join(', ')}${end}`, parts.length * 2)
    const inner = `\n${' '.repeat(this.indent * (depth + 1))}`
    this.#counted('', parts.length * inner.length)
    return `${start}${inner}${parts.join(`,${inner}`)}\n${' '.repeat(this.indent * depth)}${end}`
  }

  #text(value: string): string {
    const shown = `"${replaceEach(this.run, value, ESCAPED, unit => ESCAPES[unit] ?? unicode(unit))}"`
    return this.#counted(shown, shown.length)
  }

  #counted(shown: string, length: number): string {
    this.#length += length
    this.run.chargeText(length)
    this.run.fits(this.#length)
    return shown
  }
}

// By UTF-16 unit, as JSON escapes are.
const ESCAPED = /[^ !#-%(-;=?-[\]-~]/g
const ESCAPES: Record<string, string> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\b': '\\b',
  '\f': '\\f',
}

const unicode = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

const jsonNumber = (shown: string) =>
  shown === 'inf' ? 'Infinity' : shown === '-inf' ? '-Infinity' : shown === 'nan' ? 'NaN' : shown

function jsonKey(key: Value): string {
  if (typeof key === 'string') return key
  if (key === null || typeof key === 'boolean') return String(key)
  return numberText(key as number)
}
