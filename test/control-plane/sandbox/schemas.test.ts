import { type Test, test } from 'tap'
import { createSandbox } from '../../../control-plane/sandbox/create-sandbox.js'
import type { Sandbox } from '../../../control-plane/sandbox/sandbox.js'

function sandboxOf(t: Test, settings: Parameters<typeof createSandbox>[0] = { wallMs: 5_000 }): Sandbox {
  const sandbox = createSandbox(settings)
  t.teardown(() => sandbox.close())
  return sandbox
}

const good = { ok: true, value: null }
const city = {
  type: 'object',
  properties: {
    city: { type: 'string', minLength: 2, description: 'Where', examples: ['Oslo'] },
    days: { type: 'array', items: { type: 'integer', minimum: 1 }, maxItems: 3 },
    units: { enum: ['c', 'f'] },
  },
  required: ['city'],
  additionalProperties: false,
}

test('a value that matches has no problems', async t => {
  const sandbox = sandboxOf(t)
  t.same(await sandbox.checkSchema(city), good)
  t.same(await sandbox.validate(city, { city: 'Oslo', days: [1, 2], units: 'c' }), { ok: true, value: [] })
  t.same(await sandbox.validate({}, 'anything'), { ok: true, value: [] })
})

test('each problem names its place', async t => {
  const sandbox = sandboxOf(t)
  const problems = async (value: unknown) => {
    const verdict = await sandbox.validate(city, value)
    return verdict.ok ? verdict.value : [verdict.message]
  }
  t.match(await problems({}), [/required property "city"/])
  t.match(await problems({ city: 5 }), [/^city: .*"number".*"string"/])
  t.match(await problems({ city: 'Oslo', days: [1, 'x'] }), [/^days\.1: .*"string".*"integer"/])
  t.match(await problems({ city: 'Oslo', more: 1 }), ['more: Not allowed.'])
  t.match(await problems('Oslo'), [/"string".*"object"/])
  const rows = await sandbox.validate(
    { items: { required: ['a'] } },
    Array.from({ length: 5_000 }, () => ({})),
  )
  t.equal(rows.ok && rows.value.length, 10, 'of thousands the first ten')
  const many = await problems({ city: 1, days: ['a', 'b', 'c', 'd'], units: 'k' })
  t.ok(many.length >= 5 && many.length <= 10, `${many.length} problems`)
})

test('common keywords mean what JSON Schema says, in each dialect', async t => {
  const sandbox = sandboxOf(t)
  const matches = async (schema: unknown, value: unknown) => {
    const verdict = await sandbox.validate(schema, value)
    return verdict.ok && verdict.value.length === 0
  }
  const cases: [unknown, unknown, boolean][] = [
    [{ oneOf: [{ type: 'string' }, { type: 'null' }] }, null, true],
    [{ oneOf: [{ type: 'string' }, { minLength: 1 }] }, 'a', false],
    [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, true, false],
    [{ not: { type: 'string' } }, 'a', false],
    [JSON.parse('{"if":{"required":["a"]},"then":{"required":["b"]}}'), { a: 1 }, false],
    [{ prefixItems: [{ type: 'string' }], items: { type: 'number' } }, ['a', 1], true],
    [{ patternProperties: { '^x-': { type: 'string' } } }, { 'x-a': 1 }, false],
    [{ propertyNames: { pattern: '^[a-z]+$' } }, { A: 1 }, false],
    [{ type: ['string', 'null'] }, null, true],
    [{ format: 'email' }, 'nobody', false],
    [{ multipleOf: 0.1 }, 0.3, true],
    [{ uniqueItems: true }, [{ a: 1 }, { a: 1 }], false],
    [{ dependentRequired: { a: ['b'] } }, { a: 1 }, false],
    [
      {
        $defs: { node: { properties: { next: { $ref: '#/$defs/node' } }, required: ['v'] } },
        $ref: '#/$defs/node',
      },
      { v: 1, next: {} },
      false,
    ],
    [
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        definitions: { s: { type: 'string' } },
        $ref: '#/definitions/s',
      },
      1,
      false,
    ],
    [{ $schema: 'http://json-schema.org/draft-04/schema#', maximum: 5, exclusiveMaximum: true }, 5, false],
    [{ $id: 'https://example.com/s.json', properties: { a: { $id: 'a', type: 'string' } } }, { a: 1 }, false],
    [{ properties: { id: { type: 'string' }, $ref: { type: 'string' } } }, { id: 1 }, false],
    [{ example: { id: 1 }, properties: { a: { example: { id: 1 } } } }, {}, true],
  ]
  for (const [schema, value, expected] of cases) {
    t.equal(await matches(schema, value), expected, JSON.stringify([schema, value]))
  }
})

test('a schema that cannot be used is refused with its reason', async t => {
  const sandbox = sandboxOf(t)
  const nested = (levels: number): object => (levels === 0 ? {} : { items: nested(levels - 1) })
  const cases: [unknown, RegExp][] = [
    ['text', /must be a JSON object/],
    [[], /must be a JSON object/],
    [null, /must be a JSON object/],
    [{ type: 'strin' }, /^type must be one of/],
    [{ properties: { a: { type: 5 } } }, /^properties\.a\.type must be/],
    [{ properties: [] }, /^properties must be an object of schemas/],
    [{ properties: { a: 'string' } }, /^properties\.a must be a schema/],
    [{ required: 'a' }, /^required must be an array of names/],
    [{ enum: 'a' }, /^enum must be an array/],
    [{ minimum: '1' }, /^minimum must be a number/],
    [{ pattern: '(' }, /^pattern: Invalid regular expression/],
    [{ patternProperties: { '[': {} } }, /^patternProperties: Invalid regular expression/],
    [{ $ref: 'https://example.com/other.json' }, /references to other documents are not followed/],
    [{ items: { $ref: 'other.json#/a' } }, /references to other documents are not followed/],
    [{ $ref: '#/$defs/missing' }, /leads nowhere in the document/],
    [nested(40), /nested at most 32 levels/],
    [{ description: 'x'.repeat(65_536) }, /longer than 64 KB/],
  ]
  for (const [schema, message] of cases) {
    t.match(await sandbox.checkSchema(schema), { ok: false, message }, JSON.stringify(schema)?.slice(0, 80))
  }
  t.same(await sandbox.checkSchema(nested(32)), good)
})

test('the pattern that takes 13 seconds ends at the wall clock, and the next call works', async t => {
  const sandbox = sandboxOf(t, {})
  const schema = { type: 'string', pattern: '^(a+)+$' }
  await sandbox.checkSchema(schema)
  const from = performance.now()
  const verdict = await sandbox.validate(schema, `${'a'.repeat(32)}!`)
  t.same(verdict, { ok: false, message: 'It ran longer than 150 ms.' })
  t.ok(performance.now() - from < 5_000, `${Math.round(performance.now() - from)} ms`)
  let next = await sandbox.validate(schema, 'aaa')
  if (!next.ok) next = await sandbox.validate(schema, 'aaa')
  t.same(next, { ok: true, value: [] })
})

test('hostile schemas and values are contained', async t => {
  const sandbox = sandboxOf(t, {})
  const wide = Object.fromEntries(Array.from({ length: 1_500 }, (_, n) => [`p${n}`, { type: 'string' }]))
  const fan = {
    $defs: {
      a: { anyOf: Array.from({ length: 20 }, () => ({ $ref: '#/$defs/b' })) },
      b: { anyOf: Array.from({ length: 20 }, () => ({ $ref: '#/$defs/c' })) },
      c: { anyOf: Array.from({ length: 20 }, () => ({ $ref: '#/$defs/d' })) },
      d: { anyOf: Array.from({ length: 200 }, () => ({ type: 'string' })) },
    },
    $ref: '#/$defs/a',
  }
  const hostile: [string, unknown, unknown][] = [
    ['a reference to itself', { $ref: '#' }, {}],
    [
      'two references in a circle',
      { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' },
      1,
    ],
    ['allOf of itself', { allOf: [{ $ref: '#' }, { $ref: '#' }] }, 1],
    ['a fan of references', fan, 1],
    [
      '1,500 properties',
      { properties: wide, additionalProperties: false },
      Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`q${n}`, n])),
    ],
    ['unique items of many', { uniqueItems: true }, Array.from({ length: 20_000 }, (_, n) => ({ n }))],
    ['a hostile format', { format: 'regex' }, '('.repeat(50_000)],
    ['a long address', { format: 'email' }, `${'a.'.repeat(50_000)}@`],
    ['a pattern of property names', { patternProperties: { '^(x+x+)+y$': {} } }, { ['x'.repeat(40)]: 1 }],
    ['a tiny divisor', { multipleOf: 1e-300 }, 1e300],
    [
      '__proto__ as a property',
      JSON.parse('{"properties":{"__proto__":{"type":"string"}}}'),
      JSON.parse('{"__proto__":1}'),
    ],
    ['half a million wrong rows', { items: { type: 'string' } }, Array.from({ length: 500_000 }, () => 1)],
    ['a deep value', {}, JSON.parse(`${'['.repeat(3_000)}${']'.repeat(3_000)}`)],
  ]
  let longest = 0
  for (const [name, schema, value] of hostile) {
    const from = performance.now()
    const verdict = await sandbox.validate(schema, value)
    const took = performance.now() - from
    longest = Math.max(longest, took)
    t.ok(took < 5_000, `${name}: ${Math.round(took)} ms`)
    t.ok(JSON.stringify(verdict).length < 4_000, name)
  }
  t.comment(`${hostile.length} hostile schemas, longest ${longest.toFixed(0)} ms`)
  t.equal(({} as Record<string, unknown>).type, undefined)
})
