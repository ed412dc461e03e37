import { RenderFault } from './fault.js'

/**
 * What a template computes with: the caller's JSON as it came (never copied, never changed, own properties only) and
 * what templates make themselves. `undefined` is Jinja's undefined, `null` is None. Never a function, never an object
 * with behaviour that a template could reach.
 */
export type Value =
  | undefined
  | null
  | boolean
  | number
  | string
  | Float
  | readonly Value[]
  | Dict
  | JsonObject
  | LoopState
  | Namespace

export type DictKey = string | number | boolean | null
/** A dict that a template wrote: it keeps the order and the type of its keys, which JavaScript's objects do not. */
export type Dict = Map<DictKey, Value>
export interface JsonObject {
  readonly [key: string]: Value
}

/**
 * A number that Python would call a float although it has no fraction: `4 / 2` prints `2.0`. A number with a fraction is
 * a plain JavaScript number; so is every number of the caller's, since JSON's `1.0` arrives as 1.
 */
export class Float {
  constructor(readonly value: number) {}
}

/** Prints as `(1, 2)`; in everything else a list. */
export class Tuple extends Array<Value> {
  static of2(first: Value, second: Value): Tuple {
    const pair = new Tuple(2)
    pair[0] = first
    pair[1] = second
    return pair
  }

  static copy(items: readonly Value[]): Tuple {
    const tuple = new Tuple(items.length)
    for (let at = 0; at < items.length; at++) tuple[at] = items[at]
    return tuple
  }

  /** `map`, `filter` and `slice` of a tuple make lists. */
  static override get [Symbol.species](): ArrayConstructor {
    return Array
  }
}

/** An item of `groupby`: a pair that also answers to `.grouper` and `.list`. */
export class Group extends Tuple {}

/** The `loop` of a `for`: attributes are read by `loopAttribute`. */
export class LoopState {
  index0 = 0
  /** What `loop.changed` saw last; null before the first call. */
  changed: readonly Value[] | null = null

  constructor(readonly items: readonly Value[]) {}
}

/** `namespace()`: the one thing that a template may change from inside a loop. */
export class Namespace {
  readonly fields: Dict = new Map()
}

export const isList = (value: Value): value is readonly Value[] => Array.isArray(value)

function isObject(value: Value): value is JsonObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Map) &&
    !(value instanceof Float) &&
    !(value instanceof LoopState) &&
    !(value instanceof Namespace)
  )
}

export const isDict = (value: Value): value is Dict | JsonObject => value instanceof Map || isObject(value)

/** int, float or bool, as Python counts numbers. */
export const isNumber = (value: Value): value is number | boolean | Float =>
  typeof value === 'number' || typeof value === 'boolean' || value instanceof Float

export const isFloat = (value: Value): boolean =>
  value instanceof Float || (typeof value === 'number' && !Number.isInteger(value))

export const toNumber = (value: number | boolean | Float): number =>
  typeof value === 'number' ? value : value instanceof Float ? value.value : value ? 1 : 0

/** A result that Python would make a float. */
export const float = (value: number): number | Float => (Number.isInteger(value) ? new Float(value) : value)

/** Python's name of a value's type, for messages. */
export function typeName(value: Value): string {
  switch (typeof value) {
    case 'boolean':
      return 'bool'
    case 'string':
      return 'str'
    case 'number':
      return Number.isInteger(value) ? 'int' : 'float'
    case 'undefined':
      return 'undefined'
  }
  if (value === null) return 'None'
  if (value instanceof Float) return 'float'
  if (value instanceof Tuple) return 'tuple'
  if (Array.isArray(value)) return 'list'
  if (value instanceof LoopState) return 'loop'
  return value instanceof Namespace ? 'namespace' : 'dict'
}

export function dictKey(value: Value): DictKey {
  if (
    value === null ||
    typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'boolean'
  ) {
    return value
  }
  if (value instanceof Float) return value.value
  throw new RenderFault(`${typeName(value)} cannot be the key of a dict`)
}

/** undefined when the dict has no such key. A JSON object's keys are text: `d[1]` finds nothing in it. */
export function dictGet(dict: Dict | JsonObject, key: Value): Value {
  if (dict instanceof Map) return isHashable(key) ? dict.get(dictKey(key)) : undefined
  return typeof key === 'string' && Object.hasOwn(dict, key) ? dict[key] : undefined
}

export function dictHas(dict: Dict | JsonObject, key: Value): boolean {
  if (dict instanceof Map) return isHashable(key) && dict.has(dictKey(key))
  return typeof key === 'string' && Object.hasOwn(dict, key)
}

const isHashable = (key: Value) => key === null || typeof key !== 'object' || key instanceof Float

/** Text has surrogate pairs: Python counts each as one character. */
const SURROGATE = /[\ud800-\udfff]/

/** The text by characters as Python counts them: itself when no pair is in it. */
export const characters = (text: string): string | string[] => (SURROGATE.test(text) ? [...text] : text)

export const joined = (characters: string | string[]): string =>
  typeof characters === 'string' ? characters : characters.join('')
