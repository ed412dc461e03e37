import { RenderFault } from './fault.js'
import { percentFormat } from './format-percent.js'
import type { ArithmeticOperator } from './nodes.js'
import { text } from './print.js'
import type { Run } from './run.js'
import { float, isFloat, isList, isNumber, Tuple, toNumber, typeName, type Value } from './values.js'

/** Python's arithmetic. An int stays an int except under `/`; what Python refuses is a RenderFault. */
export function arithmetic(run: Run, operator: ArithmeticOperator, left: Value, right: Value): Value {
  run.step()
  if (typeof left === 'number' && typeof right === 'number') {
    if (operator === '+' && Number.isInteger(left) && Number.isInteger(right)) return whole(left + right)
    if (operator === '-' && Number.isInteger(left) && Number.isInteger(right)) return whole(left - right)
  }
  if (isNumber(left) && isNumber(right)) return numeric(operator, left, right)
  if (operator === '+') return added(run, left, right)
  if (operator === '*') return repeated(run, left, right)
  if (operator === '%' && typeof left === 'string') return percentFormat(run, left, right)
  throw mismatch(operator, left, right)
}

const mismatch = (operator: string, left: Value, right: Value) =>
  new RenderFault(`${typeName(left)} ${operator} ${typeName(right)} is not possible`)

function numeric(
  operator: ArithmeticOperator,
  left: number | boolean | object,
  right: number | boolean | object,
) {
  const a = toNumber(left as number)
  const b = toNumber(right as number)
  const asFloat = isFloat(left as number) || isFloat(right as number)
  if (b === 0 && (operator === '/' || operator === '//' || operator === '%')) {
    throw new RenderFault('division by zero')
  }
  if (operator === '/') return float(a / b)
  if (operator === '**') return power(a, b, asFloat)
  const result = calculate(operator, a, b)
  return asFloat ? float(result) : whole(result)
}

function calculate(operator: '+' | '-' | '*' | '//' | '%', a: number, b: number): number {
  switch (operator) {
    case '+':
      return a + b
    case '-':
      return a - b
    case '*':
      return a * b
    case '//':
      return floorDivision(a, b)
    case '%':
      return remainder(a, b)
  }
}

/** Has the divisor's sign. */
function remainder(a: number, b: number): number {
  const rest = a % b
  if (rest === 0) return b < 0 ? -0 : 0
  return rest < 0 !== b < 0 ? rest + b : rest
}

/** From the exact remainder, as Python: `3.0 // 0.1` is 29.0 although `3.0 / 0.1` rounds to 30. */
function floorDivision(a: number, b: number): number {
  const quotient = (a - remainder(a, b)) / b
  if (quotient === 0) return 0 * Math.sign(a / b)
  const floor = Math.floor(quotient)
  return quotient - floor > 0.5 ? floor + 1 : floor
}

function power(a: number, b: number, asFloat: boolean): Value {
  if (a === 0 && b < 0) throw new RenderFault('0 cannot be raised to a negative power')
  const result = a ** b
  if (Number.isNaN(result)) throw new RenderFault('the root of a negative number is not a number')
  if (!Number.isFinite(result)) throw new RenderFault('the result is too large')
  return asFloat || b < 0 ? float(result) : whole(result)
}

/** Integers are JavaScript's numbers: exact up to 2^53, and refused where they would become infinite. */
function whole(value: number): number {
  if (!Number.isFinite(value)) throw new RenderFault('the result is too large')
  // Python's ints have no negative zero.
  return value + 0
}

function added(run: Run, left: Value, right: Value): Value {
  if (typeof left === 'string' && typeof right === 'string') {
    run.text(left.length + right.length)
    return left + right
  }
  if (isList(left) && isList(right) && left instanceof Tuple === right instanceof Tuple) {
    run.items(left.length + right.length)
    const both = [...left, ...right]
    return left instanceof Tuple ? Tuple.copy(both) : both
  }
  throw mismatch('+', left, right)
}

function repeated(run: Run, left: Value, right: Value): Value {
  const [thing, times] = isNumber(right) ? [left, right] : [right, left]
  if ((typeof thing !== 'string' && !isList(thing)) || !isNumber(times) || isFloat(times)) {
    throw mismatch('*', left, right)
  }
  const count = Math.max(0, toNumber(times))
  if (typeof thing === 'string') {
    run.text(thing.length * count)
    return thing === '' ? '' : thing.repeat(count)
  }
  run.items(thing.length * count)
  if (thing.length === 0) return thing
  const all: Value[] = []
  for (let at = 0; at < count; at++) all.push(...thing)
  return thing instanceof Tuple ? Tuple.copy(all) : all
}

export function negative(value: Value): Value {
  if (!isNumber(value)) throw new RenderFault(`-${typeName(value)} is not possible`)
  return isFloat(value) ? float(-toNumber(value)) : 0 - toNumber(value)
}

export function positive(value: Value): Value {
  if (!isNumber(value)) throw new RenderFault(`+${typeName(value)} is not possible`)
  return typeof value === 'boolean' ? toNumber(value) : value
}

/** `a ~ b`: what both print. */
export function concat(run: Run, values: readonly Value[]): string {
  let out = ''
  for (const value of values) {
    const shown = text(run, value)
    out += shown
    run.chargeText(shown.length)
    run.fits(out.length)
  }
  return out
}
