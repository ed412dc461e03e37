import { arithmetic, concat, negative, positive } from './arithmetic.js'
import { arrange, type Builtin, callBuiltin } from './builtin.js'
import { contains, equals, order } from './compare.js'
import { ParseFault, RenderFault } from './fault.js'
import { filterNamed } from './filters.js'
import { functionNamed } from './functions.js'
import { NESTING_MAX, NODES_MAX } from './limits.js'
import { attribute, item, slice } from './lookup.js'
import { isMethod, methodOf } from './methods.js'
import type { Arguments, CompareOperator, Expression, ExpressionOf, FilterCall } from './nodes.js'
import type { Run } from './run.js'
import type { Evaluate, Scope } from './scope.js'
import { testNamed } from './tests.js'
import { type Dict, dictKey, Float, Tuple, typeName, type Value } from './values.js'

/** What is known about a prompt while its trees become closures: bounds on them, and the line for faults. */
export class Bounds {
  line = 1
  #nodes = 0
  #nesting = 0

  fault(detail: string): ParseFault {
    return new ParseFault(detail, this.line)
  }

  count(nodes: number): void {
    this.#nodes += nodes
    if (this.#nodes > NODES_MAX) throw this.fault(`the messages have more than ${NODES_MAX} parts`)
  }

  /** Around everything that recurses over the tree. */
  nested<T>(compile: () => T): T {
    this.count(1)
    if (++this.#nesting > NESTING_MAX)
      throw this.fault(`an expression is nested deeper than ${NESTING_MAX} levels`)
    const compiled = compile()
    this.#nesting--
    return compiled
  }
}

/** Turns an expression into a closure. @throws ParseFault for a filter, test, method or function that does not exist */
export function compileExpression(node: Expression, scope: Scope, bounds: Bounds): Evaluate {
  return bounds.nested(() => new ExpressionCompiler(scope, bounds).compile(node))
}

/** The filters of `{% set x | upper | trim %}...{% endset %}`. */
export function compileFilters(
  filters: readonly FilterCall[],
  target: Evaluate,
  scope: Scope,
  bounds: Bounds,
): Evaluate {
  const compiler = new ExpressionCompiler(scope, bounds)
  return filters.reduce((value, { name, args }) => {
    const filter = filterNamed(name)
    if (filter === undefined) throw bounds.fault(`there is no filter '${name}'`)
    return compiler.builtin(filter, `the filter '${name}'`, value, args)
  }, target)
}

class ExpressionCompiler {
  constructor(
    readonly scope: Scope,
    readonly bounds: Bounds,
  ) {}

  compile(node: Expression): Evaluate {
    switch (node.kind) {
      case 'constant': {
        const { value } = node
        return () => value
      }
      case 'name':
        return this.scope.read(node.name)
      case 'list':
      case 'tuple':
        return this.#list(node)
      case 'dict':
        return this.#dict(node)
      case 'attribute':
      case 'item':
      case 'slice':
        return this.#lookup(node)
      case 'call':
      case 'method':
      case 'filter':
      case 'test':
        return this.#call(node)
      case 'arithmetic':
      case 'concat':
      case 'negative':
      case 'positive':
        return this.#arithmetic(node)
      default:
        return this.#logic(node)
    }
  }

  #inner(node: Expression): Evaluate {
    return compileExpression(node, this.scope, this.bounds)
  }

  #list({ kind, items }: ExpressionOf<'list' | 'tuple'>): Evaluate {
    const parts = items.map(part => this.#inner(part))
    const list = (run: Run) => {
      run.charge(1 + parts.length)
      return parts.map(part => part(run))
    }
    return kind === 'list' ? list : run => Tuple.copy(list(run))
  }

  #dict({ entries }: ExpressionOf<'dict'>): Evaluate {
    const parts = entries.map(([key, value]) => [this.#inner(key), this.#inner(value)] as const)
    return run => {
      run.charge(1 + parts.length)
      const dict: Dict = new Map()
      for (const [key, value] of parts) dict.set(dictKey(key(run)), value(run))
      return dict
    }
  }

  #lookup(node: ExpressionOf<'attribute' | 'item' | 'slice'>): Evaluate {
    const target = this.#inner(node.target)
    const what = node.target
    if (node.kind === 'attribute') {
      const { name } = node
      return run => {
        run.step()
        return attribute(run, present(target(run), what), name)
      }
    }
    if (node.kind === 'item') {
      const key = this.#inner(node.key)
      return run => {
        run.step()
        return item(run, present(target(run), what), key(run))
      }
    }
    const bound = (part: Expression | null): Evaluate => (part === null ? () => null : this.#inner(part))
    const [start, stop, step] = [bound(node.start), bound(node.stop), bound(node.step)]
    return run => slice(run, present(target(run), what), start(run), stop(run), step(run))
  }

  #call(node: ExpressionOf<'call' | 'method' | 'filter' | 'test'>): Evaluate {
    if (node.kind === 'method') return this.#method(node)
    if (node.kind === 'call') {
      const known = this.scope.isBound(node.name) ? undefined : functionNamed(node.name)
      if (known === undefined) throw this.bounds.fault(`'${node.name}' is not a function that templates have`)
      return this.builtin(known, node.name, () => undefined, node.args)
    }
    if (node.kind === 'filter' && isEscapedTwice(node)) return this.#inner(node.target)
    const known = node.kind === 'filter' ? filterNamed(node.name) : testNamed(node.name)
    if (known === undefined) throw this.bounds.fault(`there is no ${node.kind} '${node.name}'`)
    return this.builtin(known, `the ${node.kind} '${node.name}'`, this.#inner(node.target), node.args)
  }

  /** A call whose arguments are put in order now, so that nothing is looked up while rendering. */
  builtin(builtin: Builtin, what: string, target: Evaluate, { positional, named }: Arguments): Evaluate {
    const args = positional.map(part => this.#inner(part))
    const byName = named.map(([name, part]): [string, Evaluate] => [name, this.#inner(part)])
    if (builtin.kind === 'open') {
      const { call } = builtin
      return run => {
        run.step()
        const names = new Map(byName.map(([name, part]) => [name, part(run)]))
        return call(
          run,
          target(run),
          args.map(part => part(run)),
          names,
        )
      }
    }
    const arranged = arrange(builtin, args, byName)
    if (typeof arranged === 'string') throw this.bounds.fault(`${what} ${arranged}`)
    const { call } = builtin
    const [first, second] = arranged
    if (arranged.length === 0) {
      return run => {
        run.step()
        return call(run, target(run))
      }
    }
    if (arranged.length <= 2) {
      return run => {
        run.step()
        return call(run, target(run), first?.(run), second?.(run))
      }
    }
    return run => {
      run.step()
      return call(run, target(run), ...arranged.map(part => part?.(run)))
    }
  }

  #method({ target, name, args }: ExpressionOf<'method'>): Evaluate {
    if (!isMethod(name)) throw this.bounds.fault(`'${name}' is not a method that templates have`)
    const owner = this.#inner(target)
    const positional = args.positional.map(part => this.#inner(part))
    const named = args.named.map(([key, part]): [string, Evaluate] => [key, this.#inner(part)])
    return run => {
      const value = present(owner(run), target)
      const method = methodOf(value, name)
      if (method === undefined) throw new RenderFault(`${typeName(value)} has no method '${name}'`)
      const given = positional.map(part => part(run))
      const names = new Map(named.map(([key, part]) => [key, part(run)]))
      return callBuiltin(run, `the method '${name}'`, method, value, given, names)
    }
  }

  #arithmetic(node: ExpressionOf<'arithmetic' | 'concat' | 'negative' | 'positive'>): Evaluate {
    if (node.kind === 'concat') {
      const parts = node.operands.map(part => this.#inner(part))
      return run => {
        run.step()
        return concat(
          run,
          parts.map(part => part(run)),
        )
      }
    }
    if (node.kind !== 'arithmetic') {
      const operand = this.#inner(node.operand)
      const sign = node.kind === 'negative' ? negative : positive
      return run => {
        run.step()
        return sign(present(operand(run), node.operand))
      }
    }
    const first = this.#inner(node.first)
    const rest = node.rest.map(({ operator, operand }) => ({ operator, operand, part: this.#inner(operand) }))
    return run => {
      let value = first(run)
      if (value === undefined) present(value, node.first)
      for (const { operator, operand, part } of rest) {
        const right = part(run)
        if (right === undefined && typeof value !== 'string') present(right, operand)
        value = arithmetic(run, operator, value, right)
      }
      return value
    }
  }

  #logic(node: ExpressionOf<'not' | 'and' | 'or' | 'compare' | 'condition'>): Evaluate {
    if (node.kind === 'not') {
      const operand = this.#inner(node.operand)
      return run => !run.truthy(operand(run))
    }
    if (node.kind === 'condition') {
      const [test, chosen] = [this.#inner(node.test), this.#inner(node.chosen)]
      const otherwise = node.otherwise === null ? () => undefined : this.#inner(node.otherwise)
      return run => {
        run.step()
        return run.truthy(test(run)) ? chosen(run) : otherwise(run)
      }
    }
    if (node.kind === 'compare') return this.#compare(node)
    const parts = node.operands.map(part => this.#inner(part))
    const stopAt = node.kind === 'or'
    return run => {
      let value: Value
      for (const part of parts) {
        run.step()
        value = part(run)
        if (run.truthy(value) === stopAt) return value
      }
      return value
    }
  }

  /** `a < b < c` is `a < b and b < c`. */
  #compare(node: ExpressionOf<'compare'>): Evaluate {
    const first = this.#inner(node.first)
    const rest = node.rest.map(({ operator, operand }) => ({
      compare: COMPARE[operator],
      part: this.#inner(operand),
    }))
    return run => {
      let left = first(run)
      for (const { compare, part } of rest) {
        const right = part(run)
        if (!compare(run, left, right)) return false
        left = right
      }
      return true
    }
  }
}

const COMPARE: Record<CompareOperator, (run: Run, left: Value, right: Value) => boolean> = {
  '==': (run, left, right) => equals(run, left, right),
  '!=': (run, left, right) => !equals(run, left, right),
  '<': (run, left, right) => order(run, left, right) < 0,
  '<=': (run, left, right) => order(run, left, right) <= 0,
  '>': (run, left, right) => order(run, left, right) > 0,
  '>=': (run, left, right) => order(run, left, right) >= 0,
  in: (run, left, right) => contains(run, right, left),
  'not in': (run, left, right) => !contains(run, right, left),
}

/** Jinja marks what was escaped or called safe and leaves it alone. */
function isEscapedTwice({ name, target }: ExpressionOf<'filter'>): boolean {
  if (name !== 'e' && name !== 'escape') return false
  return target.kind === 'filter' && ['e', 'escape', 'forceescape', 'safe', 'tojson'].includes(target.name)
}

function present(value: Value, node: Expression): Value {
  if (value === undefined) throw new RenderFault(`${described(node)} is undefined`)
  return value
}

function described(node: Expression): string {
  const path = pathOf(node)
  return path === null ? 'a value' : `'${path}'`
}

function pathOf(node: Expression): string | null {
  if (node.kind === 'name') return node.name
  if (node.kind !== 'attribute' && node.kind !== 'item') return null
  const target = pathOf(node.target)
  if (target === null) return null
  if (node.kind === 'attribute') return `${target}.${node.name}`
  if (node.key.kind !== 'constant') return `${target}[...]`
  const { value } = node.key
  if (value instanceof Float) return null
  return `${target}[${typeof value === 'string' ? `'${value}'` : String(value)}]`
}
