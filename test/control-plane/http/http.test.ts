import { connect } from 'node:net'
import { test } from 'tap'
import { listApiKeys } from '../../../shared/contract/api-keys.js'
import { getMe, signIn } from '../../../shared/contract/auth.js'
import { LedgerUnavailable } from '../../../shared/ledger/ledger.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

const KEYS = '/api/v1/api-keys'

test('400: malformed JSON says what is wrong with it, in the envelope', async t => {
  const { cp, key } = await seeded(t)
  for (const payload of ['{"name": ', '{"name": "x"} trailing', '\u0000', 'undefined']) {
    const response = await post(cp, KEYS, payload, key)
    t.equal(response.statusCode, 400)
    t.match(response.json().error, { code: 'VALIDATION_ERROR', message: /^Malformed JSON body: .+/ })
  }
  const latin = await post(cp, KEYS, Buffer.from([0x22, 0xff, 0x22]), key)
  t.match(latin.json().error.message, 'Malformed JSON body: not UTF-8')
  const deep = await post(cp, KEYS, '['.repeat(300) + ']'.repeat(300), key)
  t.match(deep.json().error.message, /^Malformed JSON body: nested deeper/)
})

test('a body is JSON whatever its Content-Type says, and is always checked', async t => {
  const { cp, key } = await seeded(t)
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json ; x']) {
    const headers = { 'content-type': type }
    t.equal((await post(cp, KEYS, '{"name":"A"}', key, headers)).statusCode, 201, type)
    t.equal((await post(cp, KEYS, '{"name":1}', key, headers)).statusCode, 400, type)
  }
  const broken = await post(cp, KEYS, '{"name":"A"}', key, { 'content-type': 'a/b\tc' })
  t.equal(broken.statusCode, 400)
  t.equal(broken.json().error.code, 'VALIDATION_ERROR')
})

test('400: an empty body is an empty object: its fields are Required', async t => {
  const { cp, key } = await seeded(t)
  const headers = { 'content-type': 'application/json' }
  t.same((await post(cp, KEYS, '', key, headers)).json(), {
    error: { code: 'VALIDATION_ERROR', message: 'Required' },
  })
  for (const payload of ['null', '[]', '"text"', '1'])
    t.equal((await post(cp, KEYS, payload, key)).statusCode, 400, payload)
})

test('unknown fields are ignored, __proto__ among them, however it is spelt', async t => {
  const { cp, key } = await seeded(t)
  for (const name of ['__proto__', '\\u005f_proto__', '__pr\\u006fto__', 'constructor', 'other']) {
    const payload = `{"name":"A","${name}":{"teamScoped":true,"polluted":1}}`
    const response = await post(cp, KEYS, payload, key)
    t.equal(response.statusCode, 201, name)
    t.equal(response.json().teamScoped, false)
  }
  t.equal(({} as { polluted?: number }).polluted, undefined)
})

test('400 and not 500: text that PostgreSQL cannot store', async t => {
  const { cp, key } = await seeded(t)
  const response = await post(cp, KEYS, '{"name":"a\\u0000b"}', key)
  t.same(response.json().error, {
    code: 'VALIDATION_ERROR',
    message: 'Text must not contain the NUL character.',
  })
  const half = await post(cp, KEYS, '{"name":"a\\ud800b"}', key)
  t.same(half.json().error, {
    code: 'VALIDATION_ERROR',
    message: 'Text must not contain half of a surrogate pair.',
  })
})

test('413: a body above 1 MB is refused, and a stranger is refused before it is read', async t => {
  const { cp, key } = await seeded(t)
  const payload = JSON.stringify({ name: 'A', filler: 'x'.repeat(1024 * 1024) })
  const response = await post(cp, KEYS, payload, key)
  t.equal(response.statusCode, 413)
  t.equal(response.json().error.code, 'PAYLOAD_TOO_LARGE')
  t.equal((await post(cp, KEYS, payload, 'aghapi_sk_nobody')).statusCode, 401)
})

test('404: an unknown route and a wrong method are Route not found., also without credentials', async t => {
  const { cp } = await seeded(t)
  const requests = [
    ['GET', '/'],
    ['GET', '/api/v1/nothing'],
    ['PUT', KEYS],
    ['DELETE', '/api/v1/auth/me'],
    ['POST', '/healthz'],
    ['OPTIONS', KEYS],
    ['GET', '/api/v1/api-keys/'],
    ['GET', `/api/v1/teams/${'x'.repeat(3000)}`],
  ] as const
  for (const [method, url] of requests) {
    const response = await cp.app.inject({ method, url })
    t.equal(response.statusCode, 404, `${method} ${url.slice(0, 40)}`)
    t.same(response.json(), { error: { code: 'NOT_FOUND', message: 'Route not found.' } })
    t.match(response.headers['content-type'], 'application/json')
  }
  const bad = await cp.app.inject({ method: 'GET', url: '/api/v1/teams/%zz' })
  t.equal(bad.statusCode, 400)
  t.equal(bad.json().error.code, 'VALIDATION_ERROR')
  t.ok(bad.headers['x-request-id'])
})

test('every response carries x-request-id; one from outside is believed from the proxy alone', async t => {
  const { cp, key } = await seeded(t)
  const ask = (url: string, headers = {}) => cp.app.inject({ method: 'GET', url, headers })
  for (const url of ['/healthz', '/nowhere', KEYS, '/docs', '/api/v1/openapi.json']) {
    t.match((await ask(url)).headers['x-request-id'], /^[0-9a-f-]{36}$/, url)
  }
  const claimed = { 'x-request-id': 'mine-1', authorization: `Bearer ${key}` }
  t.not((await ask(KEYS, claimed)).headers['x-request-id'], 'mine-1')
  const proxied = { ...claimed, 'x-agh-internal': cp.deps.config.internalToken }
  t.equal((await ask(KEYS, proxied)).headers['x-request-id'], 'mine-1')
  const wrong = { ...claimed, 'x-agh-internal': 'wrong' }
  t.not((await ask(KEYS, wrong)).headers['x-request-id'], 'mine-1')
})

test('x-forwarded-for counts for the sign-in limit from the proxy alone', async t => {
  const { cp } = await seeded(t)
  const attempt = (headers: Record<string, string>) =>
    cp.call(signIn, { body: { email: 'x@y', password: 'z' }, headers })
  await attempt({ 'x-forwarded-for': '9.9.9.9' })
  await attempt({ 'x-forwarded-for': '8.8.8.8, 10.0.0.1', 'x-agh-internal': cp.deps.config.internalToken })
  const rows = await cp.deps.sql`select address from sign_in_attempts order by id`
  t.same(
    rows.map(row => row.address),
    ['127.0.0.1', '8.8.8.8'],
  )
})

test('500: Internal error with the request id and nothing else; the cause is in the log', async t => {
  const { cp, key } = await seeded(t)
  const logged: unknown[] = []
  cp.deps.log.error = ((line: unknown) => logged.push(line)) as typeof cp.deps.log.error
  await cp.deps.sql`alter table api_keys rename to keys_elsewhere`
  const response = await cp.app.inject({
    url: '/api/v1/teams/x',
    headers: { authorization: `Bearer ${key}` },
  })
  t.equal(response.statusCode, 500)
  const id = response.headers['x-request-id']
  t.same(response.json(), {
    error: { code: 'INTERNAL_ERROR', message: `Internal error. Request id: ${id}.` },
  })
})

test('503 with Retry-After when the ledger cannot take a question', async t => {
  const { cp } = await seeded(t)
  const ping = () => Promise.reject(new LedgerUnavailable(new Error('frozen')))
  Object.assign(cp.deps.ledger, { ping })
  const ready = await cp.app.inject('/readyz')
  t.equal(ready.statusCode, 503)
  t.same(ready.json().error, { code: 'UNAVAILABLE', message: 'Not ready: ledger.' })
  t.ok(ready.headers['retry-after'])
})

test('503 with Retry-After, and no hang, when PostgreSQL is away; readiness names what is missing', async t => {
  const { cp, key } = await seeded(t)
  await cp.deps.sql.end({ timeout: 0 })
  const startedAt = Date.now()
  const answer = await cp.call(listApiKeys, { as: { key } })
  t.equal(answer.status, 503)
  t.equal(answer.error?.code, 'UNAVAILABLE')
  t.ok(Number(answer.headers['retry-after']) >= 1)
  t.ok(Date.now() - startedAt < 5_000)
  const ready = await cp.app.inject('/readyz')
  t.match(ready.json().error.message, /postgres, migrations/)
  t.equal((await cp.app.inject('/healthz')).statusCode, 200, 'alive all the same')
})

test('healthz is alive, readyz is ready', async t => {
  const { cp } = await seeded(t)
  t.same((await cp.app.inject('/healthz')).json(), { status: 'ok' })
  t.same((await cp.app.inject('/readyz')).json(), { status: 'ok' })
})

test('metrics count requests by route; loopback reads them, others need METRICS_TOKEN', async t => {
  const { cp, key } = await seeded(t)
  await cp.call(getMe, { as: { key } })
  const local = await cp.app.inject('/metrics')
  t.equal(local.statusCode, 200)
  t.match(
    local.body,
    /agh_control_plane_request_seconds_count\{method="GET",route="\/api\/v1\/auth\/me",status="200"\} 1/,
  )
  t.notOk(local.body.includes(key))
  const remote = await cp.app.inject({ url: '/metrics', remoteAddress: '10.0.0.9' })
  t.equal(remote.statusCode, 403)
  Object.assign(cp.deps.config, { METRICS_TOKEN: 'a-token' })
  t.equal((await cp.app.inject('/metrics')).statusCode, 401)
  const bearer = { authorization: 'Bearer a-token' }
  const asked = { url: '/metrics', remoteAddress: '10.0.0.9', headers: bearer }
  t.equal((await cp.app.inject(asked)).statusCode, 200)
})

test('what is not HTTP gets the envelope and a closed connection', async t => {
  const { cp } = await seeded(t)
  await cp.app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = cp.app.server.address() as { port: number }
  const answer = await new Promise<string>(resolve => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nhost a\r\n\r\n'))
    let text = ''
    socket.on('data', bytes => {
      text += bytes
    })
    socket.on('close', () => resolve(text))
  })
  t.match(answer, /^HTTP\/1\.1 400 /)
  t.match(answer, /x-request-id: /)
  t.match(answer, /\{"error":\{"code":"VALIDATION_ERROR","message":"Malformed HTTP request\."\}\}$/)
})

async function seeded(t: Parameters<typeof startControlPlane>[0]) {
  const cp = await startControlPlane(t)
  const { owner } = await team(cp)
  return { cp, key: owner.personalKey.key ?? '' }
}

const post = (cp: ControlPlane, url: string, payload: string | Buffer, key: string, headers = {}) =>
  cp.app.inject({ method: 'POST', url, payload, headers: { authorization: `Bearer ${key}`, ...headers } })
