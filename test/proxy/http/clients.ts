import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import type { Test } from 'tap'
import type { Exchange } from '../../../proxy/http/exchange.js'
import { type Engine, edge, getRequest, pause, postRequest, silentClient, until } from './edge.js'
import { sendRaw } from './raw-client.js'

/** Clients that leave, stall, send too much, or do not read. */
export function clientsSuite(t: Test, engine: Engine): void {
  t.test('a client may leave at every stage; nothing throws and nothing is left', async t => {
    let aborts = 0
    const left: Exchange[] = []
    const server = await edge(t, engine, exchange => {
      exchange.onAbort(() => {
        aborts++
        left.push(exchange)
      })
      if (exchange.path === '/body') exchange.readBody(1_000_000, () => t.fail('the body never completes'))
      if (exchange.path === '/pieces') {
        exchange.streamBody(
          () => {},
          () => t.fail('the body never ends'),
        )
      }
      if (exchange.path === '/stream') {
        exchange.startStream(200, [])
        exchange.write('first')
      }
      if (exchange.path === '/done') exchange.reply(200, [], 'ok')
    })
    const unfinished = (path: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf`
    const stages = [
      '',
      'GET / HT',
      getRequest('/wait'),
      unfinished('/body'),
      unfinished('/pieces'),
      unfinished('/unread'),
      getRequest('/stream'),
      getRequest('/done'),
    ]
    for (const bytes of stages) await sendRaw(server.port, [bytes], { waitMs: 30 })
    t.ok(await until(() => server.live === 0))
    t.equal(aborts, 5, 'one per exchange that was open; not for the one that was answered')
    for (const exchange of left) {
      t.ok(exchange.closed)
      exchange.readBody(10, () => t.fail('not called any more'))
      exchange.streamBody(
        () => t.fail('not called any more'),
        () => t.fail('not called any more'),
      )
      exchange.reply(200, [], 'late')
      exchange.startStream(200, [])
      exchange.write('late')
      exchange.onDrain(() => {})
      exchange.end()
      exchange.destroy()
      t.equal(exchange.headers.get('host'), 'x')
    }
    t.same(server.faults, [])
  })

  t.test('a client that closes its sending half is taken for gone', async t => {
    let aborted = false
    const server = await edge(t, engine, exchange => {
      exchange.onAbort(() => {
        aborted = true
      })
      setTimeout(() => exchange.reply(200, [], 'ok'), 200)
    })
    const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true })
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    socket.end(getRequest('/'))
    t.ok(await until(() => aborted, 1_000))
    await pause(250)
    t.same(server.faults, [])
  })

  t.test('destroy leaves a reply that cannot be taken for a complete one', async t => {
    const server = await edge(t, engine, exchange => {
      exchange.onAbort(() => t.fail('the client did not leave'))
      exchange.startStream(200, [])
      exchange.write('some')
      setTimeout(() => exchange.destroy(), 20)
    })
    const answer = await sendRaw(server.port, [getRequest('/')], { waitMs: 1_000 })
    t.ok(answer.closed)
    t.ok(answer.text.includes('some'))
    t.notOk(answer.text.includes('\r\n0\r\n'))
  })

  t.test('a body of 10 MB arrives whole; one of 10.1 MB answers 413 before it is read', async t => {
    const limit = 10 * 1024 * 1024
    let received = 0
    const server = await edge(t, engine, exchange => {
      exchange.readBody(limit, result => {
        if (result.kind === 'tooLarge') return exchange.reply(413, [], 'too large')
        received += result.bytes.length
        exchange.reply(200, [], createHash('sha256').update(result.bytes).digest('hex'))
      })
    })
    const body = Buffer.alloc(limit, 'abcdefg').toString('latin1')
    const digest = createHash('sha256').update(body, 'latin1').digest('hex')
    const whole = await sendRaw(server.port, [postRequest('/', body)], {
      waitMs: 5_000,
      until: /[0-9a-f]{64}$/,
    })
    t.ok(whole.text.endsWith(digest))
    const chunked = `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`
    const pieces = `${(1024 * 1024).toString(16)}\r\n${body.slice(0, 1024 * 1024)}\r\n`.repeat(10)
    const inChunks = await sendRaw(server.port, [chunked, pieces, '0\r\n\r\n'], {
      waitMs: 5_000,
      until: /[0-9a-f]{64}$/,
    })
    t.same(inChunks.statuses, [200])
    t.equal(received, 2 * limit)

    const tooMuch = `${body}${'x'.repeat(100_000)}`
    const declared = postRequest('/', tooMuch)
    const head = declared.slice(0, 100)
    const early = await sendRaw(server.port, [head], { waitMs: 1_000, until: /too large/ })
    t.same(early.statuses, [413], 'answered with 100 bytes sent')
    const sent = await sendRaw(server.port, [declared], { waitMs: 5_000 })
    t.same(sent.statuses, [413], 'a client that sends everything first gets the answer too')
    t.ok(sent.closed)
    const endless = await sendRaw(server.port, [chunked, pieces, pieces], { waitMs: 5_000 })
    t.same(endless.statuses, [413], 'nor does it need a length')
    t.ok(endless.closed)
    t.equal(received, 2 * limit)
  })

  t.test('a body is there for a handler that asks for it later', async t => {
    const server = await edge(t, engine, exchange => {
      setTimeout(() => {
        exchange.readBody(1_000_000, result => {
          exchange.reply(200, [], result.kind === 'complete' ? `got ${result.bytes.length}` : 'too large')
        })
      }, 60)
    })
    const request = postRequest('/', 'x'.repeat(300_000))
    const answer = await sendRaw(server.port, [request.slice(0, 80), request.slice(80)], {
      waitMs: 3_000,
      until: /got \d+$/,
    })
    t.ok(answer.text.endsWith('got 300000'))
  })

  t.test('a streamed body keeps its bytes and can hold the client back', async t => {
    const total = 8 * 1024 * 1024
    let received = 0
    let atPause = 0
    const server = await edge(t, engine, exchange => {
      const hash = createHash('sha256')
      const body = exchange.streamBody(
        chunk => {
          received += chunk.length
          hash.update(chunk)
          if (atPause > 0) return
          atPause = received
          body.pause()
          setTimeout(() => {
            t.ok(received - atPause < 2 * 1024 * 1024, 'little came while paused')
            body.resume()
          }, 150)
        },
        () => exchange.reply(200, [], hash.digest('hex')),
      )
    })
    const body = Buffer.alloc(total, '0123456789').toString('latin1')
    const digest = createHash('sha256').update(body, 'latin1').digest('hex')
    const answer = await sendRaw(server.port, [postRequest('/', body)], {
      waitMs: 5_000,
      until: /[0-9a-f]{64}$/,
    })
    t.ok(answer.text.endsWith(digest))
    t.equal(received, total)
  })

  t.test('a slow reader gets every byte, and its producer is told to wait', async t => {
    const total = 24 * 1024 * 1024
    const block = Buffer.alloc(48 * 1024, 'stream of text ')
    let waits = 0
    let most = 0
    const server = await edge(t, engine, exchange => {
      let sent = 0
      const produce = () => {
        while (sent < total) {
          const piece = block.subarray(0, Math.min(block.length, total - sent))
          sent += piece.length
          const room = exchange.write(piece)
          most = Math.max(most, exchange.bufferedBytes)
          if (room) continue
          waits++
          return
        }
        exchange.end()
      }
      exchange.startStream(200, [])
      exchange.onDrain(produce)
      produce()
    })
    const socket = await silentClient(t, server.port, getRequest('/'))
    let bytes = 0
    let ended = false
    socket.on('data', data => {
      bytes += data.length
      ended ||= data.subarray(-5).toString() === '0\r\n\r\n'
      socket.pause()
      setTimeout(() => socket.resume(), 1)
    })
    socket.resume()
    t.ok(await until(() => ended, 20_000))
    t.ok(bytes > total)
    t.ok(waits > 0)
    t.ok(most <= 1024 * 1024, `at most ${most} bytes waited`)
    t.ok(await until(() => server.live === 0))
  })

  t.test('a piece larger than 1 MB, and the end right behind it, reach a client that lags', async t => {
    const size = 12 * 1024 * 1024
    const server = await edge(t, engine, exchange => {
      exchange.startStream(200, [])
      t.notOk(exchange.write(Buffer.alloc(size, 'x')), 'the producer is told to wait')
      exchange.write('the end')
      exchange.end()
    })
    const socket = await silentClient(t, server.port, getRequest('/'))
    await pause(100)
    let bytes = 0
    let tail = ''
    socket.on('data', data => {
      bytes += data.length
      tail = (tail + data.toString('latin1')).slice(-40)
    })
    socket.resume()
    t.ok(await until(() => tail.endsWith('end\r\n0\r\n\r\n')), `the reply ends after ${bytes} bytes`)
    t.ok(bytes > size)
  })

  t.test('a client that does not read is cut when its producer writes on: 1 MB', async t => {
    let aborted = false
    let most = 0
    const server = await edge(t, engine, exchange => {
      exchange.onAbort(() => {
        aborted = true
      })
      exchange.startStream(200, [])
      const timer = setInterval(() => {
        for (let i = 0; i < 50 && !exchange.closed; i++) {
          exchange.write(Buffer.alloc(8 * 1024, 'x'))
          most = Math.max(most, exchange.bufferedBytes)
        }
        if (exchange.closed) clearInterval(timer)
      }, 2)
    })
    await silentClient(t, server.port, getRequest('/'))
    t.ok(await until(() => aborted))
    // What it wrote before it was told to wait comes on top: 64 KB since Node 22, and a piece.
    t.ok(most <= 1024 * 1024 + 96 * 1024, `at most ${most} bytes waited`)
    t.equal(server.live, 0)
  })

  t.test('a client that takes nothing is cut after the time to drain', async t => {
    let abortedAt = 0
    let blockedAt = 0
    const server = await edge(
      t,
      engine,
      exchange => {
        exchange.onAbort(() => {
          abortedAt = Date.now()
        })
        exchange.startStream(200, [])
        const produce = () => {
          while (exchange.write(Buffer.alloc(32 * 1024, 'x')));
          blockedAt = Date.now()
        }
        exchange.onDrain(produce)
        produce()
      },
      { limits: { drainMs: 400 } },
    )
    await silentClient(t, server.port, getRequest('/'))
    t.ok(await until(() => abortedAt > 0))
    t.ok(abortedAt - blockedAt >= 390, `${abortedAt - blockedAt} ms`)
    t.ok(abortedAt - blockedAt < 1_500)
  })

  t.test('a slow body is cut at its deadline, read at once or unread', async t => {
    let aborts = 0
    const server = await edge(
      t,
      engine,
      exchange => {
        exchange.onAbort(() => aborts++)
        if (exchange.path === '/read') exchange.readBody(1_000, () => t.fail('never complete'))
        if (exchange.path === '/stream')
          exchange.streamBody(
            () => {},
            () => t.fail('never ends'),
          )
      },
      { limits: { receiveMs: 200 } },
    )
    const drip = Array.from({ length: 60 }, () => 'x')
    const send = (path: string) =>
      sendRaw(server.port, [`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n`, ...drip], {
        gapMs: 40,
        waitMs: 10,
      })
    const answers = await Promise.all([send('/read'), send('/stream')])
    t.ok(answers.every(answer => answer.closed && answer.text === ''))
    t.ok(await until(() => aborts === 2))
    t.equal(server.live, 0)
  })

  t.test('a slow head is cut', async t => {
    const server = await edge(t, engine, () => t.fail('no request'), { limits: { idleMs: 500 } })
    const drip = Array.from({ length: 80 }, () => 'a')
    const started = Date.now()
    const answer = await sendRaw(server.port, ['GET / HTTP/1.1\r\nHost: x\r\nx: ', ...drip], {
      gapMs: 200,
      waitMs: 10,
    })
    t.ok(answer.closed)
    t.same(answer.statuses, [])
    // uWebSockets.js: 10 s, built in, swept every 4 s.
    t.ok(Date.now() - started < (engine === 'uwebsockets' ? 15_500 : 10_000))
    t.equal(server.live, 0)
  })
}
