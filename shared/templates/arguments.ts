import { RenderFault } from './fault.js'
import { text } from './print.js'
import type { Run } from './run.js'
import { Float, isNumber, toNumber, typeName, type Value } from './values.js'

/** A whole number that a built-in was given. `fallback` stands for an argument that was left out. */
export function wholeNumber(value: Value, fallback: number): number {
  if (value === undefined) return fallback
  if (!isNumber(value) || value instanceof Float || !Number.isInteger(toNumber(value))) {
    throw new RenderFault(`a whole number is needed, not ${typeName(value)}`)
  }
  return toNumber(value)
}

export const textOr = (run: Run, value: Value, fallback: string): string =>
  value === undefined ? fallback : text(run, value)

export function needText(value: Value, what: string): string {
  if (typeof value === 'string') return value
  throw new RenderFault(`${what} needs text, not ${typeName(value)}`)
}

export function needNumber(value: Value, what: string): number {
  if (isNumber(value)) return toNumber(value)
  throw new RenderFault(`${what} needs a number, not ${typeName(value)}`)
}
