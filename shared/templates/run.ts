import { RenderFault } from './fault.js'
import {
  ITEMS_MAX,
  OUTPUT_MAX_BYTES,
  STEPS_MAX,
  STEPS_PER_LOOK,
  TEXT_MAX_LENGTH,
  TIME_MAX_MS,
} from './limits.js'
import {
  type Dict,
  Float,
  isDict,
  isList,
  type JsonObject,
  Namespace,
  typeName,
  type Value,
} from './values.js'

/** Stands in a slot whose `set` was not reached: the name means what it means outside. */
export const UNSET = Symbol('unset')

/** One render: what it has spent, what it has written, what its names hold. Closures of the compiled tree share it. */
export class Run {
  out = ''
  /** Of the message being rendered, from 1: what a fault names. */
  line = 1
  slots: (Value | typeof UNSET)[] = []
  /** Written by the messages before this one. */
  written = 0
  #sizes: Map<JsonObject, number> | null = null
  #stepsLeft = STEPS_MAX
  #untilLook = STEPS_PER_LOOK
  readonly #startedAt = performance.now()
  /** Taken at the first look: asking costs 1 µs, more than rendering a small prompt. */
  #cpuBefore: NodeJS.CpuUsage | null = null

  /** @param inputs the caller's variables, in the order of the prompt's `inputs` */
  constructor(readonly inputs: readonly Value[]) {}

  step(): void {
    if (--this.#untilLook <= 0) this.#look()
  }

  /** Before work that costs more than one node's evaluation, so that it is refused instead of done. */
  charge(steps: number): void {
    this.#untilLook -= steps
    if (this.#untilLook <= 0) this.#look()
  }

  #look(): void {
    this.#stepsLeft -= STEPS_PER_LOOK - this.#untilLook
    this.#untilLook = STEPS_PER_LOOK
    if (this.#stepsLeft <= 0) throw new RenderFault(`the template takes more than ${STEPS_MAX} steps`)
    this.#cpuBefore ??= process.cpuUsage()
    if (performance.now() - this.#startedAt > TIME_MAX_MS && this.#cpuMs() > TIME_MAX_MS) {
      throw new RenderFault(`the template takes longer than ${TIME_MAX_MS} ms`)
    }
  }

  /** Of this process since the first look. A render that only waited for a busy machine has done nothing wrong. */
  #cpuMs(): number {
    const { user, system } = process.cpuUsage(this.#cpuBefore ?? undefined)
    return (user + system) / 1_000
  }

  emit(text: string): void {
    this.out += text
    // In UTF-16 units, which are at most as many as the bytes; the bytes are counted once, at the end.
    if (this.written + this.out.length > OUTPUT_MAX_BYTES) throw tooMuchOutput()
  }

  /** Work of the cheap kind (copying, searching) on text: 64 characters a step. */
  chargeText(length: number): void {
    if (length > 64) this.charge(length >> 6)
  }

  /** Work of the dear kind on text (a regular expression, a loop over characters): 8 characters a step. */
  chargeCharacters(length: number): void {
    this.charge(1 + (length >> 3))
  }

  /** Of text that a template makes; to be asked before it is made. */
  text(length: number): void {
    this.fits(length)
    this.chargeText(length)
  }

  /** The same without a charge: for text that grows piece by piece, each charged when it was made. */
  fits(length: number): void {
    if (length > TEXT_MAX_LENGTH) throw new RenderFault(`a text is longer than ${TEXT_MAX_LENGTH} characters`)
  }

  /** Of a list that a template makes or walks. */
  items(count: number): void {
    if (count > ITEMS_MAX) throw new RenderFault(`a list or range is longer than ${ITEMS_MAX} items`)
    this.charge(1 + (count >> 3))
  }

  /** Python's `list(value)`: characters of a text, keys of a dict, nothing of an undefined value. Not to be changed. */
  list(value: Value): readonly Value[] {
    if (isList(value)) {
      this.items(value.length)
      return value
    }
    if (value === undefined) return []
    if (typeof value === 'string') {
      // A surrogate pair is one character, so this may refuse text of half the limit: only of emoji alone.
      this.items(value.length)
      this.chargeCharacters(value.length)
      return [...value]
    }
    if (isDict(value)) return this.keys(value)
    throw new RenderFault(`${typeName(value)} cannot be walked through`)
  }

  keys(dict: Dict | JsonObject): Value[] {
    this.#listed(dict)
    return dict instanceof Map ? [...dict.keys()] : Object.keys(dict)
  }

  /** `[key, value]` of a dict's entries. */
  entries(dict: Dict | JsonObject): [Value, Value][] {
    this.#listed(dict)
    return dict instanceof Map ? [...dict.entries()] : Object.entries(dict)
  }

  /**
   * JavaScript cannot tell an object's size, or that it is not empty, without listing it: large ones are listed once a
   * run (`if` over 20,000 keys in a loop took 1.4 s).
   */
  size(dict: Dict | JsonObject): number {
    if (dict instanceof Map) return dict.size
    const known = this.#sizes?.get(dict)
    if (known !== undefined) return known
    const size = Object.keys(dict).length
    if (size > 32) {
      this.#sizes ??= new Map()
      this.#sizes.set(dict, size)
      this.charge(size >> 1)
    }
    return size
  }

  /** A dict is about to be listed. */
  #listed(dict: Dict | JsonObject): void {
    const size = this.size(dict)
    if (size > ITEMS_MAX) throw new RenderFault(`a dict has more than ${ITEMS_MAX} keys`)
    this.charge(1 + (size >> 1))
  }

  /** Python's truth: nothing, zero and everything empty is false. */
  truthy(value: Value): boolean {
    switch (typeof value) {
      case 'boolean':
        return value
      case 'string':
        return value !== ''
      case 'number':
        return value !== 0
      case 'undefined':
        return false
    }
    if (value === null) return false
    if (isList(value)) return value.length > 0
    if (value instanceof Float) return value.value !== 0
    return isDict(value) ? this.size(value) > 0 : true
  }

  namespace(value: Value, name: string): Namespace {
    if (value instanceof Namespace) return value
    throw new RenderFault(`'${name}' is not a namespace: only a namespace's fields can be set`)
  }
}

export const tooMuchOutput = () =>
  new RenderFault(`the output is larger than ${OUTPUT_MAX_BYTES / 1024 / 1024} MB`)
