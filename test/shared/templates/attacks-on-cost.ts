import { type Attack, attack } from './attack.js'

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at)
const nestedObject = (depth: number) => numbers(depth).reduce<object>(inner => ({ a: inner }), {})
const each = (body: string) => `{% for x in l %}${body}{% endfor %}`

/** 41 templates that want time, memory or the stack (reliability, appendix C, DoS). */
export const attacksOnCost: Attack[] = [
  attack('range of a billion', '{{ range(1000000000)|length }}'),
  attack('range with a step of nothing', '{{ range(0,10,-0)|length }}{{ range(10,0,0.0000001)|length }}'),
  attack('range with a tiny step', '{% for i in range(0,1,1e-9) %}{% endfor %}'),
  attack(
    'three nested loops',
    `${'abc'.replace(/./g, '{% for $& in range(9000) %}')}${'{% endfor %}'.repeat(3)}`,
  ),
  attack(
    'nested output',
    `{% for a in range(9000) %}{% for b in range(9000) %}${'x'.repeat(20)}{% endfor %}{% endfor %}`,
  ),
  attack(
    'text doubled in a loop',
    '{% set a="xxxxxxxxxx" %}{% for i in range(60) %}{% set a=a~a %}{% endfor %}{{ a|length }}',
  ),
  attack('text doubled', `{% set a="xxxxxxxxxx" %}${'{% set a=a~a %}'.repeat(40)}{{ a|upper|length }}`),
  attack('lists doubled', `{% set a=[1,2,3,4] %}${'{% set a=[a,a,a,a] %}'.repeat(15)}{{ a|tojson }}`),
  attack(
    'captures doubled',
    `{% set a %}${'x'.repeat(16)}{% endset %}${'{% set a %}{{ a }}{{ a }}{% endset %}'.repeat(40)}{{ a }}`,
  ),
  attack('center', '{{ "x"|center(1000000000)|length }}'),
  attack('indent', '{{ "a\\nb"|indent(100000000)|length }}'),
  attack('replace that grows', '{% set s="a"|center(100000) %}{{ s|replace("",s)|length }}'),
  attack('batch', '{{ [1]|batch(1000000000,"x")|length }}'),
  attack('slice', '{{ [1]|slice(100000000)|length }}'),
  attack('macro that calls itself', '{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}'),
  attack(
    'macro that fans out',
    '{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(40) }}',
  ),
  attack('regular expression', `{{ "${'a'.repeat(36)}!"|replace(r/(a+)+$/,"") }}`),
  attack('regular expression tested', `{{ r/(a+)+$/.test("${'a'.repeat(39)}!") }}`),
  attack('trim', '{{ s|trim|length }}', { s: `a${' '.repeat(200_000)}b` }),
  attack('striptags', '{{ s|striptags|length }}', { s: '<!--'.repeat(60_000) }),
  attack('urlize', '{{ s|urlize|length }}', { s: `www.${'a'.repeat(100_000)}` }),
  attack('powers', '{{ 10**308*10 }}{{ 2**1000 }}'),
  attack('nested parentheses', `{{ ${'('.repeat(20_000)}1${')'.repeat(20_000)} }}`),
  attack('nested lists', `{{ ${'['.repeat(20_000)}${']'.repeat(20_000)} }}`),
  attack('nested ifs', '{% if 1 %}'.repeat(5_000) + '{% endif %}'.repeat(5_000)),
  attack('nots', `{{ ${'not '.repeat(50_000)}1 }}`),
  attack('long sum', `{{ 1${'+1'.repeat(60_000)} }}`),
  attack('long path', `{{ a${'.b'.repeat(50_000)} }}`, { a: {} }),
  attack('long chain of filters', `{{ 1${'|abs'.repeat(30_000)} }}`),
  attack('many tags', '{{a}}'.repeat(45_000), { a: 1 }),
  attack('large source', 'x'.repeat(5_000_000)),
  attack('white space', `{{ ${' '.repeat(250_000)}1 }}`),
  attack('string that is not closed', `{{ "${'\\\\'.repeat(120_000)}`),
  attack('tags that are not closed', '{{ a '.repeat(60_000)),
  attack('comments that are not closed', '{#'.repeat(120_000)),
  attack('deep variable', '{{ o|tojson|length }}', { o: nestedObject(5_000) }),
  attack('join in a loop', each("{{ l|join(',')|length }}"), { l: numbers(5_000).map(at => `v${at}`) }),
  attack('in inside a loop', each('{% if x in l %}{% endif %}'), { l: numbers(9_000) }),
  attack('sort in a loop', each('{{ l|sort|length }}'), { l: numbers(9_000).reverse() }),
  attack('upper in a loop', '{% for x in range(9000) %}{% set y=s|upper %}{% endfor %}', {
    s: 'é'.repeat(500_000),
  }),
  attack('tojson in a loop', '{% for x in range(9000) %}{% set y=l|tojson %}{% endfor %}', {
    l: numbers(9_000),
  }),
]
