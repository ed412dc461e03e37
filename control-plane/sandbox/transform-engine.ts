import variant from '@jitl/quickjs-wasmfile-release-sync'
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant,
  type QuickJSWASMModule,
} from 'quickjs-emscripten-core'
import type { Outcome } from './messages.js'
import type { ThreadClock } from './thread-clock.js'

/** Node has it; the types of plain ECMAScript do not. */
declare const WebAssembly: {
  Memory: new (size: { initial: number; maximum: number }) => { buffer: ArrayBuffer }
}
/** The package's types describe its CommonJS form, in which the variant is one level deeper. */
const releaseSync = variant as unknown as QuickJSSyncVariant

/**
 * QuickJS in WebAssembly, inside a worker thread. Its own limits are the first line only: the interrupt handler runs
 * between bytecodes, so one built-in over a huge array never meets it, and its memory limit does not hold against every
 * allocation. What holds is the cap of the WebAssembly memory, and the pool's wall clock (reliability notes, 5.2).
 */

const PAGE = 64 * 1024
/** The heap grows from 16 MB to at most 64 MB. */
const INITIAL_PAGES = (16 * 1024 * 1024) / PAGE
const MAXIMUM_PAGES = (64 * 1024 * 1024) / PAGE
/** A linear memory never shrinks; one that has grown past this is given up with its worker. */
const KEPT_BYTES = 40 * 1024 * 1024
const HEAP_BYTES = 32 * 1024 * 1024
const STACK_BYTES = 128 * 1024
/** UTF-16 units of JSON text that a transform may return. */
const OUTPUT_MAX = 1024 * 1024
const MESSAGE_MAX = 300

export class TransformEngine {
  readonly #module: QuickJSWASMModule
  #isBroken = false

  private constructor(module: QuickJSWASMModule) {
    this.#module = module
  }

  static async load(): Promise<TransformEngine> {
    const wasmMemory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: MAXIMUM_PAGES })
    return new TransformEngine(await newQuickJSWASMModuleFromVariant(newVariant(releaseSync, { wasmMemory })))
  }

  /** Whether it must be given up: it broke, or its memory has grown for good. */
  get isSpent(): boolean {
    return this.#isBroken || this.#module.getWasmMemory().buffer.byteLength > KEPT_BYTES
  }

  /**
   * Defines the transform and calls it with `input`, JSON text; null only defines and looks at it.
   *
   * A runtime of its own for each call: nothing that one author's code does to its globals is there for the next.
   */
  run(source: string, input: string | null, limit: ThreadClock): Outcome {
    const clock = new Clock(limit)
    try {
      const runtime = this.#module.newRuntime()
      runtime.setMemoryLimit(HEAP_BYTES)
      runtime.setMaxStackSize(STACK_BYTES)
      runtime.setInterruptHandler(() => clock.isOver())
      const context = runtime.newContext()
      const outcome = evaluate(context, source, input, clock)
      context.dispose()
      runtime.dispose()
      return outcome
    } catch {
      // The engine itself failed: an overflown host stack, memory at its cap. Its error may hold anything; say little.
      this.#isBroken = true
      return {
        ok: false,
        message: clock.isOver() ? clock.text : 'It needs more memory or a deeper stack than it may have.',
      }
    }
  }
}

/** Looked at between bytecodes, thousands of times a second: the limit is asked when it may be over. */
class Clock {
  readonly #limit: ThreadClock
  readonly text: string
  #askAgainMs: number

  constructor(limit: ThreadClock) {
    this.#limit = limit
    this.text = `It ran longer than ${limit.limitMs} ms.`
    this.#askAgainMs = performance.now() + limit.leftMs()
  }

  isOver(): boolean {
    if (performance.now() < this.#askAgainMs) return false
    const leftMs = this.#limit.leftMs()
    this.#askAgainMs = performance.now() + leftMs
    return leftMs === 0
  }
}

/**
 * Evaluated before the author's code, so that what it holds cannot be replaced by it. `inspect` says why the function
 * cannot be a transform, or nothing.
 */
const PRELUDE = `(() => {
  'use strict'
  const { parse, stringify } = JSON
  const { toString } = Object.prototype
  const call = Function.prototype.call.bind(Function.prototype.call)
  const Fault = Error
  const inspect = transform => {
    if (typeof transform !== 'function') return 'It must define a function named transform.'
    const kind = call(toString, transform)
    return kind === '[object Function]' ? '' : 'transform must be a plain function: not async, not a generator.'
  }
  const run = (transform, text) => {
    const result = transform(parse(text))
    if (result !== null && typeof result === 'object' && typeof result.then === 'function')
      throw new Fault('transform must return a value, not a promise.')
    const json = stringify(result === undefined ? null : result)
    if (typeof json !== 'string') throw new Fault('transform must return a JSON value.')
    if (json.length > ${OUTPUT_MAX}) throw new Fault('transform returned more than 1 MB.')
    return json
  }
  return (transform, text) => {
    const fault = inspect(transform)
    if (fault !== '') throw new Fault(fault)
    return text === null ? 'null' : run(transform, text)
  }
})()`

/** `const transform = …` is no property of the global object, so it is read by its name. */
const LOOK_UP = `typeof transform === 'function' ? transform : undefined`

function evaluate(context: QuickJSContext, source: string, input: string | null, clock: Clock): Outcome {
  const invoke = context.unwrapResult(context.evalCode(PRELUDE, 'agh.js', { type: 'global' }))
  const text = input === null ? context.null : context.newString(input)
  const held: QuickJSHandle[] = [invoke, text]
  const attempt = (result: ReturnType<QuickJSContext['evalCode']>): QuickJSHandle => {
    const handle = result.error ?? result.value
    held.push(handle)
    if (result.error !== undefined) throw new Fault(faultOf(context, handle, clock))
    return handle
  }
  try {
    attempt(context.evalCode(source, 'transform.js', { type: 'global' }))
    const transform = attempt(context.evalCode(LOOK_UP, 'agh.js', { type: 'global' }))
    const answer = attempt(context.callFunction(invoke, context.undefined, transform, text))
    return { ok: true, json: context.getString(answer) }
  } catch (error) {
    if (error instanceof Fault) return { ok: false, message: error.message }
    throw error
  } finally {
    for (const handle of held) if (handle.alive) handle.dispose()
  }
}

class Fault extends Error {}

/** Only the message of what was thrown leaves; an accessor in its place runs on the same clock. */
function faultOf(context: QuickJSContext, thrown: QuickJSHandle, clock: Clock): string {
  if (clock.isOver()) return clock.text
  if (context.typeof(thrown) === 'string') return context.getString(thrown).slice(0, MESSAGE_MAX)
  if (context.typeof(thrown) !== 'object') return 'It threw a value that is not an error.'
  const name = textOf(context, thrown, 'name')
  const message = textOf(context, thrown, 'message')
  if (clock.isOver()) return clock.text
  if (name === '' && message === '') return 'It threw a value that is not an error.'
  if (name === 'SyntaxError')
    return `${name}: ${message}${lineOf(textOf(context, thrown, 'stack'))}`.slice(0, MESSAGE_MAX)
  return (name === '' || name === 'Error' ? message : `${name}: ${message}`).slice(0, MESSAGE_MAX)
}

/** Where in the author's source it was, as far as the stack says. */
function lineOf(stack: string): string {
  const line = /transform\.js:(\d+)/.exec(stack)?.[1]
  return line === undefined ? '' : ` (line ${line})`
}

function textOf(context: QuickJSContext, thrown: QuickJSHandle, property: string): string {
  try {
    const value = context.getProp(thrown, property)
    const text = context.typeof(value) === 'string' ? context.getString(value) : ''
    value.dispose()
    return text
  } catch {
    return ''
  }
}
