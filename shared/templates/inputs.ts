import { RenderFault } from './fault.js'
import { VARIABLES_MAX_DEPTH, VARIABLES_MAX_LENGTH, VARIABLES_MAX_VALUES } from './limits.js'
import type { Value } from './values.js'

const NOTHING: readonly Value[] = []

/**
 * The variables that a prompt reads, in the order of its inputs, checked to be plain JSON of bounded size: a template
 * walks them without asking again. Others are not looked at.
 * @returns undefined where the caller supplies nothing
 * @throws RenderFault
 */
export function takeInputs(
  names: readonly string[],
  variables: Readonly<Record<string, unknown>>,
): readonly Value[] {
  if (names.length === 0) return NOTHING
  const check = new Check()
  const inputs: Value[] = []
  // What JSON.parse makes inherits these names and no other: only they need to be asked for twice.
  const plain = isPlain(variables)
  for (let at = 0; at < names.length; at++) {
    const name = names[at] as string
    let value = variables[name]
    if (value !== undefined && (!plain || name in Object.prototype) && !Object.hasOwn(variables, name)) {
      value = undefined
    }
    if (typeof value === 'string') check.text(value.length)
    else if (value !== undefined) check.value(value, name, 1)
    inputs.push(value as Value)
  }
  return inputs
}

class Check {
  #length = 0
  #values = 0

  text(length: number): void {
    this.#length += length
    if (this.#length > VARIABLES_MAX_LENGTH) {
      throw new RenderFault(`the variables are larger than ${VARIABLES_MAX_LENGTH} characters`)
    }
  }

  value(value: unknown, name: string, depth: number): void {
    if (++this.#values > VARIABLES_MAX_VALUES) {
      throw new RenderFault(`the variables hold more than ${VARIABLES_MAX_VALUES} values`)
    }
    if (typeof value === 'string') {
      this.text(value.length)
      return
    }
    if (value === null || typeof value === 'number' || typeof value === 'boolean') return
    if (depth > VARIABLES_MAX_DEPTH) {
      throw new RenderFault(`the variable '${name}' is nested deeper than ${VARIABLES_MAX_DEPTH} levels`)
    }
    if (Array.isArray(value)) {
      for (const item of value) this.value(item, name, depth + 1)
      return
    }
    if (!isPlain(value)) throw new RenderFault(`the variable '${name}' is not JSON`)
    for (const key of Object.keys(value)) {
      this.text(key.length)
      this.value(value[key], name, depth + 1)
    }
  }
}

/** What JSON.parse makes, or an object without a prototype. */
function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}
