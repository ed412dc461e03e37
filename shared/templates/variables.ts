import type { Arguments, Expression, Statement, Target, Template } from './nodes.js'

export interface Reads {
  /** What the caller must know about: every name read and not bound by the message, in order of first appearance. */
  names: ReadonlySet<string>
  /**
   * Those of `names` without which rendering stops. A name is not required when every read of it is guarded: it stands
   * before `default`, in `is defined`, or where such a test has shown it to be there.
   */
  required: ReadonlySet<string>
}

/** The names that one message reads (spec 1, prompt version; spec 4, section 9). */
export function readsOf({ body }: Template): Reads {
  const walk = new Walk()
  walk.statements(body)
  const unbound = (name: string) => !walk.bound.has(name)
  return {
    names: new Set([...walk.read].filter(unbound)),
    required: new Set([...walk.required].filter(unbound)),
  }
}

/** Goes through the tree in the order of the text. */
class Walk {
  readonly read = new Set<string>()
  readonly required = new Set<string>()
  readonly bound = new Set<string>()
  /** Names that a test around this place has shown to be there, with how many tests did. */
  readonly #known = new Map<string, number>()

  statements(statements: readonly Statement[]): void {
    for (const statement of statements) this.#statement(statement)
  }

  #statement(statement: Statement): void {
    switch (statement.kind) {
      case 'output':
        this.#expression(statement.value)
        break
      case 'if':
        this.#if(statement)
        break
      case 'for': {
        const { target, iterable, test, body, otherwise } = statement
        this.#target(target)
        this.bound.add('loop')
        this.#expressions([iterable, test])
        this.#knowing(test === null ? [] : shown(test, true), () => this.statements(body))
        this.statements(otherwise)
        break
      }
      case 'set':
        this.#target(statement.target)
        this.#expression(statement.value)
        break
      case 'capture':
        this.#target(statement.target)
        for (const { args } of statement.filters) this.#arguments(args)
        this.statements(statement.body)
    }
  }

  #if({ branches, otherwise }: Statement & { kind: 'if' }): void {
    const passed: string[] = []
    for (const { test, body } of branches) {
      this.#expression(test)
      this.#knowing(shown(test, true), () => this.statements(body))
      const later = shown(test, false)
      passed.push(...later)
      this.#know(later, 1)
    }
    this.statements(otherwise)
    this.#know(passed, -1)
  }

  #target(target: Target): void {
    if (target.kind === 'tuple') for (const item of target.items) this.#target(item)
    else if (target.kind === 'name') this.bound.add(target.name)
    else this.#name(target.name)
  }

  #name(name: string, guarded = false): void {
    this.read.add(name)
    if (!guarded && !this.#known.get(name)) this.required.add(name)
  }

  #expressions(nodes: readonly (Expression | null)[]): void {
    for (const node of nodes) if (node !== null) this.#expression(node)
  }

  #expression(node: Expression): void {
    switch (node.kind) {
      case 'name':
        this.#name(node.name)
        break
      case 'method':
      case 'filter':
      case 'test':
        if (node.target.kind === 'name' && isGuard(node)) this.#name(node.target.name, true)
        else this.#expression(node.target)
        this.#arguments(node.args)
        break
      case 'call':
        this.#arguments(node.args)
        break
      case 'and':
      case 'or':
        this.#logic(node.operands, node.kind === 'and')
        break
      case 'condition':
        this.#condition(node)
        break
      default:
        this.#expressions(partsOf(node))
    }
  }

  /** `x is defined and x.y`: a later operand is read only after the earlier ones were true (false, for `or`). */
  #logic(operands: readonly Expression[], outcome: boolean): void {
    const passed: string[] = []
    for (const operand of operands) {
      this.#expression(operand)
      const later = shown(operand, outcome)
      passed.push(...later)
      this.#know(later, 1)
    }
    this.#know(passed, -1)
  }

  /** In the order of the text, the chosen value comes before the test that guards it. */
  #condition({ test, chosen, otherwise }: Expression & { kind: 'condition' }): void {
    this.#knowing(shown(test, true), () => this.#expression(chosen))
    this.#expression(test)
    if (otherwise !== null) this.#knowing(shown(test, false), () => this.#expression(otherwise))
  }

  #arguments({ positional, named }: Arguments): void {
    this.#expressions([...positional, ...named.map(([, value]) => value)])
  }

  #knowing(names: readonly string[], walk: () => void): void {
    this.#know(names, 1)
    walk()
    this.#know(names, -1)
  }

  #know(names: readonly string[], change: 1 | -1): void {
    for (const name of names) this.#known.set(name, (this.#known.get(name) ?? 0) + change)
  }
}

type Plain = Exclude<
  Expression,
  | { kind: 'name' | 'method' }
  | { kind: 'filter' }
  | { kind: 'test' }
  | { kind: 'call' }
  | { kind: 'condition' }
>

/** The parts of an expression that guards nothing, in the order of the text. */
function partsOf(node: Plain): (Expression | null)[] {
  switch (node.kind) {
    case 'list':
    case 'tuple':
      return node.items
    case 'dict':
      return node.entries.flat()
    case 'attribute':
      return [node.target]
    case 'item':
      return [node.target, node.key]
    case 'slice':
      return [node.target, node.start, node.stop, node.step]
    case 'not':
    case 'negative':
    case 'positive':
      return [node.operand]
    case 'concat':
    case 'and':
    case 'or':
      return node.operands
    case 'arithmetic':
    case 'compare':
      return [node.first, ...node.rest.map(({ operand }) => operand)]
    default:
      return []
  }
}

function isGuard({ kind, name }: Expression & { kind: 'filter' | 'test' | 'method' }): boolean {
  if (kind === 'filter') return name === 'default' || name === 'd'
  return kind === 'test' && (name === 'defined' || name === 'undefined')
}

/** The names that are known to be there once the expression turned out true, or false. */
function shown(node: Expression, outcome: boolean): string[] {
  if (node.kind === 'not') return shown(node.operand, !outcome)
  if (node.kind === 'and' || node.kind === 'or') {
    const decides = (node.kind === 'and') === outcome
    return decides ? node.operands.flatMap(operand => shown(operand, outcome)) : []
  }
  if (node.kind !== 'test' || node.target.kind !== 'name') return []
  return node.name === (outcome ? 'defined' : 'undefined') ? [node.target.name] : []
}
