import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createForward } from '../../proxy/forward.js'
import { createLogger } from '../../shared/log/logger.js'
import { engines } from '../support/engines.js'
import { edge, getRequest, pause, postRequest, silentClient, until } from './http/edge.js'
import { sendRaw } from './http/raw-client.js'

const log = createLogger('test', 'silent')

interface Upstream {
  url: string
  seen: IncomingMessage[]
}

async function upstream(
  t: Test,
  handler: (req: IncomingMessage, res: ServerResponse) => void,
): Promise<Upstream> {
  const seen: IncomingMessage[] = []
  const server = createServer((req, res) => {
    seen.push(req)
    handler(req, res)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

for (const engine of engines) {
  const proxy = async (t: Test, controlPlaneUrl: string) => {
    const forward = createForward({ controlPlaneUrl, internalToken: 'internal-token', log })
    t.teardown(() => forward.close())
    return edge(t, engine, exchange => forward.handle(exchange))
  }

  t.test(`${engine}: method, path, query, headers and body reach the control plane as sent`, async t => {
    const bodies: string[] = []
    const { url, seen } = await upstream(t, (req, res) => {
      let body = ''
      req.on('data', text => {
        body += text
      })
      req.on('end', () => {
        bodies.push(body)
        res.writeHead(207, [
          'content-type',
          'text/plain',
          'set-cookie',
          'a=1; Path=/',
          'set-cookie',
          'b=2',
          'x-own',
          'y',
          'content-length',
          '6',
        ])
        res.end('answer')
      })
    })
    const server = await proxy(t, url)
    const headers =
      'X-Custom: a\r\nx-custom: b\r\nAuthorization: Bearer k\r\nConnection: x-hop, keep-alive\r\nX-Hop: 1\r\nTE: trailers\r\n' +
      'X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nForwarded: for=6.6.6.6\r\nX-Request-Id: mine\r\nX-Agh-Internal: guess\r\n'
    const request = postRequest('/api/v1/a%20b?x=1&y=%2F', 'hello', headers).replace('POST', 'PATCH')
    const answer = await sendRaw(server.port, [request], { until: /answer$/ })
    const [req] = seen
    t.equal(req?.method, 'PATCH')
    t.equal(req?.url, '/api/v1/a%20b?x=1&y=%2F')
    t.same(bodies, ['hello'])
    t.equal(req?.headers['x-custom'], 'a, b')
    t.equal(req?.headers.authorization, 'Bearer k')
    t.equal(req?.headers['content-length'], '5')
    t.same(
      [req?.headers['x-hop'], req?.headers.te, req?.headers.forwarded],
      [undefined, undefined, undefined],
    )
    t.equal(req?.headers['x-forwarded-for'], '127.0.0.1')
    t.equal(req?.headers['x-forwarded-proto'], 'http')
    t.equal(req?.headers['x-forwarded-host'], 'x')
    t.equal(req?.headers['x-agh-internal'], 'internal-token')
    const id = /x-request-id: (\S+)/.exec(answer.text)?.[1]
    t.equal(req?.headers['x-request-id'], id)
    t.same(answer.statuses, [207])
    t.match(answer.text, /set-cookie: a=1; Path=\/\r\nset-cookie: b=2\r\nx-own: y\r\n/i)
    t.equal(answer.text.match(/^date:/gim)?.length, 1)
    t.equal(answer.text.match(/^content-length: 6\r/gim)?.length, 1)
    t.equal(answer.text.match(/^x-request-id:/gim)?.length, 1)
  })

  t.test(`${engine}: HEAD, 204, 304 and empty answers keep their shape`, async t => {
    const { url } = await upstream(t, (req, res) => {
      const status = Number(req.url?.slice(1))
      if (req.method === 'HEAD') res.writeHead(status, { 'content-length': '77' })
      else res.writeHead(status, { etag: '"e"' })
      res.end()
    })
    const server = await proxy(t, url)
    const head = await sendRaw(server.port, [getRequest('/200').replace('GET', 'HEAD')], { waitMs: 60 })
    t.match(head.text, /^HTTP\/1\.1 200 OK\r\n[\s\S]*content-length: 77\r\n[\s\S]*\r\n\r\n$/i)
    for (const status of [204, 304, 418]) {
      const answer = await sendRaw(server.port, [getRequest(`/${status}`)], { waitMs: 60 })
      t.same(answer.statuses, [status])
      t.match(answer.text, /etag: "e"\r\n[\s\S]*\r\n\r\n(0\r\n\r\n)?$/)
    }
    t.equal(server.live, 0)
  })

  t.test(`${engine}: an upload streams through and an answer streams back, byte for byte`, async t => {
    const total = 12 * 1024 * 1024
    const { url } = await upstream(t, (req, res) => {
      res.writeHead(200, { 'content-type': 'application/octet-stream' })
      req.pipe(res)
    })
    const server = await proxy(t, url)
    const body = Buffer.alloc(total, 'round trip ')
    const response = await fetch(`http://127.0.0.1:${server.port}/echo`, { method: 'POST', body })
    const hash = createHash('sha256')
    let received = 0
    for await (const chunk of response.body!) {
      received += chunk.length
      hash.update(chunk)
    }
    t.equal(received, total)
    t.equal(hash.digest('hex'), createHash('sha256').update(body).digest('hex'))
    t.ok(await until(() => server.live === 0))
  })

  t.test(`${engine}: a slow upload is passed on piece by piece, not collected`, async t => {
    const pieces: string[] = []
    const { url } = await upstream(t, (req, res) => {
      req.on('data', text => pieces.push(String(text)))
      req.on('end', () => res.end('done'))
    })
    const server = await proxy(t, url)
    const request = postRequest('/slow', 'onetwothree')
    const cut = request.length - 'twothree'.length
    const sent = sendRaw(server.port, [request.slice(0, cut), 'two', 'three'], { gapMs: 120, until: /done$/ })
    await pause(100)
    t.same(pieces, ['one'])
    t.same((await sent).statuses, [200])
    t.same(pieces, ['one', 'two', 'three'])
  })

  t.test(`${engine}: an answer's first piece does not wait for its last`, async t => {
    const { url } = await upstream(t, (_, res) => {
      res.write('first')
      t.teardown(() => res.end('last'))
    })
    const server = await proxy(t, url)
    const { text } = await sendRaw(server.port, [getRequest('/')], { until: /first/, waitMs: 5_000 })
    t.match(text, /first/)
  })

  t.test(`${engine}: a client that does not read holds the control plane back`, async t => {
    const total = 40 * 1024 * 1024
    let written = 0
    const { url } = await upstream(t, (_, res) => {
      const block = Buffer.alloc(64 * 1024, 'x')
      const produce = () => {
        while (written < total) {
          written += block.length
          if (!res.write(block)) return
        }
        res.end()
      }
      res.on('drain', produce)
      produce()
    })
    const server = await proxy(t, url)
    const socket = await silentClient(t, server.port, getRequest('/'))
    await pause(600)
    const held = written
    await pause(300)
    t.ok(held < total, `${held} bytes were produced`)
    t.equal(written, held)
    let received = 0
    socket.on('data', data => {
      received += data.length
    })
    socket.resume()
    t.ok(await until(() => received > total, 10_000))
  })

  t.test(`${engine}: a client that leaves is gone for the control plane too`, async t => {
    let closed = 0
    const { url, seen } = await upstream(t, (req, res) => {
      res.on('close', () => closed++)
      if (req.url === '/stream') res.write('some')
    })
    const server = await proxy(t, url)
    const stages = [
      getRequest('/wait'),
      getRequest('/stream'),
      postRequest('/up', 'x'.repeat(50)).slice(0, -20),
    ]
    for (const bytes of stages) await sendRaw(server.port, [bytes], { waitMs: 80 })
    t.equal(seen.length, 3)
    t.ok(await until(() => closed === 3))
    t.equal(server.live, 0)
  })

  t.test(`${engine}: an answer that breaks off does not look complete`, async t => {
    const { url } = await upstream(t, (req, res) => {
      if (req.url === '/short') res.writeHead(200, { 'content-length': '10' })
      res.write('part')
      setTimeout(() => req.socket.destroy(), 30)
    })
    const server = await proxy(t, url)
    const streamed = await sendRaw(server.port, [getRequest('/')], { waitMs: 1_000 })
    t.ok(streamed.closed)
    t.notOk(streamed.text.includes('\r\n0\r\n'))
    const whole = await sendRaw(server.port, [getRequest('/short')], { until: /\}\}$/ })
    t.same(whole.statuses, [503])
  })

  t.test(`${engine}: without a control plane the answer is 503 with Retry-After`, async t => {
    const server = await proxy(t, 'http://127.0.0.1:1')
    for (const request of [getRequest('/api/v1/prompts'), postRequest('/api/v1/prompts', '{}')]) {
      const answer = await sendRaw(server.port, [request], { until: /\}\}$/, waitMs: 3_000 })
      t.same(answer.statuses, [503])
      t.match(answer.text, /retry-after: 1\r\n/)
      t.ok(
        answer.text.endsWith(
          '{"error":{"code":"UNAVAILABLE","message":"The control plane cannot be reached."}}',
        ),
      )
    }
    t.equal(server.live, 0)
  })

  t.test(`${engine}: internal endpoints cannot be reached through the proxy`, async t => {
    const { url, seen } = await upstream(t, (_, res) => res.end('secret'))
    const server = await proxy(t, url)
    for (const path of [
      '/internal/directory',
      '/%69nternal/x',
      '//internal/x',
      '/api/../internal/x',
      '/INTERNAL/x',
    ]) {
      const answer = await sendRaw(server.port, [getRequest(path)], { until: /\}\}$/ })
      t.same(answer.statuses, [404], path)
      t.ok(answer.text.endsWith('{"error":{"code":"NOT_FOUND","message":"Route not found."}}'))
    }
    t.equal(seen.length, 0)
  })

  t.test(`${engine}: a body above 20 MB answers 413, declared or not`, async t => {
    let received = 0
    const { url } = await upstream(t, (req, res) => {
      req.on('data', data => {
        received += data.length
      })
      req.on('end', () => res.end('stored'))
    })
    const server = await proxy(t, url)
    const megabyte = 'x'.repeat(1024 * 1024)
    const largest = await sendRaw(server.port, [postRequest('/', megabyte.repeat(20))], {
      until: /stored$/,
      waitMs: 10_000,
    })
    t.same(largest.statuses, [200])
    t.equal(received, 20 * 1024 * 1024)
    const declared = await sendRaw(
      server.port,
      [`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${21 * 1024 * 1024}\r\n\r\n`],
      { until: /\}\}/, waitMs: 2_000 },
    )
    t.same(declared.statuses, [413])
    t.match(declared.text, /"code":"PAYLOAD_TOO_LARGE"/)
    const chunk = `${megabyte.length.toString(16)}\r\n${megabyte}\r\n`
    const chunked = `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(21)}0\r\n\r\n`
    const counted = await sendRaw(server.port, [chunked], { waitMs: 10_000, until: /\}\}/ })
    t.same(counted.statuses, [413])
    t.ok(await until(() => server.live === 0))
  })
}
