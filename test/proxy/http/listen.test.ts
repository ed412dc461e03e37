import { test } from 'tap'
import { listen } from '../../../proxy/http/listen.js'
import { ForeignBinary, loadUwebsockets } from '../../../proxy/http/load-uwebsockets.js'

const options = { host: '127.0.0.1', port: 0, shared: false }

test('uWebSockets.js serves where its binary loads, node:http when it is asked for', async t => {
  const native = loadUwebsockets() === null ? 'node' : 'uwebsockets'
  for (const [engine, expected] of [
    [undefined, native],
    ['node', 'node'],
  ] as const) {
    const server = await listen({ ...options, ...(engine && { engine }) }, () => {})
    t.equal(server.engine, expected)
    t.ok(server.port > 0)
    server.close()
  }
})

test('a native binary with another checksum is refused by name, not loaded', async t => {
  if (loadUwebsockets() === null) return
  const name = `${process.platform}_${process.arch}_${process.versions.modules}`
  try {
    loadUwebsockets({ [name]: '0'.repeat(64) })
    t.fail('loaded')
  } catch (error) {
    t.ok(error instanceof ForeignBinary)
    t.match(
      (error as Error).message,
      /uws_\S+\.node has the SHA-256 [0-9a-f]{64}, expected 0{64}\. .*PROXY_HTTP=node/,
    )
  }
})

test('two servers share a port when they are told to', async t => {
  if (loadUwebsockets() === null) return
  // A port of the kernel's choice is never shared, so it is chosen before.
  const scout = await listen({ ...options, engine: 'uwebsockets' }, () => {})
  scout.close()
  const first = await listen({ ...options, shared: true, port: scout.port, engine: 'uwebsockets' }, () => {})
  const second = await listen({ ...options, shared: true, port: first.port, engine: 'uwebsockets' }, () => {})
  t.equal(second.port, first.port)
  first.close()
  second.close()
})
