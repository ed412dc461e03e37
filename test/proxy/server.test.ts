import { readdirSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startProxy } from '../../proxy/main.js'
import { hashToken, mintKey, VIRTUAL_KEY_PREFIX } from '../../shared/secrets/token.js'
import { engines } from '../support/engines.js'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.js'
import { testDatabase } from '../support/postgres.js'
import { startProxyProcess } from '../support/proxy-process.js'
import { temporaryDirectory, until } from '../support/spool.js'
import {
  SECRET,
  type StandIn,
  standInControlPlane,
  teamRecord,
  virtualKey,
} from '../support/stand-in-control-plane.js'

const TEAM = '00000000-0000-4000-8000-00000000000a'
const COMPLETIONS = '/api/v1/gateway/chat/completions'

interface World {
  plane: StandIn
  provider: FakeProvider
  key: string
  env: Record<string, string>
}

/** Everything around a proxy: control plane, provider, ledger, a virtual key. */
async function world(t: Test): Promise<World> {
  const plane = await standInControlPlane(t)
  const provider = await startFakeProvider()
  t.teardown(() => provider.stop())
  const key = mintKey(VIRTUAL_KEY_PREFIX)
  plane.credentials.set(hashToken(key), virtualKey(TEAM))
  plane.teams.set(TEAM, teamRecord(TEAM, provider.baseUrl('openai')))
  const { url } = await testDatabase(t)
  const env = {
    PORT: '0',
    CONTROL_PLANE_URL: plane.url,
    DATABASE_URL: url,
    AGH_SECRET: SECRET,
    DATA_DIR: temporaryDirectory(t),
    PROXY_WORKERS: '1',
  }
  return { plane, provider, key, env }
}

async function inProcess(t: Test, over: Record<string, string> = {}) {
  const around = await world(t)
  const proxy = await startProxy({ ...around.env, LOG_LEVEL: 'silent', ...over })
  t.teardown(() => proxy.close())
  return { ...around, proxy }
}

const ask = (url: string, key: string, over: object = {}) =>
  fetch(url + COMPLETIONS, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'fast', messages: [{ role: 'user', content: 'hello' }], ...over }),
  })

t.test('a completion is answered, and its record reaches the control plane', async t => {
  const { proxy, key, plane } = await inProcess(t)
  const response = await ask(proxy.url, key)
  const body = (await response.json()) as { choices: unknown[] }
  t.equal(response.status, 200)
  t.equal(body.choices.length, 1)
  await until('shipped', () => plane.calls.length === 1)
  t.equal(plane.calls[0]?.charge.requestId, response.headers.get('x-request-id'))
})

t.test('a virtual key lists its models here, other credentials at the control plane', async t => {
  const { proxy, key } = await inProcess(t)
  const list = async (authorization: string) =>
    (await fetch(`${proxy.url}/api/v1/gateway/models`, { headers: { authorization } })).json()
  t.match(await list(`Bearer ${key}`), { object: 'list', data: [{ id: 'fast', object: 'model' }] })
  t.match(await list('Bearer aghapi_sk_x'), { forwarded: '/api/v1/gateway/models', method: 'GET' })
})

t.test('every other path goes to the control plane, with its method', async t => {
  const { proxy } = await inProcess(t)
  for (const [method, path] of [
    ['GET', '/api/v1/traces?limit=3'],
    ['POST', '/api/v1/gateway/models'],
    ['GET', '/constructor'],
    ['GET', '/docs'],
  ] as const) {
    const answer = await (await fetch(proxy.url + path, { method })).json()
    t.match(answer, { forwarded: path, method })
  }
})

t.test('internal endpoints are not reachable from outside', async t => {
  const { proxy } = await inProcess(t)
  const response = await fetch(`${proxy.url}/internal/directory`, { method: 'POST', body: '{}' })
  t.equal(response.status, 404)
})

t.test('a wrong method on a path of the proxy is 404 in the envelope', async t => {
  const { proxy } = await inProcess(t)
  for (const [method, path] of [
    ['GET', COMPLETIONS],
    ['DELETE', COMPLETIONS],
    ['POST', '/healthz'],
  ] as const) {
    const response = await fetch(proxy.url + path, { method })
    t.equal(response.status, 404)
    t.same(await response.json(), { error: { code: 'NOT_FOUND', message: 'Route not found.' } })
    t.match(response.headers.get('x-request-id'), /^[0-9a-f-]{36}$/)
  }
})

t.test('healthz answers 200 while the process lives', async t => {
  const { proxy } = await inProcess(t)
  const response = await fetch(`${proxy.url}/healthz`)
  t.equal(response.status, 200)
  t.equal(await response.text(), '{"status":"ok"}')
})

t.test('readyz is 200, or 503 naming each dependency that cannot be reached', async t => {
  const { proxy, plane } = await inProcess(t)
  t.equal((await fetch(`${proxy.url}/readyz`)).status, 200)
  await plane.close()
  const away = await fetch(`${proxy.url}/readyz`)
  t.equal(away.status, 503)
  t.match(await away.json(), { error: { code: 'UNAVAILABLE', message: 'Not ready: control_plane.' } })
  const other = await startProxy({
    ...(await world(t)).env,
    LOG_LEVEL: 'silent',
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
  })
  t.teardown(() => other.close())
  t.match(await (await fetch(`${other.url}/readyz`)).json(), { error: { message: 'Not ready: ledger.' } })
})

t.test('metrics answer loopback peers, or the bearer of METRICS_TOKEN when it is set', async t => {
  const open = await inProcess(t)
  const text = await (await fetch(`${open.proxy.url}/metrics`)).text()
  t.match(text, /agh_spool_bytes 0/)
  t.match(text, /process_cpu_seconds_total/)
  const behind = { headers: { 'x-forwarded-for': '203.0.113.4' } }
  t.equal((await fetch(`${open.proxy.url}/metrics`, behind)).status, 403)
  const { proxy } = await inProcess(t, { METRICS_TOKEN: 'let-me-in' })
  t.equal((await fetch(`${proxy.url}/metrics`)).status, 401)
  const bearer = { headers: { authorization: 'Bearer let-me-in' } }
  t.equal((await fetch(`${proxy.url}/metrics`, bearer)).status, 200)
})

t.test('without the control plane forwarded paths are 503, and cached keys go on calling', async t => {
  const { proxy, key, plane } = await inProcess(t)
  t.equal((await ask(proxy.url, key)).status, 200)
  await plane.close()
  t.equal((await fetch(`${proxy.url}/api/v1/traces`)).status, 503)
  t.equal((await ask(proxy.url, key)).status, 200)
  t.equal((await ask(proxy.url, mintKey(VIRTUAL_KEY_PREFIX))).status, 503)
})

t.test('a wrong variable stops the start with one line that names it', async t => {
  await t.rejects(startProxy({ AGH_SECRET: SECRET, PROXY_HTTP: 'apache' }), {
    message: 'PROXY_HTTP holds "apache"; it may hold uwebsockets or node.',
  })
  await t.rejects(startProxy({ AGH_SECRET: SECRET }), { message: /^DATABASE_URL is not set; / })
  const several = startProxyProcess(t, { AGH_SECRET: SECRET, PROXY_WORKERS: '2', PORT: '0' })
  await t.rejects(several, /DATABASE_URL is not set; /, 'and does not start worker after worker')
})

t.test('a drain finishes live streams, refuses new connections, ships the spool and exits 0', async t => {
  for (const engine of engines) {
    const { env, key, plane, provider } = await world(t)
    const proxy = await startProxyProcess(t, { ...env, PROXY_HTTP: engine })
    provider.next({ chunkDelay: 100, chunks: 8 })
    const response = await ask(proxy.url, key, { stream: true })
    const reader = response.body?.getReader()
    await reader?.read()
    proxy.child.kill('SIGTERM')
    await until('draining', () => /"draining"/.test(proxy.output()))
    await t.rejects(fetch(`${proxy.url}/healthz`), `${engine}: no new connections`)
    t.match(await readAll(reader), /data: \[DONE\]\n\n$/, `${engine}: the stream is whole`)
    t.equal(await proxy.ended, 0)
    t.equal(plane.calls.length, 1, `${engine}: its record was shipped before the end`)
  }
})

t.test('a drain cuts what is still live at its limit, and records it', async t => {
  const { env, key, plane, provider } = await world(t)
  const proxy = await startProxy({ ...env, LOG_LEVEL: 'silent' }, { drainMs: 200 })
  provider.next({ chunkDelay: 500, chunks: 100 })
  const response = await ask(proxy.url, key, { stream: true })
  const reader = response.body?.getReader()
  await reader?.read()
  const startedAt = performance.now()
  await proxy.close()
  t.ok(performance.now() - startedAt < 10_000)
  await t.rejects(readAll(reader), 'a broken stream, never a complete one')
  t.match(plane.calls, [{ span: { status: 'error' } }])
})

t.test('a second signal ends the process at once', async t => {
  const { env, key, provider } = await world(t)
  const proxy = await startProxyProcess(t, env)
  provider.next({ hang: true })
  const pending = ask(proxy.url, key).catch(() => null)
  await until('sent', () => provider.requests.length === 1)
  proxy.child.kill('SIGTERM')
  await until('draining', () => /"draining"/.test(proxy.output()))
  proxy.child.kill('SIGTERM')
  t.equal(await proxy.ended, 1)
  await pending
})

t.test('the death of the parent drains too', async t => {
  const { env } = await world(t)
  const proxy = await startProxyProcess(t, env)
  proxy.child.disconnect()
  t.equal(await proxy.ended, 0)
  t.match(proxy.output(), /the parent is gone/)
})

t.test('what a killed proxy had recorded is shipped by the next one on the same data directory', async t => {
  const { env, key, plane } = await world(t)
  plane.callsStatus = 503
  const first = await startProxyProcess(t, env)
  const ids = []
  for (let index = 0; index < 5; index++) ids.push((await ask(first.url, key)).headers.get('x-request-id'))
  first.child.kill('SIGKILL')
  await first.ended
  plane.callsStatus = 200
  await startProxyProcess(t, env)
  await until('shipped', () => plane.calls.length >= 5)
  t.same(plane.calls.map(call => call.charge.requestId).sort(), ids.sort())
})

t.test('several workers share one port, a dead one is replaced, metrics are of all', async t => {
  for (const engine of engines) {
    const { env, key, plane } = await world(t)
    const proxy = await startProxyProcess(t, { ...env, PROXY_HTTP: engine, PROXY_WORKERS: '2' })
    const listening = () =>
      [...proxy.output().matchAll(/"pid":(\d+)[^\n]*the proxy listens/g)].map(([, pid]) => Number(pid))
    await until('both listen', () => listening().length === 2, 20_000)
    for (let index = 0; index < 20; index++) t.equal((await ask(proxy.url, key)).status, 200)
    const metrics = await fresh(`${proxy.url}/metrics`)
    const resident = Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1])
    t.ok(resident > 100e6, `${engine}: two processes in the sum, ${resident}`)
    process.kill(listening()[0] ?? 0, 'SIGKILL')
    await until('another', () => listening().length === 3, 20_000)
    t.equal((await ask(proxy.url, key)).status, 200)
    proxy.child.kill('SIGINT')
    t.equal(await proxy.ended, 0)
    await until('shipped', () => plane.calls.length >= 21)
  }
})

async function readAll(reader: ReadableStreamDefaultReader<Uint8Array> | undefined): Promise<string> {
  let text = ''
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (done) return text
    text += Buffer.from(value).toString()
  }
}

/** On a connection of its own: the agent of fetch may hold one to a worker that is gone. */
const fresh = (url: string) =>
  new Promise<string>((resolve, reject) => {
    get(url, { agent: false }, response => {
      let text = ''
      response.on('data', piece => (text += String(piece)))
      response.on('end', () => resolve(text))
    }).on('error', reject)
  })

t.test('the data directory keeps nothing of a proxy that ended in order', async t => {
  const { env, key } = await world(t)
  const proxy = await startProxy({ ...env, LOG_LEVEL: 'silent' })
  await ask(proxy.url, key)
  await proxy.close()
  t.same(readdirSync(join(env.DATA_DIR ?? '', 'spool')), [])
})
