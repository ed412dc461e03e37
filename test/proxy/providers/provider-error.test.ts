import { test } from 'tap'
import { providerFailure, providerText } from '../../../proxy/providers/provider-error.js'

const read = (status: number, body: unknown, headers: Record<string, string> = {}, apiKey?: string) => {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return providerFailure(status, name => headers[name], bytes, apiKey)
}
const message = (text: string) => ({ error: { message: text } })

test('400, 404, 413 and 422 are forwarded with the provider’s own message', async t => {
  for (const status of [400, 404, 413, 422]) {
    t.same(read(status, message('Invalid temperature.')), {
      status,
      code: 'PROVIDER_ERROR',
      message: 'Invalid temperature.',
      retryAfterSeconds: null,
    })
  }
})

test('every vendor’s way of saying it is understood', async t => {
  const said = { status: 400, message: 'Because.' }
  t.match(read(400, { type: 'error', error: { type: 'invalid_request_error', message: 'Because.' } }), said)
  t.match(read(400, { object: 'error', message: 'Because.', code: 400 }), said)
  t.match(read(400, { detail: 'Because.' }), said)
  t.match(read(422, { detail: [{ loc: ['body'], msg: 'Because.' }] }), { ...said, status: 422 })
  t.match(read(400, { error: 'Because.' }), said)
  t.match(read(400, [{ error: { code: 400, message: 'Because.' } }]), said)
  t.match(read(400, 'Because.', { 'content-type': 'text/plain' }), said)
  t.match(read(400, '<html>nginx', { 'content-type': 'text/html' }), {
    message: 'The provider answered 400.',
  })
  t.match(read(404, ''), { status: 404, message: 'The provider answered 404.' })
})

test('a provider’s 429 carries its reason and its wait', async t => {
  const limited = { status: 429, code: 'PROVIDER_RATE_LIMITED', message: 'Slow down.' }
  const wait = (headers: Record<string, string>, body: unknown = message('Slow down.')) =>
    read(429, body, headers).retryAfterSeconds
  t.match(read(429, message('Slow down.')), { ...limited, retryAfterSeconds: null })
  t.equal(wait({ 'retry-after': '7' }), 7)
  t.equal(wait({ 'retry-after': '0' }), 1)
  t.equal(wait({ 'retry-after': '0.4' }), 1)
  t.equal(wait({ 'retry-after-ms': '2500', 'retry-after': '9' }), 3)
  t.equal(wait({ 'retry-after': 'soon' }), null)
  t.equal(wait({ 'retry-after': '-3' }), 1)
  const inTenSeconds = wait({ 'retry-after': new Date(Date.now() + 10_000).toUTCString() }) ?? 0
  t.ok(inTenSeconds >= 9 && inTenSeconds <= 10)
  t.equal(wait({ 'retry-after': new Date(Date.now() - 10_000).toUTCString() }), 1)
  const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' }
  t.equal(wait({}, { error: { message: 'Quota', details: [{ '@type': 'x' }, retryInfo] } }), 35)
  t.match(read(429, ''), { message: 'The provider is rate limiting this connection.' })
})

test('a refused credential is named as that, with nothing of the provider’s body', async t => {
  const refused = {
    status: 502,
    code: 'PROVIDER_ERROR',
    message: "The provider refused the connection's credential.",
  }
  t.match(read(401, message('Incorrect API key provided: sk-abc***xyz')), refused)
  t.match(read(403, message('Project proj_secret has no access')), refused)
  const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }]
  const google = {
    code: 400,
    message: 'API key not valid. Please pass a valid API key.',
    status: 'INVALID_ARGUMENT',
  }
  t.match(read(400, { error: { ...google, details } }), refused)
  t.match(read(400, [{ error: google }]), refused)
  t.match(read(400, { error: { ...google, message: 'Invalid value at contents' } }), { status: 400 })
})

test('every other status is summarised as 502', async t => {
  for (const status of [301, 402, 405, 409, 418, 500, 502, 503, 504, 529]) {
    const failure = read(status, message('Inner secrets of host db-7'), { 'retry-after': '7' })
    t.same(failure, {
      status: 502,
      code: 'PROVIDER_ERROR',
      message: `The provider answered ${status}.`,
      retryAfterSeconds: null,
    })
  }
})

test('provider text is cut and holds no key', async t => {
  t.equal(providerText('x'.repeat(5000)).length, 2001)
  t.equal(providerText('Bad key my-odd-secret here', 'my-odd-secret'), 'Bad key *** here')
  t.equal(providerText('key sk-proj-abcdefghijklmnop and AIzaSyA0123456789 end'), 'key *** and *** end')
  t.equal(providerText('a skeleton of risk-averse sketches'), 'a skeleton of risk-averse sketches')
  t.match(read(400, message('you sent odd-secret'), {}, 'odd-secret'), { message: 'you sent ***' })
})
