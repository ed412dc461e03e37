import { test } from 'tap'
import {
  ITEMS_MAX,
  NESTING_MAX,
  NODES_MAX,
  OUTPUT_MAX_BYTES,
  SOURCE_MAX_LENGTH,
  STEPS_MAX,
  TEXT_MAX_LENGTH,
  VARIABLES_MAX_DEPTH,
  VARIABLES_MAX_LENGTH,
  VARIABLES_MAX_VALUES,
} from '../../../shared/templates/limits.js'
import { renderPrompt } from '../../../shared/templates/render.js'
import { compiled, parseRefusal, refusal, rendered, renderRefusal } from './rendering.js'

const nested = (depth: number) => {
  let value: unknown = 1
  for (let at = 0; at < depth; at++) value = [value]
  return value
}

test('a template of 64 KB is taken, a longer one is refused; text without tags has no such limit', async t => {
  const tag = '{{ x }}'
  t.equal(rendered(tag.padEnd(SOURCE_MAX_LENGTH, '.'), { x: 1 }).length, SOURCE_MAX_LENGTH - tag.length + 1)
  t.match(parseRefusal(tag.padEnd(SOURCE_MAX_LENGTH + 1, '.')).message, /longer than 65536 characters/)
  const text = '.'.repeat(900_000)
  t.equal(rendered(text), text)
})

test('nesting ends at 60 levels, of brackets, of tags and of both', async t => {
  const brackets = (depth: number) => `{{ ${'['.repeat(depth)}${']'.repeat(depth)} }}`
  const tags = (depth: number) => '{% if 1 %}'.repeat(depth) + '{% endif %}'.repeat(depth)
  t.ok(rendered(brackets(NESTING_MAX - 5)))
  t.equal(rendered(tags(NESTING_MAX - 5)), '')
  for (const template of [brackets(NESTING_MAX + 1), tags(NESTING_MAX + 1), `{{ ${'-'.repeat(100)}1 }}`]) {
    t.match(parseRefusal(template).message, /nested deeper than 60 levels/)
  }
  t.match(parseRefusal(`{{ a${'.b'.repeat(100)} }}`).message, /nested deeper than 60 levels/)
  t.match(parseRefusal(`{{ a${'|upper'.repeat(100)} }}`).message, /nested deeper than 60 levels/)
})

test('chains of operators and of elif do not nest', async t => {
  const names = Array.from({ length: 1_000 }, (_, at) => `"${at}"`)
  t.equal(rendered(`{{ ${names.join(' ~ ')} }}`).length, 2_890)
  t.equal(rendered(`{{ ${names.join(' == "x" or ')} }}`), '999')
  t.equal(rendered(`{{ ${'1+'.repeat(1_000)}1 }}`), '1001')
  const branches = names.map((name, at) => `{% ${at === 0 ? 'if' : 'elif'} x == ${name} %}${at}`)
  t.equal(rendered(`${branches.join('')}{% endif %}`, { x: '999' }), '999')
})

test('the messages of a prompt have at most 20,000 parts together', async t => {
  t.match(parseRefusal(`{{ [${'1,'.repeat(NODES_MAX + 1)}] }}`).message, /more than 20000 parts/)
  const many = '{{ a }}'.repeat(9_000)
  t.ok(compiled(many, many))
  const { message } = refusal(() => compiled(many, many, many))
  t.match(message, /^messages\.2\.content: .*more than 20000 parts/)
})

test('no prompt that a request can hold keeps the event loop busy with its compilation', async t => {
  const deep = `${'{% for a in b %}{% set x = 1 %}'.repeat(28)}${'{{x}}'.repeat(9_000)}${'{% endfor %}'.repeat(28)}`
  const wide = '{{a}}'.repeat(12_000)
  for (const message of [deep, wide]) {
    const before = process.cpuUsage()
    refusal(() => compiled(...Array<string>(16).fill(message)))
    const { user, system } = process.cpuUsage(before)
    t.ok((user + system) / 1_000 < 300, `${(user + system) / 1_000} ms of the processor`)
  }
})

test('a name has at most 64 characters', async t => {
  t.equal(rendered(`{{ ${'n'.repeat(64)} }}`, { ['n'.repeat(64)]: 1 }), '1')
  t.match(parseRefusal(`{{ ${'n'.repeat(65)} }}`).message, /longer than 64 characters/)
})

test('loops stop after 200,000 steps or 50 ms, whichever is first, and name the line', async t => {
  const loops = '\n{% for a in range(9000) %}{% for b in range(9000) %}{{ a }}{% endfor %}{% endfor %}'
  t.match(renderRefusal(loops), {
    code: 'TEMPLATE_RENDER_ERROR',
    message: /more than 200000 steps|longer than 50 ms|output is larger/,
  })
  t.equal(rendered('{% for a in range(9000) %}{% set b = a %}{% endfor %}'), '')
  t.ok(STEPS_MAX > 9_000)
})

test('the output of all messages together is at most 1 MB, counted in bytes', async t => {
  const half = 'x'.repeat(OUTPUT_MAX_BYTES / 2)
  const two = compiled('{{ x }}', '{{ x }}')
  t.equal(renderPrompt(two, { x: half }).length, 2)
  t.match(
    refusal(() => renderPrompt(two, { x: `${half}x` })).message,
    /^(messages\.1\.content: )?the output is larger than 1 MB/,
  )
  // 3 bytes a character.
  t.match(renderRefusal('{{ x }}', { x: '中'.repeat(400_000) }).message, /^the output is larger than 1 MB$/)
  t.match(refusal(() => renderPrompt(compiled('x'.repeat(2_000_000)), {})).message, /larger than 1 MB/)
})

test('a text on its way has at most 1 MB', async t => {
  t.match(
    renderRefusal(`{{ ("x" * ${TEXT_MAX_LENGTH + 1}) | length }}`).message,
    /a text is longer than 1048576/,
  )
  t.match(
    renderRefusal('{% set a = "xxxxxxxx" * 100000 %}{{ (a ~ a) | length }}').message,
    /a text is longer/,
  )
  t.match(renderRefusal('{{ "a" | center(2000000) | length }}').message, /a text is longer/)
})

test('a list or range has at most 10,000 items', async t => {
  t.equal(rendered(`{{ range(${ITEMS_MAX}) | length }}`), '10000')
  t.match(renderRefusal(`{{ range(${ITEMS_MAX + 1}) | length }}`).message, /longer than 10000 items/)
  t.match(renderRefusal('{{ ([0] * 10001) | length }}').message, /longer than 10000 items/)
  const list = Array.from({ length: ITEMS_MAX + 1 }, () => 0)
  t.match(renderRefusal('{% for x in l %}{% endfor %}', { l: list }).message, /longer than 10000 items/)
})

test('the variables that a prompt reads are at most 1 MB, 20,000 values and 32 levels', async t => {
  t.match(
    renderRefusal('{{ x | length }}', { x: 'x'.repeat(VARIABLES_MAX_LENGTH + 1) }).message,
    /^the variables are larger than 1048576 characters$/,
  )
  const values = Array.from({ length: VARIABLES_MAX_VALUES }, () => 0)
  t.match(renderRefusal('{{ x[0] }}', { x: values }).message, /^the variables hold more than 20000 values$/)
  t.equal(rendered('{{ x | length }}', { x: nested(VARIABLES_MAX_DEPTH) }), '1')
  t.match(
    renderRefusal('{{ x | length }}', { x: nested(VARIABLES_MAX_DEPTH + 1) }).message,
    /^the variable 'x' is nested deeper than 32 levels$/,
  )
  t.equal(rendered('{{ y }}', { x: nested(10_000), y: 1 }), '1')
})

test('a value that a template nests is printed and compared down to 60 levels', async t => {
  const nest = '{% set n = namespace(a=1) %}{% for i in range(61) %}{% set n.a = [n.a] %}{% endfor %}'
  for (const use of ['{{ n.a }}', '{{ n.a | tojson }}', '{{ n.a == [n.a][0:] }}{{ n.a | string }}']) {
    t.match(renderRefusal(nest + use).message, /nested deeper than 60 levels/)
  }
})

test('a long prompt of ordinary size is far from every limit', async t => {
  const documents = Array.from({ length: 200 }, (_, at) => ({ title: `T${at}`, text: 'word '.repeat(500) }))
  const template =
    '{% for d in docs %}[{{ loop.index }}] {{ d.title | upper }}: {{ d.text | trim | replace("word", "w") }}\n{% endfor %}'
  t.ok(rendered(template, { docs: documents }).length > 100_000)
  t.ok(rendered('{{ docs | tojson }}', { docs: documents }).length > 500_000)
})
