import { type Builtin, callBuiltin, NO_NAMES, open } from './builtin.js'
import { RenderFault } from './fault.js'
import { getter, listFilters } from './filters-list.js'
import { textFilters } from './filters-text.js'
import { text } from './print.js'
import type { Run } from './run.js'
import { testNamed } from './tests.js'
import type { Value } from './values.js'

/**
 * `map`, `select` and their kin: filters that apply another filter or test by name. They answer with lists where Jinja
 * has generators, so that `{{ x | map('upper') }}` prints something and an empty selection is false.
 */
const selectionFilters: Record<string, Builtin> = {
  map: open((run, value, args, named) => {
    if (args.length === 0 && named.has('attribute')) {
      return each(run, value, getter(run, named.get('attribute'), named.get('default')))
    }
    const [name, ...rest] = args
    const filter = FILTERS.get(text(run, name))
    if (filter === undefined) throw new RenderFault(`there is no filter '${text(run, name)}'`)
    return each(run, value, item =>
      callBuiltin(run, `filter '${text(run, name)}'`, filter, item, rest, named),
    )
  }),
  select: open((run, value, args) => chosen(run, value, args, item => item, true)),
  reject: open((run, value, args) => chosen(run, value, args, item => item, false)),
  selectattr: open((run, value, [by, ...args]) => chosen(run, value, args, getter(run, by), true)),
  rejectattr: open((run, value, [by, ...args]) => chosen(run, value, args, getter(run, by), false)),
}

function each(run: Run, value: Value, change: (item: Value) => Value): Value[] {
  return run.list(value).map(item => {
    run.step()
    return change(item)
  })
}

function chosen(
  run: Run,
  value: Value,
  [name, ...args]: readonly Value[],
  read: (item: Value) => Value,
  wanted: boolean,
): Value[] {
  const list = run.list(value)
  if (name === undefined) return list.filter(item => run.truthy(read(item)) === wanted)
  const test = testNamed(text(run, name))
  if (test === undefined) throw new RenderFault(`there is no test '${text(run, name)}'`)
  return list.filter(
    item =>
      run.truthy(callBuiltin(run, `test '${text(run, name)}'`, test, read(item), args, NO_NAMES)) === wanted,
  )
}

const FILTERS: ReadonlyMap<string, Builtin> = new Map(
  Object.entries({ ...textFilters, ...listFilters, ...selectionFilters }),
)

export const filterNamed = (name: string): Builtin | undefined => FILTERS.get(name)
