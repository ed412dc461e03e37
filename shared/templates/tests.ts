import { needNumber } from './arguments.js'
import { arithmetic } from './arithmetic.js'
import { type Builtin, fixed } from './builtin.js'
import { contains, equals, order } from './compare.js'
import { text } from './print.js'
import type { Run } from './run.js'
import { Float, isDict, isFloat, isList, isNumber, type Value } from './values.js'

const equal = fixed('other', (run, value, other) => equals(run, value, other))
const notEqual = fixed('other', (run, value, other) => !equals(run, value, other))
const greater = fixed('other', (run, value, other) => order(run, value, other) > 0)
const greaterOrEqual = fixed('other', (run, value, other) => order(run, value, other) >= 0)
const less = fixed('other', (run, value, other) => order(run, value, other) < 0)
const lessOrEqual = fixed('other', (run, value, other) => order(run, value, other) <= 0)

/** What stands behind `is` (Jinja's documentation, "List of Builtin Tests"). */
const TESTS: ReadonlyMap<string, Builtin> = new Map(
  Object.entries({
    defined: fixed('', (_run, value) => value !== undefined),
    undefined: fixed('', (_run, value) => value === undefined),
    none: fixed('', (_run, value) => value === null),
    boolean: fixed('', (_run, value) => typeof value === 'boolean'),
    true: fixed('', (_run, value) => value === true),
    false: fixed('', (_run, value) => value === false),
    integer: fixed('', (_run, value) => typeof value === 'number' && Number.isInteger(value)),
    float: fixed('', (_run, value) => isFloat(value)),
    number: fixed('', (_run, value) => isNumber(value)),
    string: fixed('', (_run, value) => typeof value === 'string'),
    mapping: fixed('', (_run, value) => isDict(value)),
    // A dict counts: it has a length and items, which is all that Jinja asks for.
    sequence: fixed('', (_run, value) => isSequence(value)),
    iterable: fixed('', (_run, value) => isSequence(value)),
    callable: fixed('', () => false),
    escaped: fixed('', () => false),
    lower: fixed('', (run, value) => isCase(run, value, 'lower')),
    upper: fixed('', (run, value) => isCase(run, value, 'upper')),
    even: fixed('', (run, value) => equals(run, arithmetic(run, '%', value, 2), 0)),
    odd: fixed('', (run, value) => equals(run, arithmetic(run, '%', value, 2), 1)),
    divisibleby: fixed('num', (run, value, by) => {
      return equals(
        run,
        arithmetic(run, '%', needNumber(value, 'divisibleby'), needNumber(by, 'divisibleby')),
        0,
      )
    }),
    sameas: fixed('other', (_run, value, other) => same(value, other)),
    in: fixed('seq', (run, value, holder) => contains(run, holder, value)),
    eq: equal,
    equalto: equal,
    '==': equal,
    ne: notEqual,
    '!=': notEqual,
    gt: greater,
    greaterthan: greater,
    '>': greater,
    ge: greaterOrEqual,
    '>=': greaterOrEqual,
    lt: less,
    lessthan: less,
    '<': less,
    le: lessOrEqual,
    '<=': lessOrEqual,
  }),
)

export const testNamed = (name: string): Builtin | undefined => TESTS.get(name)

const isSequence = (value: Value) =>
  typeof value === 'string' || value === undefined || isList(value) || isDict(value)

const same = (value: Value, other: Value) =>
  value instanceof Float && other instanceof Float ? value.value === other.value : value === other

/** Has a letter with a case, and none of the other one. */
function isCase(run: Run, value: Value, which: 'lower' | 'upper'): boolean {
  const shown = text(run, value)
  run.chargeCharacters(shown.length)
  const other = which === 'lower' ? /[\p{Lu}\p{Lt}]/u : /[\p{Ll}\p{Lt}]/u
  const own = which === 'lower' ? /\p{Ll}/u : /\p{Lu}/u
  return own.test(shown) && !other.test(shown)
}
