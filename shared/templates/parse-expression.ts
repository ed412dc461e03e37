import type { Cursor } from './cursor.js'
import type { Arguments, ArithmeticOperator, CompareOperator, Expression, FilterCall } from './nodes.js'
import { Float } from './values.js'

const COMPARISONS = new Set(['==', '!=', '<', '<=', '>', '>='])
const CONSTANTS = new Map<string, null | boolean>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', null],
  ['None', null],
])
/** Words that end an operand: `x is defined and y`, `x is odd else y`. */
const KEYWORDS = new Set(['and', 'or', 'not', 'in', 'is', 'if', 'else', 'recursive'])

export const isConstantName = (name: string) => CONSTANTS.has(name) || KEYWORDS.has(name)

/** Jinja's grammar of expressions, level by level, weakest first. */
export class ExpressionParser {
  constructor(readonly cursor: Cursor) {}

  /** `a if b else c`, and everything that binds tighter. */
  expression(): Expression {
    return this.cursor.nested(() => {
      let parsed = this.or()
      while (this.cursor.skip('name', 'if')) {
        const test = this.or()
        const otherwise = this.cursor.skip('name', 'else') ? this.expression() : null
        parsed = { kind: 'condition', test, chosen: parsed, otherwise }
      }
      return parsed
    })
  }

  /** `a, b` is a tuple. @param conditional whether `a if b` is read as one expression */
  tuple(conditional = true): Expression {
    const one = () => (conditional ? this.expression() : this.or())
    const first = one()
    if (!this.cursor.is('operator', ',')) return first
    const items = [first]
    while (this.cursor.skip('operator', ',') && !this.#atTupleEnd()) items.push(one())
    return { kind: 'tuple', items }
  }

  #atTupleEnd(): boolean {
    const { cursor } = this
    return (
      cursor.is('print end') || cursor.is('tag end') || cursor.is('operator', ')') || cursor.is('name', 'in')
    )
  }

  or(): Expression {
    return this.#flat('or', () => this.#flat('and', () => this.#not()))
  }

  #flat(kind: 'or' | 'and', part: () => Expression): Expression {
    const first = part()
    if (!this.cursor.is('name', kind)) return first
    const operands = [first]
    while (this.cursor.skip('name', kind)) operands.push(part())
    return { kind, operands }
  }

  #not(): Expression {
    if (!this.cursor.skip('name', 'not')) return this.#compare()
    return { kind: 'not', operand: this.cursor.nested(() => this.#not()) }
  }

  #compare(): Expression {
    const first = this.#sum()
    const rest: { operator: CompareOperator; operand: Expression }[] = []
    for (;;) {
      const operator = this.#comparison()
      if (operator === null) break
      rest.push({ operator, operand: this.#sum() })
    }
    return rest.length === 0 ? first : { kind: 'compare', first, rest }
  }

  #comparison(): CompareOperator | null {
    const { cursor } = this
    const { type, value } = cursor.token
    if (type === 'operator' && COMPARISONS.has(value)) return cursor.next().value as CompareOperator
    if (cursor.skip('name', 'in')) return 'in'
    if (!cursor.is('name', 'not') || cursor.after.type !== 'name' || cursor.after.value !== 'in') return null
    cursor.next()
    cursor.next()
    return 'not in'
  }

  #sum(): Expression {
    return this.#chain(['+', '-'], () => this.#concat())
  }

  #concat(): Expression {
    const first = this.#product()
    if (!this.cursor.is('operator', '~')) return first
    const operands = [first]
    while (this.cursor.skip('operator', '~')) operands.push(this.#product())
    return { kind: 'concat', operands }
  }

  #product(): Expression {
    return this.#chain(['*', '/', '//', '%'], () => this.#chain(['**'], () => this.#unary(true)))
  }

  #chain(operators: ArithmeticOperator[], part: () => Expression): Expression {
    const first = part()
    const rest: { operator: ArithmeticOperator; operand: Expression }[] = []
    for (;;) {
      const operator = operators.find(sign => this.cursor.skip('operator', sign))
      if (operator === undefined) break
      rest.push({ operator, operand: part() })
    }
    return rest.length === 0 ? first : { kind: 'arithmetic', first, rest }
  }

  /** A sign binds tighter than a filter: `-1|abs` is 1. */
  #unary(withFilters: boolean): Expression {
    let parsed: Expression
    if (this.cursor.skip('operator', '-')) {
      parsed = { kind: 'negative', operand: this.cursor.nested(() => this.#unary(false)) }
    } else if (this.cursor.skip('operator', '+')) {
      parsed = { kind: 'positive', operand: this.cursor.nested(() => this.#unary(false)) }
    } else parsed = this.#primary()
    parsed = this.#postfix(parsed)
    return withFilters ? this.#filtersAndTests(parsed) : parsed
  }

  #primary(): Expression {
    const { cursor } = this
    const { type, value } = cursor.token
    switch (type) {
      case 'name':
        return this.#name()
      case 'string':
        return { kind: 'constant', value: this.#strings() }
      case 'integer':
        cursor.next()
        return { kind: 'constant', value: Number(value) }
      case 'float': {
        cursor.next()
        const number = Number(value)
        return { kind: 'constant', value: Number.isInteger(number) ? new Float(number) : number }
      }
    }
    if (cursor.skip('operator', '(')) return this.#parenthesized()
    if (cursor.skip('operator', '['))
      return { kind: 'list', items: this.#until(']', () => this.expression()) }
    if (cursor.skip('operator', '{')) return { kind: 'dict', entries: this.#until('}', () => this.#entry()) }
    throw cursor.fault(`expected an expression, found ${cursor.found()}`)
  }

  #name(): Expression {
    const { value } = this.cursor.token
    if (KEYWORDS.has(value)) throw this.cursor.fault(`expected an expression, found '${value}'`)
    this.cursor.next()
    const constant = CONSTANTS.get(value)
    return constant === undefined ? { kind: 'name', name: value } : { kind: 'constant', value: constant }
  }

  /** Neighbouring literals are one text, as in Python. */
  #strings(): string {
    let value = ''
    while (this.cursor.is('string')) value += this.cursor.next().value
    return value
  }

  #parenthesized(): Expression {
    if (this.cursor.skip('operator', ')')) return { kind: 'tuple', items: [] }
    const inner = this.tuple()
    this.cursor.expect('operator', ')')
    return inner
  }

  #until<T>(end: string, part: () => T): T[] {
    const parts: T[] = []
    while (!this.cursor.skip('operator', end)) {
      if (parts.length > 0) {
        this.cursor.expect('operator', ',')
        if (this.cursor.skip('operator', end)) break
      }
      parts.push(part())
    }
    return parts
  }

  #entry(): [Expression, Expression] {
    const key = this.expression()
    this.cursor.expect('operator', ':')
    return [key, this.expression()]
  }

  #postfix(start: Expression): Expression {
    let parsed = start
    for (;;) {
      if (this.cursor.skip('operator', '.')) parsed = this.#member(parsed)
      else if (this.cursor.skip('operator', '[')) parsed = this.#subscript(parsed)
      else if (this.cursor.is('operator', '(')) parsed = this.#call(parsed)
      else return parsed
    }
  }

  #member(target: Expression): Expression {
    const { cursor } = this
    if (cursor.is('integer')) {
      return { kind: 'item', target, key: { kind: 'constant', value: Number(cursor.next().value) } }
    }
    return { kind: 'attribute', target, name: cursor.expect('name').value }
  }

  #subscript(target: Expression): Expression {
    const { cursor } = this
    const bound = () => (cursor.is('operator', ':') || cursor.is('operator', ']') ? null : this.tuple())
    const start = bound()
    if (cursor.skip('operator', ']')) {
      if (start === null) throw cursor.fault('expected an expression between `[` and `]`')
      return { kind: 'item', target, key: start }
    }
    cursor.expect('operator', ':')
    const stop = bound()
    const step = cursor.skip('operator', ':') ? bound() : null
    cursor.expect('operator', ']')
    return { kind: 'slice', target, start, stop, step }
  }

  #call(target: Expression): Expression {
    const { line } = this.cursor.token
    const args = this.arguments()
    if (target.kind === 'name') return { kind: 'call', name: target.name, args }
    if (target.kind === 'attribute') return { kind: 'method', target: target.target, name: target.name, args }
    throw this.cursor.fault('only functions and methods can be called', line)
  }

  /** From `(` to `)`. */
  arguments(): Arguments {
    const { cursor } = this
    const args: Arguments = { positional: [], named: [] }
    cursor.expect('operator', '(')
    this.#until(')', () => {
      if (cursor.is('operator', '*') || cursor.is('operator', '**')) {
        throw cursor.fault('`*` and `**` arguments are not available')
      }
      if (cursor.is('name') && cursor.after.type === 'operator' && cursor.after.value === '=') {
        const name = cursor.next().value
        cursor.next()
        args.named.push([name, this.expression()])
        return
      }
      if (args.named.length > 0) throw cursor.fault('an argument without a name follows one with a name')
      args.positional.push(this.expression())
    })
    return args
  }

  #filtersAndTests(start: Expression): Expression {
    let parsed = start
    for (;;) {
      if (this.cursor.skip('operator', '|')) parsed = { kind: 'filter', target: parsed, ...this.filterCall() }
      else if (this.cursor.skip('name', 'is')) parsed = this.#test(parsed)
      else if (this.cursor.is('operator', '(')) parsed = this.#call(parsed)
      else return parsed
    }
  }

  /** Behind the `|`. */
  filterCall(): FilterCall {
    const name = this.cursor.expect('name').value
    return { name, args: this.cursor.is('operator', '(') ? this.arguments() : noArguments() }
  }

  #test(target: Expression): Expression {
    const { cursor } = this
    const negated = cursor.skip('name', 'not')
    const name = cursor.is('name', 'in') ? cursor.next().value : this.#testName()
    const test: Expression = { kind: 'test', target, name, args: this.#testArguments() }
    return negated ? { kind: 'not', operand: test } : test
  }

  #testName(): string {
    if (KEYWORDS.has(this.cursor.token.value)) {
      throw this.cursor.fault(`expected the name of a test, found ${this.cursor.found()}`)
    }
    return this.cursor.expect('name').value
  }

  /** In parentheses, or one operand without them: `x is divisibleby 3`. */
  #testArguments(): Arguments {
    const { cursor } = this
    const { type, value } = cursor.token
    if (cursor.is('operator', '(')) return this.arguments()
    const isOperand =
      type === 'string' ||
      type === 'integer' ||
      type === 'float' ||
      (type === 'operator' && (value === '[' || value === '{')) ||
      (type === 'name' && !KEYWORDS.has(value))
    if (!isOperand) return noArguments()
    return { positional: [this.#postfix(this.#primary())], named: [] }
  }
}

const noArguments = (): Arguments => ({ positional: [], named: [] })
