import { createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import {
  createUpstream,
  type Flight,
  type Upstream,
  type UpstreamError,
  type UpstreamOptions,
} from '../../../proxy/providers/upstream.js'
import { type FakeProvider, type Fault, startFakeProvider } from '../../support/fake-provider.js'

/** How a call went. */
interface Result {
  status: number
  body: string
  error: UpstreamError | null
  retries: number
}

interface Running {
  flight: Flight
  done: Promise<Result>
}

function start(
  upstream: Upstream,
  baseUrl: string,
  onData: (chunk: Buffer) => boolean = () => true,
): Running {
  const result: Result = { status: 0, body: '', error: null, retries: 0 }
  let flight!: Flight
  const done = new Promise<Result>(resolve => {
    const finish = () => resolve({ ...result, retries: flight.retries })
    const body = Buffer.from(
      JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], stream: true }),
    )
    const headers = ['authorization', 'Bearer k', 'content-type', 'application/json']
    flight = upstream.send(
      { baseUrl, path: '/v1/chat/completions', headers, body },
      {
        onHead(status) {
          result.status = status
        },
        onData(chunk) {
          result.body += chunk.toString('latin1')
          return onData(chunk)
        },
        onEnd: finish,
        onError(error) {
          result.error = error
          finish()
        },
      },
    )
  })
  return { flight, done }
}

const call = (upstream: Upstream, baseUrl: string) => start(upstream, baseUrl).done

async function world(
  t: Test,
  options: Partial<UpstreamOptions> = {},
): Promise<{ fake: FakeProvider; upstream: Upstream }> {
  const fake = await startFakeProvider()
  const upstream = createUpstream({ privateHosts: 'allow', ...options })
  t.teardown(async () => {
    await upstream.close()
    await fake.stop()
  })
  return { fake, upstream }
}

async function faulty(t: Test, fault: Fault, options: Partial<UpstreamOptions> = {}): Promise<Result> {
  const { fake, upstream } = await world(t, options)
  fake.next(fault)
  return call(upstream, fake.baseUrl('openai'))
}

test('a call gets status, headers and body, over one kept-alive connection', async t => {
  const { fake, upstream } = await world(t)
  for (let round = 0; round < 5; round++) {
    const { status, body, error } = await call(upstream, fake.baseUrl('openai'))
    t.match({ status, error }, { status: 200, error: null })
    t.match(body, /\[DONE\]/)
    await sleep(1)
  }
  t.equal(fake.connections, 1)
  t.equal(fake.requests[0]?.headers.host, `127.0.0.1:${fake.port}`)
})

test('a header is read by lower-case name, repeated ones joined', async t => {
  const server = createServer(socket => {
    socket.on('data', () =>
      socket.end('HTTP/1.1 200 OK\r\nRetry-AFTER: 7\r\nA: 1\r\na: 2\r\nContent-Length: 0\r\n\r\n'),
    )
  })
  const port = await listening(t, server)
  const upstream = createUpstream({ privateHosts: 'allow' })
  t.teardown(() => upstream.close())
  const seen = await new Promise<unknown[]>((resolve, reject) => {
    upstream.send(
      { baseUrl: `http://127.0.0.1:${port}`, path: '/', headers: [], body: Buffer.from('{}') },
      {
        onHead: (_status, header) => resolve([header('retry-after'), header('a'), header('none')]),
        onData: () => true,
        onEnd: () => {},
        onError: reject,
      },
    )
  })
  t.same(seen, ['7', '1, 2', undefined])
})

test('a refused connection is tried once more, then told', async t => {
  const { fake, upstream } = await world(t)
  await fake.refuse()
  const refused = await call(upstream, fake.baseUrl('openai'))
  t.match(refused, { status: 0, error: { kind: 'refused' }, retries: 1 })
})

test('a connection that is reset before any byte is tried once more and answered', async t => {
  const { fake, upstream } = await world(t)
  fake.next({ reset: true })
  const result = await call(upstream, fake.baseUrl('openai'))
  t.match(result, { status: 200, error: null, retries: 1 })
  t.equal(fake.requests.length, 2)

  fake.next({ reset: true }, { reset: true })
  const twice = await call(upstream, fake.baseUrl('openai'))
  t.match(twice, { status: 0, error: { kind: 'reset' }, retries: 1 })
  t.equal(fake.requests.length, 4, 'never a third time')
})

test('nothing is sent again once a byte of an answer came', async t => {
  const { fake, upstream } = await world(t)
  fake.next({ cut: 300 })
  const result = await call(upstream, fake.baseUrl('openai'))
  t.match(result, { status: 200, error: { kind: 'reset' }, retries: 0 })
  t.equal(result.body.length, 300, 'what came before the cut was delivered')
  t.equal(fake.requests.length, 1)
})

test('an answered error is not tried again', async t => {
  const result = await faulty(t, { status: 503 })
  t.match(result, { status: 503, error: null, retries: 0 })
})

test('a body shorter than declared is broken', async t => {
  const server = createServer(socket => {
    socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{"half":'))
  })
  const port = await listening(t, server)
  const upstream = createUpstream({ privateHosts: 'allow' })
  t.teardown(() => upstream.close())
  const result = await call(upstream, `http://127.0.0.1:${port}/v1`)
  t.equal(result.status, 200)
  t.ok(result.error)
  t.equal(result.retries, 0)
})

test('a server that does not speak HTTP is broken', async t => {
  const server = createServer(socket => socket.on('data', () => socket.end('SSH-2.0-OpenSSH_9.2\r\n')))
  const port = await listening(t, server)
  const upstream = createUpstream({ privateHosts: 'allow' })
  t.teardown(() => upstream.close())
  t.match(await call(upstream, `http://127.0.0.1:${port}/v1`), { status: 0, error: { kind: 'broken' } })
})

test('a provider that hangs is given up: before the head, and between chunks', async t => {
  const timeouts = { head: 200, betweenChunks: 200 }
  t.match(await faulty(t, { hang: true }, { timeouts }), {
    status: 0,
    error: { kind: 'timeout' },
    retries: 0,
  })
  const slow = await faulty(t, { chunkDelay: 5000 }, { timeouts })
  t.match(slow, { status: 200, error: { kind: 'timeout' }, retries: 0 })
})

test('an abort reaches the provider at once, at every stage', async t => {
  const { fake, upstream } = await world(t)
  fake.always({ chunkDelay: 20, chunks: 1000 })
  const waits: number[] = []
  for (let round = 0; round < 50; round++) {
    const before = fake.aborted
    const running = start(upstream, fake.baseUrl('openai'))
    running.done.then(() => t.fail('no handler is called after an abort'))
    await sleep(round % 2 === 0 ? 8 : 30)
    // On a busy machine the call may not have arrived yet, and then there is nothing that the provider sees end.
    while (fake.requests.length <= round) await new Promise(setImmediate)
    const abortedAt = performance.now()
    running.flight.abort()
    running.flight.abort()
    while (fake.aborted === before) await new Promise(setImmediate)
    waits.push(performance.now() - abortedAt)
  }
  waits.sort((a, b) => a - b)
  const p50 = waits[25] ?? 0
  t.comment(`abort seen by the provider: p50 ${p50.toFixed(2)} ms, worst ${waits.at(-1)?.toFixed(2)} ms`)
  t.ok(p50 < 20)
})

test('an abort while the connection is being made leaves nothing behind', async t => {
  const { fake, upstream } = await world(t)
  const running = start(upstream, fake.baseUrl('openai'))
  running.done.then(() => t.fail('no handler is called after an abort'))
  running.flight.abort()
  await sleep(100)
  t.equal(fake.bill.length, 0)
  t.match(await call(upstream, fake.baseUrl('openai')), { status: 200, error: null })
})

test('an idle connection is given up before the server closes it: no call fails of that', async t => {
  // Closes after 100 idle milliseconds without a word of it; ours go after 50.
  let connections = 0
  const server = createServer(socket => {
    connections++
    socket.setTimeout(100, () => socket.destroy())
    socket.on('error', () => {})
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'))
  })
  const port = await listening(t, server)
  const upstream = createUpstream({ privateHosts: 'allow', timeouts: { idle: 50 } })
  t.teardown(() => upstream.close())
  const waits = [5, 45, 49, 51, 60, 95, 98, 100, 102, 110]
  for (const wait of [...waits, ...waits]) {
    const result = await call(upstream, `http://127.0.0.1:${port}/v1`)
    t.match(result, { status: 200, error: null, retries: 0 })
    await sleep(wait)
  }
  t.ok(connections > 1 && connections < 21, `${connections} connections for 20 calls`)
})

test('a server that closes a kept-alive connection under a call costs a retry, not the call', async t => {
  // Answers one request on each connection, and resets it when the second arrives.
  const server = createServer(socket => {
    let requests = 0
    socket.on('error', () => {})
    socket.on('data', () => {
      if (++requests === 1) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      else socket.resetAndDestroy()
    })
  })
  const port = await listening(t, server)
  const upstream = createUpstream({ privateHosts: 'allow' })
  t.teardown(() => upstream.close())
  const baseUrl = `http://127.0.0.1:${port}/v1`
  t.match(await call(upstream, baseUrl), { status: 200, body: 'ok', retries: 0 })
  await sleep(10)
  t.match(await call(upstream, baseUrl), { status: 200, body: 'ok', retries: 1, error: null })
})

test('a paused answer stops the provider, a resumed one is whole', async t => {
  const { fake, upstream } = await world(t)
  const chunks = 4000
  fake.next({ chunks, chunkBytes: 16_000 })
  let paused = false
  const running = start(upstream, fake.baseUrl('openai'), () => {
    if (paused) return true
    paused = true
    return false
  })
  await sleep(500)
  const sent = fake.bill[0]?.completionTokens ?? 0
  await sleep(300)
  t.equal(fake.bill[0]?.completionTokens, sent, 'the provider stands still')
  t.ok(sent < chunks / 4, `${sent} of ${chunks} chunks were sent into buffers`)
  running.flight.resume()
  const { body, error } = await running.done
  t.equal(error, null)
  t.match(body.slice(-40), /\[DONE\]/)
  t.equal(fake.bill[0]?.finished, true)
})

test('a close-delimited body that is cut looks whole here: the stream reader must tell', async t => {
  const result = await faulty(t, { closeDelimited: true, cut: 400 })
  t.match(result, { status: 200, error: null })
  t.notMatch(result.body, /DONE/)
})

test('metadata and link-local addresses are never dialled, private ones only when allowed', async t => {
  const resolve = (
    _host: string,
    answer: (error: null, addresses: { address: string; family: number }[]) => void,
  ) =>
    answer(null, [
      { address: '127.0.0.1', family: 4 },
      { address: '169.254.169.254', family: 4 },
    ])
  const fake = await startFakeProvider()
  const allow = createUpstream({ privateHosts: 'allow', resolve })
  const deny = createUpstream({
    privateHosts: 'deny',
    resolve: (_host, answer) => answer(null, [{ address: '10.0.0.1', family: 4 }]),
  })
  t.teardown(() => Promise.all([allow.close(), deny.close(), fake.stop()]))
  const blocked = { status: 0, error: { kind: 'blocked' }, retries: 0 }
  for (const host of [
    '169.254.169.254',
    '[fe80::1]',
    '[::ffff:169.254.169.254]',
    '2852039166',
    'rebound.example',
  ]) {
    t.match(await call(allow, `http://${host}:${fake.port}/v1`), blocked, host)
  }
  for (const host of ['127.0.0.1', '[::1]', '0x7f.1', '10.1.2.3', 'inside.example']) {
    t.match(await call(deny, `http://${host}:${fake.port}/v1`), blocked, host)
  }
  t.equal(fake.requests.length, 0)
})

test('the checked address is the one that is dialled, and Host stays the name', async t => {
  const fake = await startFakeProvider()
  let asked = 0
  const upstream = createUpstream({
    privateHosts: 'allow',
    // A second look-up would lead elsewhere.
    resolve: (_host, answer) =>
      answer(null, [{ address: ++asked === 1 ? '127.0.0.1' : '169.254.169.254', family: 4 }]),
  })
  t.teardown(() => Promise.all([upstream.close(), fake.stop()]))
  t.match(await call(upstream, `http://models.example:${fake.port}/v1`), { status: 200, error: null })
  t.equal(asked, 1)
  t.equal(fake.requests[0]?.headers.host, `models.example:${fake.port}`)
})

test('a name without an address is refused', async t => {
  const upstream = createUpstream({ privateHosts: 'allow', resolve: (_host, answer) => answer(null, []) })
  t.teardown(() => upstream.close())
  t.match(await call(upstream, 'http://nowhere.example/v1'), { status: 0, error: { kind: 'refused' } })
})

test('closing cuts live calls and tells them', async t => {
  const { fake, upstream } = await world(t)
  fake.next({ chunkDelay: 1000 })
  const running = start(upstream, fake.baseUrl('openai'))
  await sleep(100)
  await upstream.close()
  t.match(await running.done, { error: { kind: 'aborted' } })
})

test('the number of pools is bounded; busy ones stay', async t => {
  const fakes = await Promise.all([startFakeProvider(), startFakeProvider(), startFakeProvider()])
  const upstream = createUpstream({ privateHosts: 'allow', poolsMax: 2 })
  t.teardown(() => Promise.all([upstream.close(), ...fakes.map(fake => fake.stop())]))
  const [slow, second, third] = fakes
  slow!.next({ chunkDelay: 30 })
  const running = start(upstream, slow!.baseUrl('openai'))
  t.match(await call(upstream, second!.baseUrl('openai')), { error: null })
  t.match(await call(upstream, third!.baseUrl('openai')), { error: null })
  await sleep(20)
  t.equal(second!.connections, 0, 'the idle one made room')
  t.match(await running.done, { status: 200, error: null })
})

function listening(t: Test, server: ReturnType<typeof createServer>): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', socket => sockets.add(socket))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return new Promise(resolve =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
  )
}

test('a call that never got a connection counts as unsent: who leaves before that owes nothing', async t => {
  const fake = await startFakeProvider()
  t.teardown(() => fake.stop())
  fake.always({ hang: true })
  const upstream = createUpstream({ privateHosts: 'allow', resolve: () => {} })
  t.teardown(() => upstream.close())
  const waiting = start(upstream, `http://nobody.test:${fake.port}`).flight
  const hanging = start(upstream, fake.origin).flight
  while (fake.requests.length === 0) await sleep(5)
  t.same([waiting.sent, hanging.sent], [false, true])
  waiting.abort()
  hanging.abort()
  t.equal(waiting.sent, false)
})
