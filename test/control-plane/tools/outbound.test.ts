import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { callUrl, OutboundError, type OutboundRequest } from '../../../control-plane/tools/outbound-call.js'
import { type OutboundRules, refusedAddress } from '../../../control-plane/tools/outbound-url.js'
import { allowedHost } from '../../../shared/network/allowed-hosts.js'
import type { Resolve } from '../../../shared/network/guarded-connect.js'
import { resolving } from '../../support/resolving.js'
import { hostileHosts } from './hostile-hosts.js'

const nobody = new AbortController().signal
const rulesFor = (allowed: string[], resolve?: Resolve): OutboundRules => ({
  allowed: allowed.map(entry => allowedHost(entry) as NonNullable<ReturnType<typeof allowedHost>>),
  ...(resolve !== undefined && { resolve }),
})
const strict = rulesFor([])
const request = (url: string, more: Partial<OutboundRequest> = {}): OutboundRequest => ({
  url: new URL(url),
  method: 'GET',
  headers: [],
  body: null,
  ...more,
})

async function server(t: Test, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  let hits = 0
  const http = createServer((request, response) => {
    hits++
    answer(request, response)
  })
  await new Promise<void>(listening => http.listen(0, '::', listening))
  t.teardown(() => {
    http.closeAllConnections()
    http.close()
  })
  return { port: (http.address() as AddressInfo).port, hits: () => hits }
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'reached'
  } catch (error) {
    return error instanceof OutboundError ? error.code : String(error)
  }
}

test('64 hostile hosts are refused at commit and at call time, with no hit', async t => {
  const { port, hits } = await server(t, (_request, response) => response.end('secret'))
  let contained = 0
  for (const host of hostileHosts) {
    const url = `http://${host}:${port}/x`
    const refused = await refusedAddress(url, strict)
    t.type(refused, 'string', `${host} at commit: ${refused}`)
    const called = URL.canParse(url) ? await codeOf(callUrl(strict, request(url), nobody)) : 'no URL'
    t.ok(['address_refused', 'no URL'].includes(called), `${host} at call: ${called}`)
    if (refused !== null && called !== 'reached') contained++
  }
  t.same([hostileHosts.length, contained, hits()], [64, 64, 0])
})

test('a name that resolves to a private address is refused at commit; one that does not resolve waits for the call', async t => {
  const commit = (resolve: Resolve) =>
    refusedAddress('https://api.example.com/{{arg.id}}', rulesFor([], resolve))
  t.equal(await commit(resolving('93.184.216.34')), null)
  t.equal(await commit(resolving('10.1.2.3')), 'api.example.com resolves to a private address.')
  t.equal(await commit(resolving('93.184.216.34', '::1')), 'api.example.com resolves to a loopback address.')
  t.equal(await commit(resolving()), null)
  const failing: Resolve = (_host, answer) =>
    answer(Object.assign(new Error('no'), { code: 'ENOTFOUND' }), [])
  t.equal(await commit(failing), null)
})

test('rebinding between check and call reaches nothing', async t => {
  const { port, hits } = await server(t, (_request, response) => response.end('secret'))
  let asked = 0
  const flipping: Resolve = (host, answer) => {
    asked++
    resolving(asked % 2 === 1 ? '93.184.216.34' : '127.0.0.1')(host, answer)
  }
  const rules = rulesFor([], flipping)
  for (let round = 0; round < 6; round++) {
    t.equal(await refusedAddress(`http://rebind.example:${port}/`, rules), null)
    t.equal(
      await codeOf(callUrl(rules, request(`http://rebind.example:${port}/`), nobody)),
      'address_refused',
    )
  }
  t.equal(hits(), 0)
})

test('mixed records are refused', async t => {
  const { port, hits } = await server(t, (_request, response) => response.end('secret'))
  const rules = rulesFor([], resolving('93.184.216.34', '127.0.0.1'))
  t.equal(await codeOf(callUrl(rules, request(`http://mixed.example:${port}/`), nobody)), 'address_refused')
  t.equal(hits(), 0)
})

test('a redirect is an answer and is not followed', async t => {
  const inner = await server(t, (_request, response) => response.end('secret'))
  for (const status of [301, 302, 303, 307, 308]) {
    const outer = await server(t, (_request, response) => {
      response.writeHead(status, { location: `http://127.0.0.1:${inner.port}/` }).end()
    })
    const answer = await callUrl(rulesFor(['127.0.0.1']), request(`http://127.0.0.1:${outer.port}/`), nobody)
    t.equal(answer.status, status)
  }
  t.equal(inner.hits(), 0)
})

test('listed hosts are reached, on the port that is listed; metadata addresses never', async t => {
  const { port, hits } = await server(t, (incoming, response) =>
    response.end(`host ${incoming.headers.host}`),
  )
  const rules = rulesFor(
    [`127.0.0.1:${port}`, 'app.internal', '169.254.169.254', 'metadata'],
    resolving('127.0.0.1'),
  )
  t.equal((await callUrl(rules, request(`http://127.0.0.1:${port}/`), nobody)).text, `host 127.0.0.1:${port}`)
  t.equal(
    (await callUrl(rules, request(`http://app.internal:${port}/`), nobody)).text,
    `host app.internal:${port}`,
  )
  t.equal(hits(), 2)
  const other = await server(t, (_request, response) => response.end('secret'))
  for (const host of [`127.0.0.1:${other.port}`, `other.internal:${port}`, '169.254.169.254', 'metadata']) {
    t.equal(await codeOf(callUrl(rules, request(`http://${host}/`), nobody)), 'address_refused', host)
  }
  t.equal(other.hits(), 0)
})

test('only web URLs on web ports are called', async t => {
  for (const url of [
    'ftp://example.com/',
    'file:///etc/passwd',
    'http://user:pw@example.com/',
    'http://example.com:25/',
    'https://example.com:22/',
  ]) {
    t.type(await refusedAddress(url, rulesFor([], resolving('93.184.216.34'))), 'string', url)
    t.equal(await codeOf(callUrl(strict, request(url), nobody)), 'address_refused', url)
  }
  t.equal(await refusedAddress('relative/path', strict), 'it is not an absolute URL.')
  for (const url of ['https://example.com:8443/', 'http://example.com:3000/']) {
    t.equal(await refusedAddress(url, rulesFor([], resolving('93.184.216.34'))), null, url)
  }
})

test('a response is at most a megabyte, unpacked as well', async t => {
  const local = rulesFor(['127.0.0.1'])
  const big = await server(t, (_request, response) => response.end('x'.repeat(1_100_000)))
  t.equal(
    await codeOf(callUrl(local, request(`http://127.0.0.1:${big.port}/`), nobody)),
    'response_too_large',
  )
  const fits = await server(t, (_request, response) => response.end('x'.repeat(1_000_000)))
  t.equal((await callUrl(local, request(`http://127.0.0.1:${fits.port}/`), nobody)).text.length, 1_000_000)
  const packed = await server(t, (incoming, response) => {
    response.setHeader('content-encoding', 'gzip')
    response.end(gzipSync(incoming.url === '/bomb' ? Buffer.alloc(50_000_000) : 'plain'))
  })
  t.equal((await callUrl(local, request(`http://127.0.0.1:${packed.port}/`), nobody)).text, 'plain')
  t.equal(
    await codeOf(callUrl(local, request(`http://127.0.0.1:${packed.port}/bomb`), nobody)),
    'response_too_large',
  )
})

test('what goes wrong on the way is told apart', async t => {
  const local = rulesFor(['127.0.0.1'])
  const closed = await server(t, () => {})
  const cut = createSocketServer((socket: Socket) => socket.once('data', () => socket.destroy()))
  const babble = createSocketServer((socket: Socket) =>
    socket.once('data', () => socket.end('not http\r\n\r\n')),
  )
  for (const one of [cut, babble]) {
    await new Promise<void>(listening => one.listen(0, '127.0.0.1', listening))
    t.teardown(() => one.close())
  }
  const portOf = (one: typeof cut) => (one.address() as AddressInfo).port
  const call = (port: number, signal = nobody) =>
    codeOf(callUrl(local, request(`http://127.0.0.1:${port}/`), signal))
  t.equal(await call(portOf(cut)), 'connection_reset')
  t.equal(await call(portOf(babble)), 'response_broken')
  t.equal(await call(1), 'connection_refused')
  t.equal(
    await codeOf(callUrl(rulesFor([], resolving()), request('http://nowhere.example/'), nobody)),
    'dns_failure',
  )
  t.equal(await codeOf(callUrl(local, request(`https://127.0.0.1:${closed.port}/`), nobody)), 'tls_failure')
  t.equal(await call(closed.port, AbortSignal.timeout(50)), 'client_disconnected')
})

test('a server that stays silent for five seconds is given up', async t => {
  const { port } = await server(t, () => {})
  const from = performance.now()
  const code = await codeOf(callUrl(rulesFor(['127.0.0.1']), request(`http://127.0.0.1:${port}/`), nobody))
  const took = performance.now() - from
  t.equal(code, 'timeout')
  t.ok(took > 4_000 && took < 9_000, `${Math.round(took)} ms`)
})

test('method, headers and body arrive as they were given, and nothing else is added', async t => {
  const { port } = await server(t, (incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', chunk => chunks.push(chunk))
    incoming.on('end', () => {
      const { method, url, headers } = incoming
      response.setHeader('x-a', ['1', '2'])
      response.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString() }))
    })
  })
  const sent = request(`http://127.0.0.1:${port}/p%20q?a=1&b=%2F#gone`, {
    method: 'POST',
    headers: [
      ['x-one', '1'],
      ['x-one', '2'],
    ],
    body: 'ä',
  })
  const answer = await callUrl(rulesFor(['127.0.0.1']), sent, nobody)
  t.equal(answer.headers['x-a'], '1, 2')
  t.same(JSON.parse(answer.text), {
    method: 'POST',
    url: '/p%20q?a=1&b=%2F',
    headers: { host: `127.0.0.1:${port}`, connection: 'close', 'x-one': '1, 2', 'content-length': '2' },
    body: 'ä',
  })
})
