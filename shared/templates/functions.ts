import { needNumber } from './arguments.js'
import { type Builtin, fixed, open } from './builtin.js'
import { RenderFault } from './fault.js'
import { isDict, isFloat, isNumber, Namespace, typeName, type Value } from './values.js'

/** What a template can call by name. Anything else that is called is refused when the template is committed. */
const FUNCTIONS: ReadonlyMap<string, Builtin> = new Map(
  Object.entries({
    range: fixed('start stop? step?', (run, _none, first, second, third) => {
      const start = second === undefined ? 0 : whole(first)
      const stop = whole(second === undefined ? first : second)
      const step = third === undefined ? 1 : whole(third)
      if (step === 0) throw new RenderFault('the step of a range cannot be 0')
      const count = Math.max(0, Math.ceil((stop - start) / step))
      run.items(count)
      return Array.from({ length: count }, (_, at) => start + at * step)
    }),
    dict: open((run, _none, [base], named) => {
      const made = new Map(isDict(base) ? (run.entries(base) as [string, Value][]) : [])
      for (const [name, value] of named) made.set(name, value)
      return made
    }),
    namespace: open((run, _none, [base], named) => {
      const made = new Namespace()
      if (isDict(base)) for (const [name, value] of run.entries(base)) made.fields.set(name as string, value)
      for (const [name, value] of named) made.fields.set(name, value)
      return made
    }),
  }),
)

export const functionNamed = (name: string): Builtin | undefined => FUNCTIONS.get(name)

function whole(value: Value): number {
  if (!isNumber(value) || isFloat(value))
    throw new RenderFault(`range needs whole numbers, not ${typeName(value)}`)
  return needNumber(value, 'range')
}
