import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { buildConnector, Client } from 'undici'
import type { AddressPolicy } from '../../../shared/network/addresses.js'
import {
  Blocked,
  guardedConnect,
  guardedLookup,
  type Resolve,
} from '../../../shared/network/guarded-connect.js'
import { resolving } from '../../support/resolving.js'

async function server(t: Test): Promise<{ port: number; hits: () => number }> {
  let hits = 0
  const http: Server = createServer((request, response) => {
    hits++
    response.end(`host ${request.headers.host}`)
  })
  await new Promise<void>(listening => http.listen(0, '::', listening))
  t.teardown(() => http.close())
  return { port: (http.address() as AddressInfo).port, hits: () => hits }
}

async function get(url: string, policy: AddressPolicy, resolve?: Resolve): Promise<string> {
  const lookup = guardedLookup(policy, resolve)
  const base = buildConnector({ timeout: 2_000, allowH2: false, lookup } as buildConnector.BuildOptions)
  const client = new Client(new URL(url).origin, { connect: guardedConnect(base, policy) })
  try {
    const { body } = await client.request({ path: '/', method: 'GET', headersTimeout: 2_000 })
    return await body.text()
  } finally {
    await client.destroy()
  }
}

test('a literal is checked although no resolver is asked for it', async t => {
  const { port, hits } = await server(t)
  const never: Resolve = () => t.fail('a resolver was asked')
  for (const host of ['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0']) {
    await t.rejects(get(`http://${host}:${port}`, 'public', never), Blocked, host)
  }
  t.equal(hits(), 0)
  t.equal(await get(`http://127.0.0.1:${port}`, 'private-allowed', never), `host 127.0.0.1:${port}`)
  t.equal(await get(`http://[::1]:${port}`, 'private-allowed', never), `host [::1]:${port}`)
})

test('one bad address among a name’s answers refuses the name', async t => {
  const { port, hits } = await server(t)
  for (const answers of [
    ['127.0.0.1'],
    ['93.184.216.34', '127.0.0.1'],
    ['2606:2800:220:1::1', '::1'],
    ['64:ff9b::7f00:1'],
  ]) {
    await t.rejects(
      get(`http://mixed.example:${port}`, 'public', resolving(...answers)),
      Blocked,
      answers.join(),
    )
  }
  t.equal(hits(), 0)
})

test('the address that was checked is the one that is dialled: a name is resolved once', async t => {
  const { port, hits } = await server(t)
  let asked = 0
  const rebinding: Resolve = (host, answer) => {
    asked++
    resolving('127.0.0.1')(host, answer)
  }
  t.equal(await get(`http://app.example:${port}`, 'private-allowed', rebinding), `host app.example:${port}`)
  t.same([asked, hits()], [1, 1])
})

test('a name without an address is not found', async t => {
  await t.rejects(get('http://nowhere.example', 'public', resolving()), { code: 'ENOTFOUND' })
  const failing: Resolve = (_host, answer) =>
    answer(Object.assign(new Error('no'), { code: 'EAI_AGAIN' }), [])
  await t.rejects(get('http://nowhere.example', 'public', failing), { code: 'EAI_AGAIN' })
})
