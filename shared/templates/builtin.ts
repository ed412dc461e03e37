import { RenderFault } from './fault.js'
import type { Run } from './run.js'
import type { Value } from './values.js'

export type Named = ReadonlyMap<string, Value>
export const NO_NAMES: Named = new Map()

/**
 * A filter, test, method or function of ours. `target` is what stands before `|`, `is` or `.`. Every one charges by the
 * size of what it reads and makes, before it does.
 */
export type Builtin =
  | {
      kind: 'fixed'
      /** In order; those from `required` on may be left out and arrive as undefined. */
      params: readonly string[]
      required: number
      call: (run: Run, target: Value, ...args: Value[]) => Value
    }
  | { kind: 'open'; call: (run: Run, target: Value, args: readonly Value[], named: Named) => Value }

/** @param params names separated by spaces, optional ones with `?`: `'old new count?'` */
export function fixed(params: string, call: (run: Run, target: Value, ...args: Value[]) => Value): Builtin {
  const words = params.split(' ').filter(word => word !== '')
  return {
    kind: 'fixed',
    params: words.map(word => word.replace('?', '')),
    required: words.filter(word => !word.endsWith('?')).length,
    call,
  }
}

/** Takes any number of arguments, by position and by name. */
export const open = (
  call: (run: Run, target: Value, args: readonly Value[], named: Named) => Value,
): Builtin => ({ kind: 'open', call })

/** Arguments in the order of the parameters; a text that says what is wrong when they do not fit. */
export function arrange<T>(
  builtin: Builtin & { kind: 'fixed' },
  positional: readonly T[],
  named: Iterable<[string, T]>,
): (T | undefined)[] | string {
  const { params, required } = builtin
  if (positional.length > params.length) {
    return params.length === 0 ? 'takes no arguments' : `takes at most ${params.length} argument(s)`
  }
  const args: (T | undefined)[] = [...positional]
  for (const [name, value] of named) {
    const at = params.indexOf(name)
    if (at < 0) return `has no argument '${name}'`
    if (at < positional.length) return `gets its argument '${name}' twice`
    args[at] = value
  }
  for (let at = 0; at < required; at++) if (!(at in args)) return `needs its argument '${params[at]}'`
  return args
}

/** Calls a built-in whose name was computed: `map('upper')`, `select('even')`. */
export function callBuiltin(
  run: Run,
  what: string,
  builtin: Builtin,
  target: Value,
  args: readonly Value[],
  named: Named,
): Value {
  run.step()
  if (builtin.kind === 'open') return builtin.call(run, target, args, named)
  const arranged = arrange(builtin, args, named)
  if (typeof arranged === 'string') throw new RenderFault(`${what} ${arranged}`)
  return builtin.call(run, target, ...arranged)
}
