import type { Chance } from '../../faults/random.js'

const NAMES = [
  'a',
  'b',
  'l',
  'd',
  's',
  'constructor',
  '__proto__',
  'prototype',
  'toString',
  'valueOf',
  'loop',
].concat(
  [
    'range',
    'this',
    'env',
    'x"y',
    'a`b',
    'caller',
    'super',
    '$a',
    'é',
    'process',
    'globalThis',
    'hasOwnProperty',
  ],
  ['length', '0', 'items', 'keys', 'then', 'ns', 'self', 'namespace', 'dict', 'import', 'None', 'True'],
)
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
    'constructor',
    'sum',
  ],
  [
    '__proto__',
    'safe',
    'batch(3)',
    'map("x")',
    'map("upper")',
    'center(50)',
    'e',
    'urlencode',
    'unique',
    'title',
  ],
  [
    'round(2)',
    'dump',
    'groupby("c")',
    'select("odd")',
    'selectattr("c")',
    'slice(2)',
    'dictsort',
    'min',
    'max',
  ],
  [
    'format(a,b)',
    'wordcount',
    'striptags',
    'float',
    'string',
    'abs',
    'tojson(indent=2)',
    'map(attribute="a.b")',
  ],
)
const TESTS = [
  'defined',
  'string',
  'mapping',
  'callable',
  'even',
  'divisibleby(2)',
  'eq(1)',
  '__proto__',
].concat(['none', 'in l', 'not sameas a', 'upper', 'constructor', 'number', 'sequence', 'gt 1'])
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
  '__proto__',
  'call',
  'apply',
  'bind',
].concat([
  'format',
  'join',
  'startswith',
  'title',
  'cycle',
  'changed',
  'append',
  'constructor',
  'zfill',
  'find',
])
const PIECES = [
  '{% raw %}{{x}}{% endraw %}',
  '{# c #}',
  '{{',
  '}}',
  '{%',
  '%}',
  '{{-',
  '-}}',
  '{#',
  '{% else %}',
].concat(
  [
    '{% include "x" %}',
    '{% macro m() %}{% endmacro %}',
    '{% call x() %}{% endcall %}',
    '{% extends x %}',
    '{% endif %}',
  ],
  [
    '{% block b %}{% endblock %}',
    '{% import "a" as b %}',
    '{% endfor %}',
    '{% elif a %}',
    '\ud800',
    '\u2028',
    '\0',
  ],
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

/** A template, mostly one that parses, out of Jinja's grammar and what JavaScript and other templates would add. */
export class RandomTemplate {
  constructor(readonly chance: Chance) {}

  #pick<T>(items: readonly T[]): T {
    return items[this.chance.between(0, items.length - 1)] as T
  }

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
        return `{% set ${this.#pick(NAMES)} | upper %}${inner()}{% endset %}`
      case 8:
        return this.#pick(PIECES)
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
    if (depth <= 0) return this.#pick([this.#pick(NAMES), this.#pick(NAMES), this.#pick(ATOMS)])
    const inner = () => this.expression(depth - 1)
    switch (this.chance.between(0, 17)) {
      case 0:
        return `${inner()}.${this.#pick(NAMES)}`
      case 1:
        return `${inner()}[${inner()}]`
      case 2:
        return `${inner()}(${inner()})`
      case 3:
      case 4:
        return `${inner()}|${this.#pick(FILTERS)}`
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
        return `${inner()} is ${this.#pick(TESTS)}`
      case 13:
        return `not ${inner()}`
      case 14:
        return `${inner()}.${this.#pick(METHODS)}(${this.expression(0)})`
      case 15:
        return `${inner()}[${this.#pick(['1:', ':-1', '::-1', '::0', 'a:b', ':'])}]`
      default:
        return this.#pick(NAMES)
    }
  }
}
