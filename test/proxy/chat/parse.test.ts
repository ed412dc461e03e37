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
  t.strictSame(
    JSON.parse(String(call.raw?.bytes)),
    call.request,
    'nor do they in the bytes that are forwarded',
  )
  t.strictSame(call.trace, { name: 'n' })
})

test('a member named __proto__ lends the request nothing', async t => {
  const own = '"trace":{},"__proto__":{"max_tokens":64000,"tools":[1]}'
  const call = parseCall(Buffer.from(`{"model":"m","messages":[{"role":"user","content":"hi"}],${own}}`))
  t.equal(call.request.max_tokens, undefined)
  t.equal(call.request.tools, undefined)
  t.equal(call.maxTokens, null)
})

test('an ordinary body is forwarded as bytes, with the place of its model', async t => {
  const body = JSON.stringify({ messages: user, model: 'public-name', stream: true })
  const { raw, stream } = parseCall(Buffer.from(body))
  t.equal(stream, true)
  t.equal(body.slice(raw?.modelStart, raw?.modelEnd), '"public-name"')
  t.equal(raw?.insertAt, 1)
  t.equal(raw?.hasStreamOptions, false)
})

test('beside a field of the gateway’s own the others keep every digit, and are all that is estimated', async t => {
  const kept = `"seed":12345678901234567890,"temperature":1.0,"messages":[{"role":"user","content":"\\u00e9"}]`
  const name = JSON.stringify('n'.repeat(1_000))
  const own = [`"trace":{"name":${name}}`, `"prompt_version_id":${name}`, `"variables":{"a":${name}}`]
  for (const body of [
    `{${own[0]},"model":"m",${kept}}`,
    `{"model":"m",${own.join(' , ')},${kept}}`,
    ` { "model":"m",${kept} , ${own[1]}, ${own[2]} } `,
  ]) {
    const call = parseCall(Buffer.from(body))
    t.equal(String(call.raw?.bytes), `{"model":"m",${kept}}`, body)
    t.equal(call.bodyBytes, `{"model":"m",${kept}}`.length, body)
  }
})

test('names that come twice or with an escape are written anew, without the gateway’s own', async t => {
  for (const odd of [
    '"trace":{},"tr\\u0061ce":{}',
    '"trace":{},"seed":1,"seed":2',
    '"span":{},"model":"m"',
  ]) {
    const call = parseCall(Buffer.from(`{"model":"m","messages":[{"role":"user","content":"hi"}],${odd}}`))
    t.equal(call.raw, null, odd)
    t.notOk('trace' in call.request || 'span' in call.request, odd)
  }
})

test('deeply nested JSON is refused or passed, never fatal', async t => {
  const deep = '['.repeat(200_000) + ']'.repeat(200_000)
  t.doesNotThrow(() =>
    refusal(() => parseCall(Buffer.from(`{"model":"m","messages":[{"role":"user","content":${deep}}]}`))),
  )
})
