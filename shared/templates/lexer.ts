import { ParseFault } from './fault.js'
import { NAME_MAX_LENGTH } from './limits.js'

export interface Token {
  type:
    | 'text'
    | 'print start'
    | 'print end'
    | 'tag start'
    | 'tag end'
    | 'name'
    | 'string'
    | 'integer'
    | 'float'
    | 'operator'
    | 'end of template'
  /** Decoded for strings; digits without `_` for numbers. */
  value: string
  /** From 1. */
  line: number
}

// All sticky and without nested repetition, so that each is linear.
const SPACE = /\s+/y
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y
// `x.0.1` is two subscripts.
const FLOAT = /(?<!\.)\d[\d_]*(?:\.\d[\d_]*(?:[eE][+-]?\d+)?|[eE][+-]?\d+)/y
const INTEGER = /0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|\d[\d_]*/y
const STRING = /'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y
const OPERATOR = /\*\*|\/\/|==|!=|<=|>=|[-+*/%~<>=()[\]{}|,.:]/y
const TAG_START = /\{[{%#]/g
/** The rest of `{% raw %}`, from behind `{%`. */
const RAW = /[-+]?\s*raw\s*(-?)%\}/y
const END_RAW = /\{%([-+]?)\s*endraw\s*([-+]?)%\}/g

// A map, not an object: it is asked for names too, and `constructor` is one.
const CLOSING = new Map([
  ['(', ')'],
  ['[', ']'],
  ['{', '}'],
])

/** Whether the text holds anything but text: a template without tags is its own output. */
export const hasTags = (source: string) => /\{[{%#]/.test(source)

/**
 * Jinja's lexer with its defaults: `-` next to a tag strips white space, `+` is accepted, blocks are not trimmed.
 * Unlike Jinja's, it leaves text alone: a trailing newline is kept and CRLF stays, because a message is what its author
 * wrote. @throws ParseFault
 */
export function tokenize(source: string): Token[] {
  return new Lexer(source).all()
}

class Lexer {
  readonly #tokens: Token[] = []
  #at = 0
  #line = 1
  /** Set by `-%}`: the next text loses its leading white space. */
  #stripNext = false

  constructor(readonly source: string) {}

  all(): Token[] {
    const { source } = this
    while (this.#at < source.length) {
      TAG_START.lastIndex = this.#at
      const found = TAG_START.exec(source)
      const start = found === null ? source.length : found.index
      this.#text(source.slice(this.#at, start), source[start + 2] === '-')
      this.#move(start)
      if (found !== null) this.#tag(found[0])
    }
    this.#push('end of template', '')
    return this.#tokens
  }

  #text(raw: string, stripEnd: boolean): void {
    let text = raw
    if (this.#stripNext) text = text.trimStart()
    if (stripEnd) text = text.trimEnd()
    this.#stripNext = false
    if (text !== '') this.#push('text', text)
  }

  #tag(opening: string): void {
    if (opening === '{#') {
      this.#comment()
      return
    }
    if (opening === '{%' && this.#raw()) return
    const line = this.#line
    this.#push(opening === '{{' ? 'print start' : 'tag start', opening)
    const sign = this.source[this.#at + 2]
    this.#move(this.#at + (sign === '-' || sign === '+' ? 3 : 2))
    this.#code(opening === '{{' ? '}}' : '%}', line)
  }

  #comment(): void {
    const end = this.source.indexOf('#}', this.#at + 2)
    if (end < 0) throw new ParseFault('the comment is not closed, `#}` is missing', this.#line)
    this.#stripNext = this.source[end - 1] === '-'
    this.#move(end + 2)
  }

  #raw(): boolean {
    RAW.lastIndex = this.#at + 2
    const opening = RAW.exec(this.source)
    if (opening === null) return false
    const line = this.#line
    this.#stripNext = opening[1] === '-'
    END_RAW.lastIndex = RAW.lastIndex
    const closing = END_RAW.exec(this.source)
    if (closing === null) throw new ParseFault('`{% raw %}` is not closed, `{% endraw %}` is missing', line)
    this.#move(RAW.lastIndex)
    this.#text(this.source.slice(this.#at, closing.index), closing[1] === '-')
    this.#stripNext = closing[2] === '-'
    this.#move(END_RAW.lastIndex)
    return true
  }

  /** The tokens between `{{` and `}}` or `{%` and `%}`; an end inside brackets (`{{ {'a': {}} }}`) is not one. */
  #code(end: string, startLine: number): void {
    const { source } = this
    const open: string[] = []
    while (this.#at < source.length) {
      SPACE.lastIndex = this.#at
      if (SPACE.test(source)) this.#move(SPACE.lastIndex)
      if (open.length === 0 && this.#end(end)) return
      if (this.#at < source.length) this.#word(open)
    }
    const inner = open.at(-1)
    const missing = inner === undefined ? end : inner
    throw new ParseFault(
      `\`${end === '}}' ? '{{' : '{%'}\` is not closed, \`${missing}\` is missing`,
      startLine,
    )
  }

  #end(end: string): boolean {
    const { source } = this
    const sign = source[this.#at] === '-' || (source[this.#at] === '+' && end === '%}') ? 1 : 0
    if (!source.startsWith(end, this.#at + sign)) return false
    this.#push(end === '}}' ? 'print end' : 'tag end', end)
    this.#stripNext = source[this.#at] === '-'
    this.#move(this.#at + sign + end.length)
    return true
  }

  #word(open: string[]): void {
    const text =
      this.#take('name', NAME) ??
      this.#take('float', FLOAT) ??
      this.#take('integer', INTEGER) ??
      this.#take('string', STRING) ??
      this.#take('operator', OPERATOR)
    if (text === null) throw new ParseFault(this.#strange(), this.#line)
    const closing = CLOSING.get(text)
    if (closing !== undefined) open.push(closing)
    else if (text === ')' || text === ']' || text === '}') {
      const expected = open.pop()
      if (expected === undefined) throw new ParseFault(`unexpected \`${text}\``, this.#line)
      if (expected !== text)
        throw new ParseFault(`unexpected \`${text}\`, expected \`${expected}\``, this.#line)
    }
  }

  #take(type: Token['type'], pattern: RegExp): string | null {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.source)
    if (found === null) return null
    const [text] = found
    if (type === 'name' && text.length > NAME_MAX_LENGTH) {
      throw new ParseFault(`a name is longer than ${NAME_MAX_LENGTH} characters`, this.#line)
    }
    if (type === 'string') this.#push(type, decoded(text))
    else this.#push(type, type === 'integer' || type === 'float' ? text.replaceAll('_', '') : text)
    this.#move(pattern.lastIndex)
    return text
  }

  #strange(): string {
    const found = String.fromCodePoint(this.source.codePointAt(this.#at) ?? 0)
    if (found === '"' || found === "'") return `the string that starts with \`${found}\` is not closed`
    return `unexpected character \`${found}\``
  }

  #push(type: Token['type'], value: string): void {
    this.#tokens.push({ type, value, line: this.#line })
  }

  #move(to: number): void {
    for (let at = this.#nextBreak(this.#at); at < to; at = this.#nextBreak(at + 1)) this.#line++
    this.#at = to
  }

  /** Kept between calls: looking for the next line break from every token would be quadratic in a long last line. */
  #break = -1

  #nextBreak(from: number): number {
    if (this.#break >= from) return this.#break
    const found = this.source.indexOf('\n', from)
    this.#break = found < 0 ? Number.POSITIVE_INFINITY : found
    return this.#break
  }
}

const ESCAPE = /\\(?:\n|x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[0-7]{1,3}|[\s\S])/g
const SINGLE: Record<string, string> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '\n': '',
}

/** Python's escapes; one that Python does not know keeps its backslash. */
function decoded(literal: string): string {
  const inner = literal.slice(1, -1)
  if (!inner.includes('\\')) return inner
  return inner.replace(ESCAPE, sequence => {
    const rest = sequence.slice(1)
    const single = SINGLE[rest]
    if (single !== undefined) return single
    if (/^[0-7]/.test(rest)) return String.fromCharCode(Number.parseInt(rest, 8))
    if (rest.length === 1) return sequence
    const code = Number.parseInt(rest.slice(1), 16)
    return code > 0x10ffff ? sequence : String.fromCodePoint(code)
  })
}
