import { test } from 'tap'
import { renderPrompt } from '../../../shared/templates/render.js'
import { compiled, refusal, rendered, renderedAsJinja } from './rendering.js'

const variablesOf = (...contents: string[]) => compiled(...contents).variables

test('variables are the names that the caller supplies, once each, in order of first appearance', async t => {
  t.same(variablesOf('{{ b }} {{ a }} {{ b }}', '{{ c }} {{ a }}'), ['b', 'a', 'c'])
  t.same(variablesOf('{{ x.y[z].w }} {{ a[b:c] }}'), ['x', 'z', 'a', 'b', 'c'])
  t.same(variablesOf('{{ yes if test else no }}'), ['yes', 'test', 'no'])
  t.same(variablesOf('{% if a and not b or c %}{{ d }}{% elif e in f %}{% else %}{{ g }}{% endif %}'), [
    'a',
    'b',
    'c',
    'd',
    'e',
    'f',
    'g',
  ])
  t.same(variablesOf('{{ a | replace(b, c) | join(d=e) }} {{ f is divisibleby g }} {{ h.get(i) }}'), [
    'a',
    'b',
    'c',
    'e',
    'f',
    'g',
    'h',
    'i',
  ])
  t.same(variablesOf('{{ [a, {b: c}] }} {{ -d + e ~ f }} {{ g < h }} {{ "%s" % i }}'), [...'abcdefghi'])
})

test('text without tags reads nothing', async t => {
  t.same(variablesOf('Hello', '{ x } %} }}', '{# {{ x }} #}', '{% raw %}{{ x }}{% endraw %}'), [])
})

test('a default lists both names', async t => {
  t.same(variablesOf('{{ x | default(y) }}'), ['x', 'y'])
})

test('a name bound by for or set is left out of that whole message, wherever it is read', async t => {
  t.same(variablesOf('{{ x }}{% for x in xs %}{{ x }}{% endfor %}{{ x }}'), ['xs'])
  t.same(variablesOf('{{ y }}{% if c %}{% set y = 1 %}{% endif %}'), ['c'])
  t.same(variablesOf('{% for a, (b, c) in rows %}{{ a }}{{ b }}{{ c }}{% endfor %}'), ['rows'])
  t.same(variablesOf('{% set a, b = pair %}{{ a }}{{ b }}'), ['pair'])
  t.same(variablesOf('{% set body %}{{ x }}{% endset %}{{ body }}'), ['x'])
  t.same(variablesOf('{% set ns = namespace(n=start) %}{% set ns.n = ns.n + step %}'), ['start', 'step'])
  t.same(variablesOf('{% set x = x or "plain" %}{{ x }}'), [])
})

test('a name bound in one message is still listed for another one', async t => {
  t.same(variablesOf('{% for x in xs %}{{ x }}{% endfor %}', '{{ x }}'), ['xs', 'x'])
  t.same(variablesOf('{% set lang = "en" %}{{ lang }}', '{{ lang }}'), ['lang'])
})

test('loop and the functions of templates are not variables', async t => {
  t.same(variablesOf('{% for i in range(n) %}{{ loop.index }}{% endfor %}'), ['n'])
  t.same(variablesOf('{{ dict(a=x) }}{{ namespace(b=y) }}'), ['x', 'y'])
})

test('a variable may be called like a function or like JavaScript’s own names', async t => {
  t.same(variablesOf('{{ dict.key }} {{ range }} {{ loop }}'), ['dict', 'range', 'loop'])
  const names = ['constructor', '__proto__', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', 'then']
  t.same(variablesOf(...names.map(name => `{{ ${name} }}`)), names)
  for (const name of names) {
    const { code, message } = refusal(() => rendered(`{{ ${name} }}`))
    t.same({ code, message }, { code: 'TEMPLATE_RENDER_ERROR', message: `Missing variables: ${name}.` })
    t.equal(rendered(`{{ ${name} }}`, JSON.parse(`{"${name}": "mine"}`)), 'mine')
  }
})

test('all missing variables are named in one error, in order', async t => {
  const prompt = compiled('{{ b }}{{ c }}', '{{ a }}{{ b }}')
  t.same(
    refusal(() => renderPrompt(prompt, { c: null })),
    { code: 'TEMPLATE_RENDER_ERROR', message: 'Missing variables: b, a.' },
  )
  t.same(
    refusal(() => renderPrompt(prompt, {})),
    { code: 'TEMPLATE_RENDER_ERROR', message: 'Missing variables: b, c, a.' },
  )
})

test('null is a value: it is supplied, and prints None', async t => {
  t.equal(rendered('{{ x }}', { x: null }), 'None')
})

test('an inherited property is not a supplied variable', async t => {
  t.match(
    refusal(() => renderPrompt(compiled('{{ x }}'), Object.create({ x: 1 }))),
    {
      message: 'Missing variables: x.',
    },
  )
})

test('a variable whose every read is guarded may be missing', async t => {
  const optional: [template: string, output: string][] = [
    ['{{ x | default("d") }}', 'd'],
    ['{{ x | d("d") | upper }}', 'D'],
    ['{{ (x) | default("d", true) }}', 'd'],
    ['{{ x is defined }} {{ x is undefined }} {{ x is not defined }}', 'False True True'],
    ['{% if x is defined %}{{ x }}{% else %}none{% endif %}', 'none'],
    ['{% if x is undefined %}none{% else %}{{ x }}{% endif %}', 'none'],
    ['{% if not x is defined %}none{% elif x.y %}{{ x }}{% endif %}', 'none'],
    ['{{ x.name if x is defined else "none" }}', 'none'],
    ['{{ "none" if x is not defined else x }}', 'none'],
    ['{{ x is defined and x.y }}', 'False'],
    ['{{ x is undefined or x > 1 }}', 'True'],
    ['{% if x is defined and y is defined %}{{ x }}{{ y }}{% endif %}', ''],
    ['{% for i in [1] if x is defined %}{{ x }}{% else %}none{% endfor %}', 'none'],
  ]
  for (const [template, output] of optional) {
    t.equal(rendered(template), output, template)
    t.equal(compiled(template).variables[0], 'x', template)
  }
})

test('one read without a guard makes a variable required', async t => {
  for (const template of [
    '{{ x | default("d") }}{{ x }}',
    '{% if x is defined %}{{ x }}{% endif %}{{ x }}',
    '{% if x %}{{ x }}{% endif %}',
    '{% if x is defined or y %}{{ x }}{% endif %}',
    '{{ x.y | default("d") }}',
    '{{ x | upper | default("d") }}',
    '{% if x is defined %}{% else %}{{ x }}{% endif %}',
    '{{ x is defined or x }}',
  ]) {
    t.match(refusal(() => rendered(template, { y: 1 })).message, /^Missing variables: x\.$/, template)
  }
  const prompt = compiled('{{ x | default("d") }}', '{{ x }}')
  t.equal(refusal(() => renderPrompt(prompt, {})).message, 'Missing variables: x.')
})

test('a name that a message binds itself reads the caller’s value until then, if there is one', async t => {
  t.equal(renderedAsJinja('[{{ x }}]{% set x = 1 %}[{{ x }}]', { x: 'mine' }), '[mine][1]')
  t.equal(rendered('[{{ x }}]{% set x = 1 %}[{{ x }}]'), '[][1]')
})

test('variables that no message reads are ignored', async t => {
  t.equal(rendered('{{ x }}', { x: 1, y: () => 1, z: new Date() }), '1')
})
