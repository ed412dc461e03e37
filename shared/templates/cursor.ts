import { ParseFault } from './fault.js'
import type { Token } from './lexer.js'
import { NESTING_MAX } from './limits.js'

/** The tokens of a message and how far they are read. */
export class Cursor {
  #at = 0
  #nesting = 0

  constructor(readonly tokens: readonly Token[]) {}

  get token(): Token {
    return this.tokens[this.#at] as Token
  }

  get after(): Token {
    return (this.tokens[this.#at + 1] ?? this.token) as Token
  }

  /** The token read last. */
  get before(): Token {
    return (this.tokens[this.#at - 1] ?? this.token) as Token
  }

  next(): Token {
    const { token } = this
    if (token.type !== 'end of template') this.#at++
    return token
  }

  is(type: Token['type'], value?: string): boolean {
    const { token } = this
    return token.type === type && (value === undefined || token.value === value)
  }

  skip(type: Token['type'], value?: string): boolean {
    if (!this.is(type, value)) return false
    this.next()
    return true
  }

  expect(type: Token['type'], value?: string): Token {
    if (this.is(type, value)) return this.next()
    throw this.fault(`expected ${value === undefined ? `a ${type}` : `\`${value}\``}, found ${this.found()}`)
  }

  /** The token that comes next, in words. */
  found(): string {
    const { type, value } = this.token
    if (type === 'end of template') return 'the end of the template'
    if (type === 'print end' || type === 'tag end' || type === 'operator') return `\`${value}\``
    if (type === 'name') return `'${value}'`
    return type === 'string' ? 'a string' : type === 'text' ? 'text' : `${value}`
  }

  fault(detail: string, line = this.token.line): ParseFault {
    return new ParseFault(detail, line)
  }

  /** Every recursion of the parsers goes through here, so that no template reaches the stack's end. */
  nested<T>(parse: () => T): T {
    if (this.#nesting >= NESTING_MAX) {
      throw this.fault(`tags and brackets are nested deeper than ${NESTING_MAX} levels`)
    }
    this.#nesting++
    const parsed = parse()
    this.#nesting--
    return parsed
  }
}
