import { RenderFault } from './fault.js'
import { indexOf } from './find.js'
import { VALUE_DEPTH_MAX } from './limits.js'
import type { Run } from './run.js'
import {
  dictGet,
  dictHas,
  Float,
  isDict,
  isList,
  isNumber,
  Tuple,
  toNumber,
  typeName,
  type Value,
} from './values.js'

/** Python's `==`: by value through lists and dicts; `1 == 1.0 == True`. */
export function equals(run: Run, left: Value, right: Value, depth = 0): boolean {
  run.step()
  if (typeof left === 'string' && typeof right === 'string') {
    if (left.length !== right.length) return false
    run.chargeText(left.length)
    return left === right
  }
  if (left === right) return true
  if (isNumber(left) && isNumber(right)) return toNumber(left) === toNumber(right)
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  if (left instanceof Float || right instanceof Float) return false
  if (depth >= VALUE_DEPTH_MAX)
    throw new RenderFault(`a value is nested deeper than ${VALUE_DEPTH_MAX} levels`)
  if (isList(left) && isList(right)) {
    if (left.length !== right.length || left instanceof Tuple !== right instanceof Tuple) return false
    return left.every((item, at) => equals(run, item, right[at], depth + 1))
  }
  if (!isDict(left) || !isDict(right) || run.size(left) !== run.size(right)) return false
  return run
    .entries(left)
    .every(([key, item]) => dictHas(right, key) && equals(run, item, dictGet(right, key), depth + 1))
}

/**
 * Negative, 0 or positive, as Python orders: numbers with numbers, text with text (by code point), lists with lists.
 * @throws RenderFault for any other pair, as Python's TypeError
 */
export function order(run: Run, left: Value, right: Value, depth = 0): number {
  run.step()
  if (typeof left === 'number' && typeof right === 'number') return left - right
  if (isNumber(left) && isNumber(right)) return toNumber(left) - toNumber(right)
  if (typeof left === 'string' && typeof right === 'string') return orderText(run, left, right)
  if (isList(left) && isList(right) && left instanceof Tuple === right instanceof Tuple) {
    if (depth >= VALUE_DEPTH_MAX)
      throw new RenderFault(`a value is nested deeper than ${VALUE_DEPTH_MAX} levels`)
    const shared = Math.min(left.length, right.length)
    for (let at = 0; at < shared; at++) {
      if (!equals(run, left[at], right[at], depth + 1)) return order(run, left[at], right[at], depth + 1)
    }
    return left.length - right.length
  }
  throw new RenderFault(`${typeName(left)} and ${typeName(right)} cannot be ordered`)
}

/** By code point: UTF-16 units would order emoji (surrogates) below U+E000 to U+FFFF. */
function orderText(run: Run, left: string, right: string): number {
  if (left === right) return 0
  const shared = Math.min(left.length, right.length)
  let at = 0
  while (at < shared && left.charCodeAt(at) === right.charCodeAt(at)) at++
  run.charge(at >> 4)
  if (at === shared) return left.length - right.length
  return rank(left.charCodeAt(at)) - rank(right.charCodeAt(at))
}

const rank = (unit: number) => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit)

/** Python's `item in holder`. */
export function contains(run: Run, holder: Value, item: Value): boolean {
  if (typeof holder === 'string') {
    if (typeof item !== 'string') {
      throw new RenderFault(`only text can be looked for in text, not ${typeName(item)}`)
    }
    return indexOf(run, holder, item) >= 0
  }
  if (isList(holder)) {
    run.charge(1 + (holder.length >> 3))
    return holder.some(member => equals(run, member, item))
  }
  if (holder === undefined) return false
  if (isDict(holder)) return dictHas(holder, item)
  throw new RenderFault(`nothing can be in ${typeName(holder)}`)
}
