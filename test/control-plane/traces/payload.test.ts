import t from 'tap'
import {
  clean,
  cutText,
  hiddenKeys,
  MAX_FIELD,
  needsCleaning,
  storable,
} from '../../../control-plane/traces/payload.js'

const nothing = hiddenKeys([])
const nested = (levels: number, leaf: unknown): unknown => {
  let value = leaf
  for (let i = 0; i < levels; i++) value = [value]
  return value
}

t.test(
  'hidden names are found at any depth, in any letter case, in arrays and in strings of JSON',
  async t => {
    const hidden = hiddenKeys(['Token'])
    t.same(storable({ a: [{ token: 1 }, { TOKEN: { b: 2 } }] }, hidden), {
      a: [{ token: '[REDACTED]' }, { TOKEN: '[REDACTED]' }],
    })
    t.equal(storable(' {"token" : "x", "n": 1}', hidden), '{"token":"[REDACTED]","n":1}')
    const twice = JSON.stringify(JSON.stringify({ token: 'x' }))
    t.equal(storable(twice, hidden), JSON.stringify(JSON.stringify({ token: '[REDACTED]' })))
    t.equal(
      storable('{"tok\\u0065n":"x"', hidden),
      '[REDACTED]',
      'cut off in the middle, with escaped letters',
    )
  },
)

t.test('what needs no change is the same value, byte for byte', async t => {
  const hidden = hiddenKeys(['token'])
  const value = {
    text: '{ "big": 12345678901234567890 }',
    prose: 'the token is "token"',
    list: [1, { a: null }],
  }
  t.equal(storable(value, hidden), value)
  t.equal(storable(value, nothing), value)
})

t.test('nesting is bounded, with and without names to hide', async t => {
  for (const hidden of [nothing, hiddenKeys(['x'])]) {
    const text = JSON.stringify(storable(nested(100_000, 'leaf'), hidden))
    t.ok(text.length < 1000)
    t.match(text, 'NESTED TOO DEEPLY')
    t.same(storable(nested(60, 'leaf'), hidden), nested(60, 'leaf'))
  }
})

t.test('a field that is too big keeps its shape: long strings go first', async t => {
  const value = { messages: [{ role: 'user', content: 'hello' }, { image: 'x'.repeat(2 * MAX_FIELD) }] }
  const kept = storable(value, nothing) as typeof value
  t.equal(kept.messages[0]?.content, 'hello')
  t.match(kept.messages[1]?.image, /^x{100000}… \[truncated, 2000000 characters\]$/)
})

t.test('many short values are cut too, to an object that says so', async t => {
  const kept = storable(
    Array.from({ length: 400_000 }, (_, i) => i),
    nothing,
  ) as { truncated: boolean; length: number }
  t.match(kept, { truncated: true, length: 2_688_891 })
  t.ok(JSON.stringify(kept).length < MAX_FIELD)
})

t.test('text is never cut inside a character', async t => {
  t.equal(cutText('ab😀', 3), 'ab')
  t.equal(cutText('ab😀', 4), 'ab😀')
})

t.test('NUL and lone surrogates are replaced, pairs and look-alikes are not', async t => {
  const value = { 'k\u0000': ['\ud800x', '😀', '\\u0000', 1, null, true] }
  t.ok(needsCleaning(JSON.stringify(value)))
  t.same(clean(value), { 'k\ufffd': ['\ufffdx', '😀', '\\u0000', 1, null, true] })
  t.notOk(needsCleaning(JSON.stringify({ a: '😀 é \u001f' })))
})

t.test('a __proto__ key is dropped however it is written, and no prototype is touched', async t => {
  for (const line of ['{"__proto__":{"polluted":1},"a":1}', '{"\\u005f_proto__":{"polluted":1},"a":1}']) {
    t.ok(needsCleaning(line))
    const value = clean(JSON.parse(line)) as { a: number; polluted?: number }
    t.equal(value.polluted, undefined)
    t.equal(JSON.stringify(value), '{"a":1}')
  }
  t.equal(({} as { polluted?: number }).polluted, undefined)
})
