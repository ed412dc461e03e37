import t from 'tap'
import { fillTemplate, parseTemplate } from '../../../control-plane/tools/template-references.js'

t.test('references are told from text', async t => {
  t.same(parseTemplate('a {{arg.city}}/{{secret.KEY}}', 'f'), [
    { kind: 'text', text: 'a ' },
    { kind: 'arg', name: 'city' },
    { kind: 'text', text: '/' },
    { kind: 'secret', name: 'KEY' },
  ])
  t.same(parseTemplate('', 'f'), [])
  t.same(parseTemplate('{ } }} {a}', 'f'), [{ kind: 'text', text: '{ } }} {a}' }])
  t.same(parseTemplate('{{ arg.user_id }}{{arg.user-id}}{{arg.$ref}}', 'f'), [
    { kind: 'arg', name: 'user_id' },
    { kind: 'arg', name: 'user-id' },
    { kind: 'arg', name: '$ref' },
  ])
})

t.test('any other reference is refused and shown', async t => {
  for (const bad of [
    '{{city}}',
    '{{env.HOME}}',
    '{{args.city}}',
    '{{arg}}',
    '{{arg.}}',
    '{{arg.a.b}}',
    '{{secret.KEY|upper}}',
    '{{secret[KEY]}}',
    '{{}}',
    '{{ARG.city}}',
  ]) {
    t.throws(() => parseTemplate(`x${bad}y`, 'executor.url'), {
      code: 'VALIDATION_ERROR',
      message: `executor.url: '${bad}' is not a reference; use {{arg.NAME}} or {{secret.NAME}}.`,
    })
  }
  for (const bad of ['{{arg.city', '{{{arg.city}}', '{{arg.a{{arg.b}}']) {
    t.throws(() => parseTemplate(bad, 'f'), { code: 'VALIDATION_ERROR' }, bad)
  }
})

t.test('a long text with many braces is read at once', async t => {
  const before = performance.now()
  t.throws(() => parseTemplate('{{arg.a}}'.repeat(100_000) + '{{arg.'.repeat(10), 'f'))
  t.throws(() => parseTemplate(`{{${' '.repeat(100_000)}`, 'f'))
  t.throws(() => parseTemplate(`{{arg.${'a'.repeat(200_000)}`, 'f'))
  t.ok(performance.now() - before < 5_000)
})

t.test('a filled template holds what was given, and nothing in it is read again', async t => {
  const parts = parseTemplate('{{arg.a}}-{{secret.B}}', 'f')
  t.equal(
    fillTemplate(parts, ({ kind, name }) => (kind === 'arg' ? '{{secret.B}}' : name)),
    '{{secret.B}}-B',
  )
})
