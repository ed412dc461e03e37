import { test } from 'tap'
import { parseCall } from '../../../proxy/chat/parse.js'
import { AppError } from '../../../shared/errors/app-error.js'

const user = [{ role: 'user', content: 'hi' }]
const parse = (body: unknown) => parseCall(Buffer.from(JSON.stringify(body)))

function refusal(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof AppError) return `${error.status} ${error.code} ${error.message}`
    throw error
  }
  return 'accepted'
}

test('a body that is not JSON is named as such', async t => {
  for (const body of ['', '{', 'nonsense', '{"a":1,}']) {
    t.match(
      refusal(() => parseCall(Buffer.from(body))),
      /^400 VALIDATION_ERROR Malformed JSON body: ./,
    )
  }
  t.match(
    refusal(() => parseCall(Buffer.from([0x7b, 0xff, 0x7d]))),
    /Malformed JSON body: the body is not UTF-8/,
  )
  t.equal(
    refusal(() => parse([])),
    '400 VALIDATION_ERROR Expected object, received array',
  )
})

test('missing and mistyped fields answer with the quoted texts, nested ones with their path', async t => {
  const message = (body: unknown) => refusal(() => parse(body)).replace('400 VALIDATION_ERROR ', '')
  t.equal(message({ messages: user }), 'Required')
  t.equal(message({ model: 'm' }), 'Required')
  t.equal(message({ model: 1, messages: user }), 'Expected string, received number')
  t.equal(message({ model: 'm', messages: [] }), 'Array must contain at least 1 element(s)')
  t.equal(message({ model: 'm', messages: 'hi' }), 'Expected array, received string')
  t.equal(message({ model: 'm', messages: [{ content: 'x' }] }), 'messages.0.role: Required')
  t.equal(message({ model: 'm', messages: user, stream: 'yes' }), 'Expected boolean, received string')
  t.equal(message({ model: 'm', messages: user, max_tokens: 0 }), 'Number must be greater than or equal to 1')
  t.match(
    message({ model: 'm', messages: [{ ...user[0], cache_control: { type: 'x' } }] }),
    /cache_control.type must be 'ephemeral'/,
  )
})

test('the gateway’s own fields never reach a provider, everything else does', async t => {
  const call = parse({
    model: 'm',
    messages: user,
    temperature: 0.5,
    a_field_of_the_future: { x: 1 },
    trace: { name: 'n' },
    span: { name: 's' },
    variables: { a: 1 },
  })
  t.strictSame(Object.keys(call.request).sort(), [
    'a_field_of_the_future',
    'messages',
    'model',
    'temperature',
  ])
  t.equal(call.raw, null, 'bytes with owned fields in them are not forwarded')
  t.strictSame(call.trace, { name: 'n' })
})

test('an ordinary body is forwarded as bytes, with the place of its model', async t => {
  const body = JSON.stringify({ messages: user, model: 'public-name', stream: true })
  const { raw, stream } = parseCall(Buffer.from(body))
  t.equal(stream, true)
  t.equal(body.slice(raw?.modelStart, raw?.modelEnd), '"public-name"')
  t.equal(raw?.insertAt, 1)
  t.equal(raw?.hasStreamOptions, false)
})

test('deeply nested JSON is refused or passed, never fatal', async t => {
  const deep = '['.repeat(200_000) + ']'.repeat(200_000)
  t.doesNotThrow(() =>
    refusal(() => parseCall(Buffer.from(`{"model":"m","messages":[{"role":"user","content":${deep}}]}`))),
  )
})
