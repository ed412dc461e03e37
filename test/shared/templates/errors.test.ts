import { test } from 'tap'
import { compilePrompt, renderPrompt } from '../../../shared/templates/render.js'
import { compiled, parseRefusal, refusal, renderRefusal } from './rendering.js'

const parse = (detail: string) => ({
  code: 'TEMPLATE_PARSE_ERROR',
  message: `messages.0.content: ${detail}`,
})

test('a template that does not parse is refused with what is wrong and its line', async t => {
  const cases: [template: string, detail: string][] = [
    ['{{ x', '`{{` is not closed, `}}` is missing (line 1)'],
    ['a\nb {{ (x }}', 'unexpected `}`, expected `)` (line 2)'],
    ['a\n{% if x %}\nb', "the tag 'if' is not closed, 'endif' is missing (line 2)"],
    ['{% if x %}{% for y in z %}{% endif %}', "unexpected tag 'endif' inside 'for' (line 1)"],
    ['x\n\n{% endfor %}', "unexpected tag 'endfor' (line 3)"],
    ['{{ }}', 'expected an expression, found `}}` (line 1)'],
    ['{{ a b }}', "expected `}}`, found 'b' (line 1)"],
    ['{{ a + }}', 'expected an expression, found `}}` (line 1)'],
    ['{{ "abc }}', 'the string that starts with `"` is not closed (line 1)'],
    ['{{ a $ b }}', 'unexpected character `$` (line 1)'],
    ['{{ größe }}', 'unexpected character `ö` (line 1)'],
    ['a {# b', 'the comment is not closed, `#}` is missing (line 1)'],
    ['{% raw %}{{ x }}', '`{% raw %}` is not closed, `{% endraw %}` is missing (line 1)'],
    ['{% frobnicate %}', "unknown tag 'frobnicate' (line 1)"],
    ['{{ x | nope }}', "there is no filter 'nope' (line 1)"],
    ['{{ x is nope }}', "there is no test 'nope' (line 1)"],
    ['{{ x.nope() }}', "'nope' is not a method that templates have (line 1)"],
    ['{{ nope(x) }}', "'nope' is not a function that templates have (line 1)"],
    ['{{ x | upper(1) }}', "the filter 'upper' takes no arguments (line 1)"],
    ['{{ x | replace("a") }}', "the filter 'replace' needs its argument 'new' (line 1)"],
    ['{{ x | round(digits=1) }}', "the filter 'round' has no argument 'digits' (line 1)"],
    ['{% set true = 1 %}', "'true' cannot be set (line 1)"],
    ['{% for x of y %}', "expected `in`, found 'of' (line 1)"],
    ['\n\n{{ a\n| b }}', "there is no filter 'b' (line 3)"],
  ]
  for (const [template, detail] of cases) t.same(parseRefusal(template), parse(detail), template)
})

test('what templates do not have is refused with the reason', async t => {
  for (const tag of ['include "x"', 'import "x" as y', 'from "x" import y', 'extends "x"', 'block b']) {
    t.match(parseRefusal(`{% ${tag} %}`).message, /is not available: each message is a template of its own/)
  }
  for (const tag of ['macro m()', 'call m()', 'filter upper', 'with x = 1', 'do x']) {
    t.match(
      parseRefusal(`{% ${tag} %}`).message,
      /is not available: prompt templates have if, for, set and raw/,
    )
  }
  t.match(parseRefusal('{% for x in y recursive %}').message, /recursive loops are not available/)
})

test('the message that does not parse is named by its index', async t => {
  const messages = [
    { role: 'system', content: 'ok' },
    { role: 'user', content: '{{ x' },
  ]
  t.match(refusal(() => compilePrompt(messages)).message, /^messages\.1\.content: /)
})

test('a fault while rendering names the message, what is wrong and the line', async t => {
  const cases: [template: string, variables: Record<string, unknown>, detail: string][] = [
    ['a\n{{ x.y.z }}', { x: {} }, "'x.y' is undefined (line 2)"],
    ['{{ x["a"][0].b }}', { x: { a: [] } }, "'x['a'][0]' is undefined (line 1)"],
    ['{{ x + 1 }}', { x: 'a' }, 'str + int is not possible (line 1)'],
    ['{{ x < 1 }}', { x: 'a' }, 'str and int cannot be ordered (line 1)'],
    ['\n\n{{ 1 / x }}', { x: 0 }, 'division by zero (line 3)'],
    ['{% for a in x %}{% endfor %}', { x: 5 }, 'int cannot be walked through (line 1)'],
    ['{% for a, b in x %}{% endfor %}', { x: [[1]] }, '2 names cannot take 1 value(s) (line 1)'],
    ['{{ x.upper() }}', { x: 5 }, "int has no method 'upper' (line 1)"],
    ['{{ x | length }}', { x: 5 }, 'int has no length (line 1)'],
    ['{{ x | sort }}', { x: [1, 'a'] }, 'str and int cannot be ordered (line 1)'],
    ['{{ 1 in x }}', { x: null }, 'nothing can be in None (line 1)'],
    ['{% set x.a = 1 %}', { x: {} }, "'x' is not a namespace: only a namespace's fields can be set (line 1)"],
    ['{{ "%s %s" % x }}', { x: 'a' }, 'there are fewer values than places in the format (line 1)'],
    ['{{ x | map(y) }}', { x: [1], y: 'nope' }, "there is no filter 'nope' (line 1)"],
  ]
  for (const [template, variables, detail] of cases) {
    t.same(
      renderRefusal(template, variables),
      { code: 'TEMPLATE_RENDER_ERROR', message: `messages.0.content: ${detail}` },
      template,
    )
  }
})

test('a variable that is not JSON is refused', async t => {
  for (const x of [() => 1, new Date(), Symbol('x'), 1n, new Map(), { deep: [() => 1] }]) {
    t.match(renderRefusal('{{ x }}', { x }).message, /^the variable 'x' is not JSON$/)
  }
})

test('role and cache_control pass through, and only content is a template', async t => {
  const messages = [
    { role: '{{ role }}', content: '{{ x }}', cache_control: { type: 'ephemeral' as const } },
    { role: 'user', content: 'plain' },
  ]
  const prompt = compilePrompt(messages)
  t.same(prompt.variables, ['x'])
  t.same(renderPrompt(prompt, { x: 1 }), [{ ...messages[0], content: '1' }, messages[1]])
})

test('a rendered message may be changed without changing the prompt', async t => {
  const prompt = compiled('plain', '{{ x }}')
  for (const message of renderPrompt(prompt, { x: 1 })) message.content = 'changed'
  t.same(
    renderPrompt(prompt, { x: 2 }).map(({ content }) => content),
    ['plain', '2'],
  )
})
