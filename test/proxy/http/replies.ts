import { Agent, request } from 'node:http'
import type { Test } from 'tap'
import { AppError } from '../../../shared/errors/app-error.js'
import { type Engine, edge, getRequest, pause, postRequest, until } from './edge.js'
import { sendRaw } from './raw-client.js'

/** What is answered, on one connection after another request, while draining, and when a handler fails. */
export function repliesSuite(t: Test, engine: Engine): void {
  t.test('every reply carries the request id of its exchange, a UUID of version 7', async t => {
    const ids: string[] = []
    const server = await edge(t, engine, exchange => {
      ids.push(exchange.requestId)
      exchange.reply(200, ['content-type', 'text/plain'], 'ok')
    })
    const answer = await sendRaw(server.port, [getRequest('/')], { until: /ok$/ })
    t.match(ids[0], /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    t.ok(answer.text.includes(`x-request-id: ${ids[0]}\r\n`))
    t.equal(server.engine, engine)
  })

  t.test('one connection serves many requests, also after HEAD and 204', async t => {
    const server = await edge(t, engine, exchange => {
      if (exchange.path === '/empty') exchange.reply(204, ['x-a', '1'], '')
      else exchange.reply(200, ['x-a', '1'], 'body')
    })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    const ports = new Set<number>()
    for (let i = 0; i < 60; i++) {
      const method = i % 3 === 1 ? 'HEAD' : 'GET'
      const path = i % 3 === 2 ? '/empty' : '/'
      const reply = await call(server.port, method, path, agent)
      ports.add(reply.localPort)
      t.equal(reply.status, path === '/empty' ? 204 : 200)
      t.equal(reply.body, method === 'GET' && path === '/' ? 'body' : '')
      t.equal(reply.headers['content-length'], path === '/empty' ? undefined : '4')
    }
    t.equal(ports.size, 1)
    t.equal(server.live, 0)
  })

  t.test('a HEAD reply reports the length that it is given', async t => {
    const server = await edge(t, engine, exchange => exchange.reply(200, ['content-length', '1234'], ''))
    const reply = await call(server.port, 'HEAD', '/')
    t.equal(reply.headers['content-length'], '1234')
  })

  t.test('a header that would start another one is refused with 500', async t => {
    const server = await edge(t, engine, exchange => {
      if (exchange.path === '/value') exchange.reply(200, ['x-a', 'b\r\nset-cookie: c=1'], 'ok')
      else if (exchange.path === '/name') exchange.reply(200, ['x-a: b\r\nx-c', 'd'], 'ok')
      else exchange.reply(200, ['x-a', '\u{1F600}'], 'ok')
    })
    for (const path of ['/value', '/name', '/beyond']) {
      const answer = await sendRaw(server.port, [getRequest(path)], { until: /\}\}$/ })
      t.same(answer.statuses, [500], path)
      t.notOk(answer.text.includes('set-cookie'))
    }
    t.equal(server.faults.length, 3)
  })

  t.test('a head that cannot be sent is answered 500 also after the handler has returned', async t => {
    const server = await edge(t, engine, exchange => {
      setTimeout(() => {
        if (exchange.path === '/whole') exchange.reply(200, ['x-a', 'b\r\nc: d'], 'ok')
        else exchange.startStream(200, ['x-a', 'b\r\nc: d'])
        exchange.write('more')
        exchange.end()
      }, 5)
    })
    for (const path of ['/whole', '/streamed']) {
      const answer = await sendRaw(server.port, [getRequest(path)], { until: /\}\}$/ })
      t.same(answer.statuses, [500], path)
    }
    t.equal(server.faults.length, 2)
    t.equal(server.live, 0)
  })

  t.test('a handler that throws answers 500 with the request id, and the process lives', async t => {
    const server = await edge(t, engine, exchange => {
      if (exchange.path === '/now') throw new Error('secret detail')
      if (exchange.path === '/later')
        return Promise.reject(new Error('secret detail')) as unknown as undefined
      if (exchange.path === '/app') throw new AppError('CONFLICT', 'Taken.', { headers: { 'x-why': 'so' } })
      if (exchange.path === '/body')
        exchange.readBody(100, () => {
          throw new Error('secret detail')
        })
      else if (exchange.path === '/stream') {
        exchange.startStream(200, [])
        exchange.write('begun')
        throw new Error('secret detail')
      }
    })
    for (const path of ['/now', '/later', '/body']) {
      const answer = await sendRaw(server.port, [postRequest(path, 'x')], { until: /\}\}$/ })
      const id = /x-request-id: (\S+)/.exec(answer.text)?.[1]
      t.same(answer.statuses, [500], path)
      t.ok(
        answer.text.endsWith(
          `{"error":{"code":"INTERNAL_ERROR","message":"Internal error. Request id: ${id}."}}`,
        ),
      )
      t.notOk(answer.text.includes('secret'))
    }
    const taken = await sendRaw(server.port, [getRequest('/app')], { until: /\}\}$/ })
    t.match(taken.text, /^HTTP\/1\.1 409 Conflict\r\n[\s\S]*x-why: so\r\n[\s\S]*"Taken\."/)
    const cut = await sendRaw(server.port, [getRequest('/stream')])
    t.ok(cut.closed)
    t.notOk(cut.text.endsWith('0\r\n\r\n'), 'a broken stream never looks complete')
    t.equal(server.faults.length, 4, 'the conflict is an answer, not a fault')
    t.equal(server.live, 0)
  })

  t.test('a stream leaves piece by piece and ends properly', async t => {
    const server = await edge(t, engine, exchange => {
      exchange.startStream(201, ['content-type', 'text/event-stream'])
      let left = 3
      const timer = setInterval(() => {
        t.equal(exchange.write(left === 2 ? Buffer.from('data: ü\n\n') : `data: ${left}\n\n`), true)
        if (--left > 0) return
        clearInterval(timer)
        exchange.end()
        exchange.end()
        t.ok(exchange.closed)
      }, 10)
    })
    const reply = await call(server.port, 'GET', '/')
    t.equal(reply.status, 201)
    t.equal(reply.body, 'data: 3\n\ndata: ü\n\ndata: 1\n\n')
    t.equal(server.live, 0)
  })

  t.test('draining: no new connections, kept ones are answered and closed, streams go on', async t => {
    let finish: () => void = () => {}
    const server = await edge(t, engine, exchange => {
      if (exchange.path !== '/stream') {
        exchange.reply(exchange.path === '/empty' ? 204 : 200, [], 'ok')
        return
      }
      exchange.startStream(200, [])
      exchange.write('first ')
      finish = () => {
        exchange.write('last')
        exchange.end()
      }
    })
    const stream = call(server.port, 'GET', '/stream')
    const kept = ['/', '/empty'].map(path =>
      sendRaw(server.port, [getRequest('/'), getRequest(path)], { gapMs: 150, waitMs: 500 }),
    )
    await pause(75)
    server.stopListening()
    server.stopListening()
    t.equal(server.live, 1)
    await t.rejects(call(server.port, 'GET', '/'), { code: 'ECONNREFUSED' })
    for (const answer of await Promise.all(kept)) {
      t.equal(answer.statuses.length, 2)
      t.match(answer.text.slice(10), /HTTP\/1\.1 20[\s\S]*connection: close\r\n/i)
      t.ok(answer.closed)
    }
    finish()
    t.equal((await stream).body, 'first last')
    t.ok(await until(() => server.live === 0))
  })

  t.test('close cuts what is left', async t => {
    let aborted = 0
    const server = await edge(t, engine, exchange => exchange.onAbort(() => aborted++))
    const pending = sendRaw(server.port, [getRequest('/')], { waitMs: 2_000 })
    t.ok(await until(() => server.live === 1))
    server.stopListening()
    server.close()
    const answer = await pending
    t.ok(answer.closed)
    t.equal(answer.text, '')
    t.ok(await until(() => aborted === 1))
  })

  t.test('a port that is taken is refused', async t => {
    const server = await edge(t, engine, exchange => exchange.reply(200, [], 'ok'))
    await t.rejects(edge(t, engine, () => {}, { port: server.port }))
  })
}

interface Reply {
  status: number
  headers: Record<string, unknown>
  body: string
  localPort: number
}

function call(port: number, method: string, path: string, agent?: Agent): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, ...(agent && { agent }) }, response => {
      const localPort = response.socket.localPort ?? 0
      let body = ''
      response.setEncoding('utf8')
      response.on('data', text => {
        body += text
      })
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body, localPort }),
      )
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end()
  })
}
