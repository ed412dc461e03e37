/**
 * A parser of our own for Jinja's language. nunjucks' parser was the first choice and cannot carry the meaning: it gives
 * `*` a weaker bond than `/`, `//` and `%` (`2 * 7 // 2` is 6 instead of 7) and `~` a weaker one than `+`, refuses slices,
 * tuples and `set a, b = ...`, reads `is` and `in` on the wrong level, drops `\x41` and `\d`, takes any characters for a
 * name, accepts `(1]` and unclosed strings, builds regular expressions, and is quadratic on hostile input. nunjucks
 * stays as a reference in the tests, for what both understand alike.
 */
import { Cursor } from './cursor.js'
import { tokenize } from './lexer.js'
import type { FilterCall, Statement, Target, Template } from './nodes.js'
import { ExpressionParser, isConstantName } from './parse-expression.js'

/** Tags of Jinja's (and nunjucks') that prompt templates do not have, and why. */
const REFUSED = new Map(
  [
    ['include', 'import', 'from', 'extends', 'block'].map(tag => [
      tag,
      'each message is a template of its own',
    ]),
    ['macro', 'call', 'filter', 'with', 'do', 'autoescape', 'switch', 'asyncEach', 'asyncAll', 'trans'].map(
      tag => [tag, 'prompt templates have if, for, set and raw'],
    ),
  ].flat() as [string, string][],
)

/** @throws ParseFault */
export function parse(source: string): Template {
  return new StatementParser(new Cursor(tokenize(source))).template()
}

class StatementParser {
  readonly #expressions: ExpressionParser

  constructor(readonly cursor: Cursor) {
    this.#expressions = new ExpressionParser(cursor)
  }

  template(): Template {
    const body = this.#body([], '', 1)
    return { body }
  }

  /**
   * Statements up to a tag that is one of `ends`, whose `{% name` is consumed; up to the end of the template when there
   * are none.
   */
  #body(ends: readonly string[], owner: string, ownerLine: number): Statement[] {
    const { cursor } = this
    const body: Statement[] = []
    for (;;) {
      const { type, value, line } = cursor.token
      if (type === 'text') {
        cursor.next()
        body.push({ kind: 'text', text: value })
      } else if (cursor.skip('print start')) {
        body.push({ kind: 'output', value: this.#expressions.tuple(), line })
        cursor.expect('print end', '}}')
      } else if (cursor.skip('tag start')) {
        if (cursor.is('name') && ends.includes(cursor.token.value)) return body
        body.push(cursor.nested(() => this.#tag(owner, line)))
      } else if (ends.length === 0) return body
      else throw cursor.fault(`the tag '${owner}' is not closed, '${ends.at(-1)}' is missing`, ownerLine)
    }
  }

  #tag(owner: string, line: number): Statement {
    const { value } = this.cursor.expect('name')
    switch (value) {
      case 'if':
        return this.#if(line)
      case 'for':
        return this.#for(line)
      case 'set':
        return this.#set(line)
    }
    const reason = REFUSED.get(value)
    if (reason !== undefined) throw this.cursor.fault(`the tag '${value}' is not available: ${reason}`, line)
    if (/^(end|el)/.test(value)) {
      const place = owner === '' ? '' : ` inside '${owner}'`
      throw this.cursor.fault(`unexpected tag '${value}'${place}`, line)
    }
    throw this.cursor.fault(`unknown tag '${value}'`, line)
  }

  #end(): void {
    this.cursor.expect('tag end', '%}')
  }

  #if(line: number): Statement {
    const { cursor } = this
    const branches: (Statement & { kind: 'if' })['branches'] = []
    let branchLine = line
    for (;;) {
      const test = this.#expressions.tuple(false)
      this.#end()
      const body = this.#body(['elif', 'else', 'endif'], 'if', line)
      branches.push({ test, body, line: branchLine })
      branchLine = cursor.token.line
      if (cursor.skip('name', 'elif')) continue
      const otherwise = this.#otherwise('if', 'endif', line)
      return { kind: 'if', branches, otherwise }
    }
  }

  /** From `else` or the end tag's name to behind the end tag. */
  #otherwise(owner: string, end: string, line: number): Statement[] {
    let otherwise: Statement[] = []
    if (this.cursor.skip('name', 'else')) {
      this.#end()
      otherwise = this.#body([end], owner, line)
    }
    this.cursor.expect('name', end)
    this.#end()
    return otherwise
  }

  #for(line: number): Statement {
    const { cursor } = this
    const target = this.#target(false)
    cursor.expect('name', 'in')
    const iterable = this.#expressions.tuple(false)
    const test = cursor.skip('name', 'if') ? this.#expressions.expression() : null
    if (cursor.is('name', 'recursive')) throw cursor.fault('recursive loops are not available')
    this.#end()
    const body = this.#body(['else', 'endfor'], 'for', line)
    const otherwise = this.#otherwise('for', 'endfor', line)
    return { kind: 'for', target, iterable, test, body, otherwise, line }
  }

  #set(line: number): Statement {
    const { cursor } = this
    const target = this.#target(true)
    if (cursor.skip('operator', '=')) {
      const value = this.#expressions.tuple()
      this.#end()
      return { kind: 'set', target, value, line }
    }
    const filters: FilterCall[] = []
    while (cursor.skip('operator', '|')) filters.push(this.#expressions.filterCall())
    this.#end()
    const body = this.#body(['endset'], 'set', line)
    cursor.expect('name', 'endset')
    this.#end()
    return { kind: 'capture', target, filters, body, line }
  }

  /** `a`, `a, b`, `(a, (b, c))`; with `members` also `ns.a`. */
  #target(members: boolean): Target {
    const first = this.#oneTarget(members)
    if (!this.cursor.is('operator', ',')) return first
    const items = [first]
    while (this.cursor.skip('operator', ',')) {
      if (!this.cursor.is('name') && !this.cursor.is('operator', '(')) break
      if (this.cursor.is('name', 'in')) break
      items.push(this.#oneTarget(members))
    }
    return { kind: 'tuple', items }
  }

  #oneTarget(members: boolean): Target {
    const { cursor } = this
    if (cursor.skip('operator', '(')) {
      const inner = cursor.nested(() => this.#target(members))
      cursor.expect('operator', ')')
      return inner
    }
    const name = cursor.expect('name').value
    if (isConstantName(name)) throw cursor.fault(`'${name}' cannot be set`, cursor.before.line)
    if (!members || !cursor.skip('operator', '.')) return { kind: 'name', name }
    return { kind: 'member', name, field: cursor.expect('name').value }
  }
}
