/**
 * A table of templates with what Jinja's documentation says they print; every row was checked against Jinja 3.1.6 with
 * its default settings, except that the trailing newline is kept.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { renderedAsJinja } from './rendering.js'

type Row = [template: string, variables: Record<string, unknown>, output: string]

const folder = fileURLToPath(new URL('jinja/', import.meta.url))
const tables = readdirSync(folder).map(file => ({
  subject: file.replace('.json', ''),
  rows: JSON.parse(readFileSync(folder + file, 'utf8')) as Row[],
}))

for (const { subject, rows } of tables) {
  test(`${subject} mean what they mean in Jinja`, async t => {
    for (const [template, variables, output] of rows) {
      t.equal(renderedAsJinja(template, variables), output, template)
    }
  })
}

test('the table holds at least 200 rows', async t => {
  t.ok(tables.reduce((count, { rows }) => count + rows.length, 0) >= 200)
})

test('where Jinja prints what nobody wants, a template prints the value', async t => {
  // Jinja: <built-in method items of dict object at 0x...>, <generator object ...>, dict_keys([...]), range(0, 3).
  t.equal(renderedAsJinja('{{ order.items }}', { order: { items: ['a'] } }), "['a']")
  t.equal(renderedAsJinja("{{ ['a'] | map('upper') }}"), "['A']")
  t.equal(renderedAsJinja("{{ {'a': 1}.keys() }} {{ range(3) }}"), "['a'] [0, 1, 2]")
  // A generator is true in Jinja, empty or not.
  t.equal(renderedAsJinja("{{ 'some' if [1] | select('even') else 'none' }}"), 'none')
})

test('text is kept as its author wrote it: the trailing newline, CRLF, and everything without a tag', async t => {
  t.equal(renderedAsJinja('{{ x }}\r\nb\r\n', { x: 1 }), '1\r\nb\r\n')
  t.equal(renderedAsJinja('a {b} %} }} #}\n'), 'a {b} %} }} #}\n')
})

test('a number of the caller prints as JSON has it: 1.0 is 1, since JSON does not tell them apart', async t => {
  t.equal(renderedAsJinja('{{ x }} {{ y }} {{ x / 2 }}', JSON.parse('{"x": 1.0, "y": 1.5}')), '1 1.5 0.5')
  t.equal(renderedAsJinja('{{ x }}', { x: 1e21 }), '1000000000000000000000')
})
