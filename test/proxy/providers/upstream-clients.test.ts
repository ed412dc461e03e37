import { createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import {
  createUpstream,
  type Flight,
  type UpstreamError,
  type UpstreamOptions,
} from '../../../proxy/providers/upstream.js'

/** A provider that answers as told, and calls to it. */
async function scene(
  t: Test,
  options: Partial<UpstreamOptions>,
  answer: (socket: Socket, count: number) => void,
) {
  const sockets = new Set<Socket>()
  let opened = 0
  let count = 0
  const server = createServer(socket => {
    opened++
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)))
    socket.on('data', () => answer(socket, ++count))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const upstream = createUpstream({ privateHosts: 'allow', ...options })
  t.teardown(async () => {
    await upstream.close()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }

  function send(): { flight: Flight; done: Promise<UpstreamError | 'answered'> } {
    let flight!: Flight
    const done = new Promise<UpstreamError | 'answered'>(resolve => {
      flight = upstream.send(
        { baseUrl: `http://127.0.0.1:${port}`, path: '/', headers: [], body: Buffer.from('{}') },
        { onHead: () => {}, onData: () => true, onEnd: () => resolve('answered'), onError: resolve },
      )
    })
    return { flight, done }
  }
  return {
    send,
    upstream,
    asked: () => count,
    opened: () => opened,
    open: () => sockets.size,
  }
}

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

test('the connection that was free last is used first: one at a time needs one, ten at once ten', async t => {
  const { send, opened } = await scene(t, {}, socket => setTimeout(() => socket.write(ok), 10))
  for (let round = 0; round < 5; round++) t.equal(await send().done, 'answered')
  t.equal(opened(), 1)
  for (let round = 0; round < 3; round++) {
    const all = await Promise.all(Array.from({ length: 10 }, () => send().done))
    t.same(new Set(all), new Set(['answered']))
  }
  t.equal(opened(), 10)
})

test('calls beyond the most connections wait for one, and each is answered or told', async t => {
  let release = () => {}
  const released = new Promise<void>(resolve => {
    release = resolve
  })
  const { send, open, asked, opened } = await scene(t, { connectionsPerOrigin: 3 }, async (socket, count) => {
    await released
    if (count === 7) socket.resetAndDestroy()
    else socket.write(ok)
  })
  const running = Array.from({ length: 40 }, send)
  while (asked() < 3) await sleep(1)
  t.equal(open(), 3)
  running[39]?.flight.abort()
  release()
  const results = await Promise.all(running.slice(0, 39).map(({ done }) => done))
  t.same(new Set(results), new Set(['answered']), 'a reset before any answer is tried again')
  t.equal(asked(), 40, 'of the one that left while it waited the provider heard nothing')
  t.equal(opened(), 4)
})

test('a connection whose call was aborted or failed serves again', async t => {
  const { send } = await scene(t, { connectionsPerOrigin: 1, timeouts: { head: 300 } }, (socket, count) => {
    if (count === 1 || count === 3) return
    if (count === 4) socket.end('nonsense\r\n\r\n')
    else socket.write(ok)
  })
  const left = send()
  await sleep(20)
  left.flight.abort()
  t.equal(await send().done, 'answered')
  t.match(await send().done, { kind: 'timeout' })
  t.match(await send().done, { kind: 'broken' })
  t.equal(await send().done, 'answered')
})

test('closing tells calls that are under way, and calls that wait for a connection', async t => {
  const { send, upstream, open } = await scene(t, { connectionsPerOrigin: 2 }, () => {})
  const running = Array.from({ length: 5 }, send)
  await sleep(30)
  t.equal(open(), 2)
  await upstream.close()
  for (const { done } of running) t.match(await done, { kind: 'aborted' })
})

test('what a server sends unasked after an answer is no part of the next', async t => {
  const { send } = await scene(t, {}, (socket, count) => {
    socket.write(count === 1 ? `${ok}HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n` : ok)
  })
  t.equal(await send().done, 'answered')
  const next = await send().done
  t.equal(next, 'answered')
})
