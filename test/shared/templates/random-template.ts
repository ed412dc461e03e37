import type { Chance } from '../../faults/random.js'

const NAMES = [
  'a',
  'b',
  'l',
  'd',
  's',
  'missing',
  'constructor',
  '__proto__',
  'prototype',
  'toString',
  'valueOf',
].concat([
  'loop',
  'this',
  'env',
  'process',
  'globalThis',
  'hasOwnProperty',
  'length',
  'items',
  'keys',
  'then',
  'ns',
  'self',
])
const STRANGE_NAMES = [
  'x"y',
  'a`b',
  '$a',
  'é',
  '0',
  'None',
  'not',
  'range',
  'import',
  'a\u2028b',
  'n'.repeat(65),
]
const FILTERS = [
  'upper',
  'lower',
  'default("x")',
  'length',
  'join(",")',
  'first',
  'last',
  'replace("a","b")',
].concat(
  [
    'tojson',
    'int',
    'sort',
    'reverse',
    'list',
    'indent(2)',
    'truncate(3)',
    'items',
    'trim',
    'sum',
    'safe',
    'batch(3)',
  ],
  [
    'map("x")',
    'map("upper")',
    'center(50)',
    'e',
    'urlencode',
    'unique',
    'title',
    'round(2)',
    'groupby("c")',
    'min',
  ],
  [
    'select("odd")',
    'selectattr("c")',
    'slice(2)',
    'dictsort',
    'max',
    'format(a,b)',
    'wordcount',
    'striptags',
  ],
  [
    'float',
    'string',
    'abs',
    'tojson(indent=2)',
    'map(attribute="a.b")',
    'map("constructor")',
    'd(a)',
    'count',
  ],
)
const STRANGE_FILTERS = [
  'constructor',
  '__proto__',
  'toString',
  'dump',
  'upper(1)',
  'nope',
  'join(x=1)',
  'random',
]
const TESTS = [
  'defined',
  'string',
  'mapping',
  'callable',
  'even',
  'divisibleby(2)',
  'eq(1)',
  'none',
  'in l',
].concat(['not sameas a', 'upper', 'number', 'sequence', 'gt 1', 'undefined', 'not none'])
const STRANGE_TESTS = ['__proto__', 'constructor', 'valueOf(2)', 'in', 'even(1)']
const OPERATORS = [
  '+',
  '-',
  '*',
  '/',
  '//',
  '%',
  '**',
  '~',
  '==',
  '!=',
  '<',
  '>=',
  'and',
  'or',
  'in',
  'not in',
]
const METHODS = [
  'items',
  'keys',
  'get',
  'upper',
  'split',
  'replace',
  'format',
  'join',
  'startswith',
  'title',
].concat(['cycle', 'changed', 'zfill', 'find', 'strip', 'count', 'index'])
const STRANGE_METHODS = [
  '__proto__',
  'call',
  'apply',
  'bind',
  'append',
  'constructor',
  'toString',
  'pop',
  'update',
]
const PIECES = [
  '{% raw %}{{x}}{% endraw %}',
  '{# c #}',
  '}}',
  '%}',
  '{',
  ' {#- c -#} ',
  '\ud800',
  '\u2028',
  '\0',
]
const STRANGE_PIECES = [
  '{{',
  '{%',
  '{{-',
  '-}}',
  '{#',
  '{% else %}',
  '{% include "x" %}',
  '{% extends x %}',
].concat(
  [
    '{% macro m() %}{% endmacro %}',
    '{% call x() %}{% endcall %}',
    '{% endif %}',
    '{% block b %}{% endblock %}',
  ],
  ['{% import "a" as b %}', '{% endfor %}', '{% elif a %}'],
)
const ATOMS = [
  '1',
  '"str"',
  "'q'",
  'true',
  'none',
  '[]',
  '{}',
  '-1',
  '1.5',
  '""',
  '()',
  '1e308',
  '"%s"',
  '"{}"',
  '10**9',
]
/** One pick in so many is something that templates refuse; most templates should parse all the same. */
const STRANGE_EVERY = 60

/** A template, mostly one that parses, out of Jinja's grammar and what JavaScript and other templates would add. */
export class RandomTemplate {
  constructor(readonly chance: Chance) {}

  #pick<T>(items: readonly T[]): T {
    return items[this.chance.between(0, items.length - 1)] as T
  }

  #maybe(ordinary: readonly string[], strange: readonly string[]): string {
    return this.#pick(this.chance.between(1, STRANGE_EVERY) === 1 ? strange : ordinary)
  }

  #name = () => this.#maybe(NAMES, STRANGE_NAMES)

  text(depth: number): string {
    let out = ''
    for (let left = this.chance.between(1, 4); left > 0; left--) out += this.#piece(depth)
    return out
  }

  #piece(depth: number): string {
    const inner = () => (depth > 0 ? this.text(depth - 1) : 'x')
    switch (this.chance.between(0, 9)) {
      case 0:
        return 'text '
      case 1:
      case 2:
      case 3:
        return `{{ ${this.expression(3)} }}`
      case 4:
        return `{% if ${this.expression(2)} %}${inner()}{% elif ${this.expression(1)} %}${inner()}{% endif %}`
      case 5:
        return `{% for ${this.#target()} in ${this.expression(2)} %}${inner()}{% else %}${inner()}{% endfor %}`
      case 6:
        return `{% set ${this.#target()} = ${this.expression(2)} %}`
      case 7:
        return `{% set ${this.#name()} | upper %}${inner()}{% endset %}`
      case 8:
        return this.#maybe(PIECES, STRANGE_PIECES)
      default:
        return String.fromCharCode(this.chance.between(32, 122))
    }
  }

  #target(): string {
    return this.#pick([
      'x',
      'x, y',
      'a',
      'loop',
      '__proto__',
      'x"y',
      'constructor',
      'ns.a',
      '(a, b), c',
      'range',
    ])
  }

  expression(depth: number): string {
    if (depth <= 0) return this.#pick([this.#name(), this.#name(), this.#pick(ATOMS)])
    const inner = () => this.expression(depth - 1)
    switch (this.chance.between(0, 17)) {
      case 0:
        return `${inner()}.${this.#name()}`
      case 1:
        return `${inner()}[${inner()}]`
      case 2:
        return this.#maybe([`(${inner()})`], [`${inner()}(${inner()})`])
      case 3:
      case 4:
        return `${inner()}|${this.#maybe(FILTERS, STRANGE_FILTERS)}`
      case 5:
        return `(${inner()})`
      case 6:
      case 7:
        return `${inner()} ${this.#pick(OPERATORS)} ${inner()}`
      case 8:
        return `${inner()} if ${inner()} else ${inner()}`
      case 9:
        return `[${inner()}, ${inner()}]`
      case 10:
        return `{${this.#pick(['"k"', 'a', '"__proto__"', 'constructor', '1'])}: ${inner()}}`
      case 11:
        return `range(${this.#pick(['3', '10', '100000', '-5', '1,9,0', '0,1e9', 'l', '9000'])})`
      case 12:
        return `${inner()} is ${this.#maybe(TESTS, STRANGE_TESTS)}`
      case 13:
        return `not ${inner()}`
      case 14:
        return `${inner()}.${this.#maybe(METHODS, STRANGE_METHODS)}(${this.expression(0)})`
      case 15:
        return `${inner()}[${this.#pick(['1:', ':-1', '::-1', '::0', 'a:b', ':'])}]`
      default:
        return this.#name()
    }
  }
}
