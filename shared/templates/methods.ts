import { type Builtin, fixed, open } from './builtin.js'
import { equals } from './compare.js'
import { RenderFault } from './fault.js'
import { pairs } from './filters-list.js'
import { changed, cycle } from './lookup.js'
import { textMethods } from './methods-text.js'
import { type Dict, dictGet, isDict, isList, type JsonObject, LoopState, type Value } from './values.js'

const dictMethods: Record<string, Builtin> = {
  items: fixed('', (run, it) => pairs(run, it, 'items')),
  keys: fixed('', (run, it) => run.keys(it as Dict | JsonObject)),
  values: fixed('', (run, it) => run.entries(it as Dict | JsonObject).map(([, value]) => value)),
  get: fixed('key default?', (_run, it, key, fallback) => {
    const found = dictGet(it as Dict | JsonObject, key)
    return found === undefined ? (fallback === undefined ? null : fallback) : found
  }),
  copy: fixed('', (_run, it) => it),
}

const listMethods: Record<string, Builtin> = {
  index: fixed('value', (run, it, value) => {
    const at = run.list(it).findIndex(member => equals(run, member, value))
    if (at < 0) throw new RenderFault('index: the value is not in the list')
    return at
  }),
  count: fixed('value', (run, it, value) => run.list(it).filter(member => equals(run, member, value)).length),
  copy: fixed('', (_run, it) => it),
}

const loopMethods: Record<string, Builtin> = {
  cycle: open((_run, it, args) => cycle(it as LoopState, args)),
  changed: open((run, it, args) => changed(run, it as LoopState, args)),
}

const METHODS = {
  text: new Map(Object.entries(textMethods)),
  dict: new Map(Object.entries(dictMethods)),
  list: new Map(Object.entries(listMethods)),
  loop: new Map(Object.entries(loopMethods)),
}

/** Whether any kind of value has it: what a template may call at all. Nothing that changes a value is among them. */
export const isMethod = (name: string): boolean => Object.values(METHODS).some(methods => methods.has(name))

/** The method of that name of this value; undefined when values of its kind have none. */
export function methodOf(value: Value, name: string): Builtin | undefined {
  if (typeof value === 'string') return METHODS.text.get(name)
  if (value instanceof LoopState) return METHODS.loop.get(name)
  if (isList(value)) return METHODS.list.get(name)
  return isDict(value) ? METHODS.dict.get(name) : undefined
}
