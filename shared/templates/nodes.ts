import type { Value } from './values.js'

/**
 * The tree of a template. What has no node here cannot happen: there is no include, import, macro or assignment to
 * anything but a template's own names. Chains of equal precedence are flat lists, so that a hundred `or`s, `~`s or
 * `elif`s do not nest.
 */
export type Expression =
  | { kind: 'constant'; value: Value }
  | { kind: 'name'; name: string }
  | { kind: 'list'; items: Expression[] }
  | { kind: 'tuple'; items: Expression[] }
  | { kind: 'dict'; entries: [key: Expression, value: Expression][] }
  | { kind: 'attribute'; target: Expression; name: string }
  | { kind: 'item'; target: Expression; key: Expression }
  | {
      kind: 'slice'
      target: Expression
      start: Expression | null
      stop: Expression | null
      step: Expression | null
    }
  | { kind: 'call'; name: string; args: Arguments }
  | { kind: 'method'; target: Expression; name: string; args: Arguments }
  | { kind: 'filter'; target: Expression; name: string; args: Arguments }
  | { kind: 'test'; target: Expression; name: string; args: Arguments }
  | { kind: 'not'; operand: Expression }
  | { kind: 'negative'; operand: Expression }
  | { kind: 'positive'; operand: Expression }
  | { kind: 'and'; operands: Expression[] }
  | { kind: 'or'; operands: Expression[] }
  | { kind: 'concat'; operands: Expression[] }
  | { kind: 'arithmetic'; first: Expression; rest: { operator: ArithmeticOperator; operand: Expression }[] }
  | { kind: 'compare'; first: Expression; rest: { operator: CompareOperator; operand: Expression }[] }
  | { kind: 'condition'; test: Expression; chosen: Expression; otherwise: Expression | null }

export type ExpressionOf<K extends Expression['kind']> = Extract<Expression, { kind: K }>

export type ArithmeticOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**'
export type CompareOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in'

export interface Arguments {
  positional: Expression[]
  named: [name: string, value: Expression][]
}

export type Statement =
  | { kind: 'text'; text: string }
  | { kind: 'output'; value: Expression; line: number }
  | { kind: 'if'; branches: { test: Expression; body: Statement[]; line: number }[]; otherwise: Statement[] }
  | ForStatement
  | { kind: 'set'; target: Target; value: Expression; line: number }
  | { kind: 'capture'; target: Target; filters: FilterCall[]; body: Statement[]; line: number }

export interface ForStatement {
  kind: 'for'
  target: Target
  iterable: Expression
  /** `for x in y if test`. */
  test: Expression | null
  body: Statement[]
  otherwise: Statement[]
  line: number
}

export interface FilterCall {
  name: string
  args: Arguments
}

/** What `for` and `set` bind. `member` is `ns.name`, a namespace's field. */
export type Target =
  | { kind: 'name'; name: string }
  | { kind: 'tuple'; items: Target[] }
  | { kind: 'member'; name: string; field: string }

export interface Template {
  body: Statement[]
}
