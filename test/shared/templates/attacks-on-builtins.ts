import { type Attack, attack } from './attack.js'

const loop = (body: string) => `{% for i in range(9999) %}${body}{% endfor %}`
const keys = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at): [string, number] => [`k${at}`, at]))
const many = keys(20_000 - 10)
const names = Array.from({ length: 9_999 }, (_, at) => `k${at}`)
const long = 'a'.repeat(1_000_000)
const spaced = 'a '.repeat(500_000)

/** The second list: 47 attacks on single built-ins, on names of Object.prototype, on shadowing and unpacking. */
export const attacksOnBuiltins: Attack[] = [
  attack('get of __proto__', '{{ d.get("__proto__") }}{{ d.get("constructor")|tojson }}', { d: { x: 1 } }),
  attack('computed __proto__', '{{ d[k]|tojson }}{{ d["__pro"~"to__"]|tojson }}', { d: {}, k: '__proto__' }),
  attack('constructor of a length', '{{ x.length.constructor }}', { x: 'a' }),
  attack('constructor of items', '{{ d.items()["constructor"] }}', { d: { a: 1 } }),
  attack('__proto__ of loop', '{% for x in [1] %}{{ loop.__proto__ }}{% endfor %}'),
  attack('computed __proto__ of loop', '{% for x in [1] %}{{ loop["__proto__"~""]|tojson }}{% endfor %}'),
  attack('shadowed range', '{% set range=1 %}{{ range(3)|tojson }}'),
  attack('method of a function', '{{ range.items() }}'),
  attack('computed method', '{{ d["items"]() }}', { d: { a: 1 } }),
  attack('hasOwnProperty', '{{ d.hasOwnProperty("a") }}', { d: {} }),
  attack('__proto__ called', '{{ d.__proto__() }}', { d: {} }),
  attack('filter __proto__', '{{ 1|__proto__ }}'),
  attack('filter constructor', '{{ 1|constructor }}'),
  attack('filter toString', '{{ 1|toString }}'),
  attack('test __proto__', '{{ 1 is __proto__ }}'),
  attack('test constructor', '{{ 1 is constructor }}'),
  attack('test valueOf', '{{ 1 is valueOf(2) }}'),
  attack('filter by a computed name', '{{ [1]|map(k)|list }}', { k: 'constructor' }),
  attack('loop named loop', '{% for loop in [1,2] %}{{ loop }}{% endfor %}'),
  attack('three names for one', '{% for a,b,c in [[1,2,3],[4]] %}{{a}}{{b}}{{c}}{% endfor %}'),
  attack('text unpacked', '{% for a,b in ["xy"] %}{{a}}{{b}}{% endfor %}'),
  attack('dicts ordered', '{{ {"a":1} < {"b":2} }}{{ [] == [] }}'),
  attack('not a number', '{{ (0/0)|round }}{{ 1/0 }}{{ -(0) }}'),
  attack('list times number', '{% set a=[1]*2 %}'),
  attack('list that grows', `{% set a=range(9999)|list %}${loop('{% set b=a+[1] %}')}`),
  attack('split', loop('{% set x=s.split("b") %}'), { s: long }),
  attack('replace', loop('{% set x=s|replace("b","c") %}'), { s: long }),
  attack('trim', loop('{% set x=s|trim %}'), { s: ' '.repeat(1_000_000) }),
  attack('title', loop('{% set x=s|title %}'), { s: spaced }),
  attack('wordcount', loop('{% set x=s|wordcount %}'), { s: spaced }),
  attack('urlencode', loop('{% set x=s|urlencode %}'), { s: 'é '.repeat(300_000) }),
  attack('startswith', loop('{% set x=s.startswith(s) %}'), { s: spaced }),
  attack('in text', loop('{% if "b" in s %}{% endif %}'), { s: long }),
  attack('equal texts', loop('{% if s == t %}{% endif %}'), {
    s: 'a'.repeat(500_000),
    t: `${'a'.repeat(499_999)}b`,
  }),
  attack('unique', loop('{% set x=l|unique %}'), { l: names }),
  attack('reverse', loop('{% set x=s|reverse %}'), { s: 'é'.repeat(300_000) }),
  attack('keys', loop('{% set x=d.keys() %}'), { d: many }),
  attack('truth of a dict', loop('{% if d %}{% endif %}'), { d: many }),
  attack('length of a dict', loop('{{ d|length }}'), { d: many }),
  attack('dictsort', loop('{% set x=d|dictsort %}'), { d: many }),
  attack('sum of lists', '{{ l|sum }}', { l: ['a', {}] }),
  attack('huge numbers', '{{ "9"|int|round(15) }}{{ "1e999"|float }}'),
  attack('object with toString', '{{ "x"~d }}', { d: { toString: 'x', valueOf: 'y' } }),
  attack('lone surrogate', '{{ "\ud800"|urlencode }}'),
  attack('join by __proto__', '{{ [d]|join(",","__proto__") }}', { d: {} }),
  attack('two names for a number', '{% set a,b = 1 %}{{a}}{{b}}'),
  attack(
    'own __proto__ printed',
    '{{ d|tojson }}{{ d.__proto__ }}',
    JSON.parse('{"d":{"__proto__":{"a":1},"b":2}}'),
  ),
]

/** Found while building: each cost more than a second, or reached a prototype, in some version of this code. */
export const attacksFoundLater: Attack[] = [
  attack('needle that V8 searches in quadratic time', '{{ s in t }}{{ t|replace(s, "") }}{{ t.count(s) }}', {
    s: `${'a'.repeat(5_000)}b${'a'.repeat(5_000)}`,
    t: long.slice(0, 900_000),
  }),
  attack('needle searched backwards', '{{ t.rfind(s) }}{{ t.rsplit(s, 1) }}', {
    s: `${'a'.repeat(5_000)}b`,
    t: long.slice(0, 900_000),
  }),
  attack('every needle in every text', loop('{% set x=t.find(s) %}'), {
    s: `${'a'.repeat(150)}b`,
    t: long.slice(0, 900_000),
  }),
  attack('name of a prototype’s method as a bracket', '{{ constructor }}{{ toString }}', {
    constructor: 1,
    toString: 2,
  }),
  attack(
    'lists within lists by a namespace',
    `{% set n=namespace(a=[]) %}${loop('{% set n.a=[n.a] %}')}{{ n.a }}`,
  ),
  attack(
    'equal lists of lists of the same list',
    `{% set a=[1] %}{% set b=[1] %}${'{% set a=[a,a] %}{% set b=[b,b] %}'.repeat(40)}{{ a == b }}`,
  ),
  attack(
    'namespace within itself',
    '{% set n=namespace() %}{% set n.a=[n] %}{{ n }}{{ n == n }}{{ n|tojson }}',
  ),
  attack('wide formats', '{{ "%1000000s" % 1 }}{{ "{:>1000000}".format(1) }}{{ "%.99f" % 1e300 }}'),
  attack('many wide formats', loop('{% set x="%100000s" % i %}')),
  attack('all names of a long text', loop('{% set x=s.splitlines() %}'), { s: '\n'.repeat(900_000) }),
  attack('deep groups', `{{ ${'('.repeat(58)}1${')'.repeat(58)} }}`),
  attack('long number', `{{ ${'9'.repeat(60_000)} }}{{ "${'9'.repeat(1_000)}"|int }}`),
  attack('case changes that grow', '{{ s|upper|length }}', { s: 'ß'.repeat(1_000_000) }),
  attack('escapes that grow', '{{ s|e|e|e }}{{ s|tojson }}', { s: '"'.repeat(1_000_000) }),
  attack('product of loops by select', loop('{% set x=l|select("in", l) %}'), { l: names }),
  attack('groups of groups', loop('{% set x=l|groupby(0) %}'), { l: names }),
]
