import type { Test } from 'tap'
import { type Engine, edge, getRequest, postRequest } from './edge.js'
import { hidden, type RawCase, rawCases } from './raw-cases.js'
import { type RawAnswer, sendRaw } from './raw-client.js'

/** How requests are read, byte by byte: framing, limits of the head, smuggling. */
export function parsingSuite(t: Test, engine: Engine): void {
  for (const moment of ['at once', 'later'] as const) {
    t.test(`a hidden request is never answered; replies come ${moment}`, async t => {
      const seen: string[] = []
      const server = await edge(t, engine, exchange => {
        seen.push(exchange.path)
        exchange.readBody(1_000_000, () => {
          if (moment === 'at once') exchange.reply(200, [], 'ok')
          else setTimeout(() => exchange.reply(200, [], 'ok'), 10)
        })
      })
      await inBatches(rawCases, 10, async rawCase => {
        check(t, engine, rawCase, await sendRaw(server.port, [rawCase.bytes], { waitMs: 250 }), moment)
      })
      t.notOk(seen.includes('/hidden'), 'no handler saw it')
      t.equal(server.faults.length, 0)
    })
  }

  t.test(
    'a request hidden behind a refused head is not answered when it comes in its own packet',
    async t => {
      const seen: string[] = []
      const server = await edge(t, engine, exchange => {
        seen.push(exchange.path)
        exchange.reply(200, [], 'ok')
      })
      const refused = 'POST /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n'
      const answer = await sendRaw(server.port, [refused, hidden], { gapMs: 20 })
      t.same(answer.statuses, [400])
      t.ok(answer.closed)
      t.same(seen, [])
    },
  )

  t.test('a malformed head answers 400 in the error envelope and closes', async t => {
    const server = await edge(t, engine, exchange => exchange.reply(200, [], 'ok'))
    const answer = await sendRaw(server.port, [getRequest('/', 'Host: y\r\n')])
    t.match(answer.text, /^HTTP\/1\.1 400 Bad Request\r\n/)
    t.match(answer.text, /x-request-id: [0-9a-f-]{36}\r\n/)
    t.ok(answer.text.includes('{"error":{"code":"VALIDATION_ERROR","message":"Malformed HTTP request."}}'))
    t.ok(answer.closed)
  })

  t.test('a request may be split at every byte', async t => {
    const server = await edge(t, engine, exchange => {
      exchange.readBody(100, result => {
        const bytes = result.kind === 'complete' ? result.bytes : 'too large'
        exchange.reply(200, [], bytes)
      })
    })
    const request = postRequest('/echo?q=1', 'hello', 'x-one: 1\r\n')
    const lineEnd = request.indexOf('\n')
    const cuts = Array.from({ length: request.length - 1 }, (_, i) => i + 1)
    await inBatches(cuts, 20, async at => {
      const pieces = [request.slice(0, at), request.slice(at)]
      const answer = await sendRaw(server.port, pieces, { gapMs: 15, until: /hello$|505/ })
      // Known limit of this uWebSockets.js build: it wants the request line in one packet, and answers 505 to one that
      // ends between the method and the line break (uNetworking/uWebSockets#1776). On a machine that was busy for a
      // moment the two arrive as one.
      const known = engine === 'uwebsockets' && at >= 'POST'.length && at <= lineEnd
      const [status] = answer.statuses
      t.ok(answer.statuses.length === 1 && (status === 200 || (known && status === 505)), `split at ${at}`)
    })
  })

  t.test('a head may have 16 KB, in one packet or in many', async t => {
    const server = await edge(t, engine, exchange => exchange.reply(200, [], 'ok'))
    const small = getRequest('/', `x: ${'a'.repeat(12_000)}\r\n`)
    const large = getRequest('/', `x: ${'a'.repeat(20_000)}\r\n`)
    for (const pieces of [[small], slices(small, 1_000)]) {
      t.same(
        (await sendRaw(server.port, pieces, { until: /ok$/ })).statuses,
        [200],
        `${pieces.length} packets`,
      )
    }
    for (const pieces of [[large], slices(large, 1_000)]) {
      const answer = await sendRaw(server.port, pieces)
      t.ok(answer.closed)
      t.notOk(answer.statuses.includes(200), `${pieces.length} packets`)
    }
  })

  t.test('header values beyond ASCII are text for us and stay bytes for others', async t => {
    const names: (string | undefined)[] = []
    const flats: string[] = []
    const server = await edge(t, engine, exchange => {
      names.push(exchange.headers.get('x-trace-name'), exchange.headers.get('x-list'))
      flats.push(...exchange.headers.flat)
      exchange.reply(200, ['x-name', 'Gr\xf6\xdfe'], 'ok')
    })
    const bytes = Buffer.from('Größe').toString('latin1')
    const headers = `X-Trace-Name: ${bytes}\r\nx-list: a\r\nX-LIST: b\r\n`
    const answer = await sendRaw(server.port, [getRequest('/', headers)], { until: /ok$/ })
    t.same(names, ['Größe', 'a, b'])
    t.ok(flats.includes(bytes))
    t.ok(answer.text.includes('x-name: Gr\xf6\xdfe\r\n'), 'a reply header is one byte per character')
  })
}

function check(t: Test, engine: Engine, rawCase: RawCase, answer: RawAnswer, moment: string): void {
  const { name, expected, serves } = rawCase
  const served = answer.statuses.filter(status => status === 200).length
  if (serves?.engine === engine) {
    t.equal(served, 1, `${name}: known limit`)
    t.ok(answer.closed, `${name}: closed behind it`)
  } else if (expected === 'served') t.equal(served, 1, name)
  else if (expected === 'refused') t.equal(served, 0, name)
  else if (expected === 'either') t.ok(served <= 1, name)
  else {
    // Known limit: uWebSockets.js closes when a second request comes before the first is answered.
    const cut = engine === 'uwebsockets' && moment === 'later'
    t.equal(served, cut ? 0 : 2, name)
    t.equal(answer.closed, cut, name)
  }
}

export async function inBatches<T>(items: readonly T[], size: number, act: (item: T) => Promise<void>) {
  for (let i = 0; i < items.length; i += size) await Promise.all(items.slice(i, i + size).map(act))
}

const slices = (text: string, size: number) =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size))
