import { equals } from './compare.js'
import { RenderFault } from './fault.js'
import type { Run } from './run.js'
import {
  characters,
  dictGet,
  Float,
  Group,
  isDict,
  isList,
  isNumber,
  joined,
  LoopState,
  Namespace,
  Tuple,
  toNumber,
  typeName,
  type Value,
} from './values.js'

/**
 * `target.name` with a target that is not undefined: an own key of a dict, a field of a namespace, an attribute of
 * `loop`. Everything else, JavaScript's own properties above all, is undefined.
 */
export function attribute(run: Run, target: Value, name: string): Value {
  if (typeof target !== 'object' || target === null) return undefined
  if (target instanceof LoopState) return loopAttribute(run, target, name)
  if (target instanceof Namespace) return target.fields.get(name)
  if (Array.isArray(target)) {
    if (!(target instanceof Group)) return undefined
    return name === 'grouper' ? target[0] : name === 'list' ? target[1] : undefined
  }
  return isDict(target) ? dictGet(target, name) : undefined
}

export function loopAttribute(run: Run, loop: LoopState, name: string): Value {
  const { index0, items } = loop
  switch (name) {
    case 'index':
      return index0 + 1
    case 'index0':
      return index0
    case 'first':
      return index0 === 0
    case 'last':
      return index0 === items.length - 1
    case 'length':
      return items.length
    case 'revindex':
      return items.length - index0
    case 'revindex0':
      return items.length - index0 - 1
    case 'previtem':
      return index0 === 0 ? undefined : items[index0 - 1]
    case 'nextitem':
      return items[index0 + 1]
    // Of recursive loops, which templates here do not have.
    case 'depth':
      return 1
    case 'depth0':
      return 0
  }
  run.step()
  return undefined
}

/** `target[key]` with a target that is not undefined. */
export function item(run: Run, target: Value, key: Value): Value {
  if (isNumber(key) && !(key instanceof Float)) {
    const at = toNumber(key)
    if (isList(target)) return target[at < 0 ? target.length + at : at]
    if (typeof target === 'string') return characterAt(run, target, at)
  }
  if (isDict(target)) return dictGet(target, key)
  return typeof key === 'string' ? attribute(run, target, key) : undefined
}

function characterAt(run: Run, target: string, at: number): Value {
  run.chargeCharacters(target.length >> 3)
  const all = characters(target)
  return all[at < 0 ? all.length + at : at]
}

/** `target[start:stop:step]` of a list or text, with Python's bounds. */
export function slice(run: Run, target: Value, start: Value, stop: Value, step: Value): Value {
  if (target === undefined) throw new RenderFault('an undefined value cannot be sliced')
  if (typeof target !== 'string' && !isList(target)) {
    throw new RenderFault(`${typeName(target)} cannot be sliced`)
  }
  if (typeof target === 'string') run.chargeCharacters(target.length >> 3)
  else run.items(target.length)
  const source = typeof target === 'string' ? characters(target) : target
  const by = bound(step) ?? 1
  if (by === 0) throw new RenderFault('the step of a slice cannot be 0')
  const [from, to] = edges(source.length, bound(start), bound(stop), by)
  if (typeof source === 'string' && by === 1) return source.slice(from, Math.max(from, to))
  const taken: Value[] = []
  for (let at = from; by > 0 ? at < to : at > to; at += by) taken.push(source[at])
  if (typeof target === 'string') {
    run.charge(taken.length >> 1)
    return joined(taken as string[])
  }
  return target instanceof Tuple ? Tuple.copy(taken) : taken
}

function bound(value: Value): number | null {
  if (value === null) return null
  if (typeof value === 'number' && Number.isInteger(value)) return value
  if (typeof value === 'boolean') return value ? 1 : 0
  throw new RenderFault(`the bounds of a slice are whole numbers, not ${typeName(value)}`)
}

function edges(length: number, start: number | null, stop: number | null, by: number): [number, number] {
  const lowest = by > 0 ? 0 : -1
  const highest = by > 0 ? length : length - 1
  const within = (at: number) => Math.min(highest, Math.max(lowest, at < 0 ? at + length : at))
  return [
    start === null ? (by > 0 ? lowest : highest) : within(start),
    stop === null ? (by > 0 ? highest : lowest) : within(stop),
  ]
}

/** `loop.cycle('odd', 'even')`. */
export function cycle(loop: LoopState, values: readonly Value[]): Value {
  if (values.length === 0) throw new RenderFault('loop.cycle needs at least one value')
  return values[loop.index0 % values.length]
}

/** `loop.changed(value)`: whether it differs from the one of the last call. */
export function changed(run: Run, loop: LoopState, values: readonly Value[]): boolean {
  if (loop.changed !== null && equals(run, loop.changed, values)) return false
  loop.changed = [...values]
  return true
}
