import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { ControlPlaneAway, createControlPlaneClient } from '../../proxy/control-plane-client.js'
import { internalToken } from '../../shared/secrets/derive.js'
import { SECRET } from '../support/stand-in-control-plane.js'

const never = new AbortController().signal

/** A control plane that answers everything with one status and body. */
async function answering(t: Test, status: number, body: string) {
  const seen: { path: string; authorization: string; body: string }[] = []
  const server: Server = createServer((request, response) => {
    let text = ''
    request.on('data', piece => (text += String(piece)))
    request.on('end', () => {
      seen.push({ path: request.url ?? '', authorization: request.headers.authorization ?? '', body: text })
      response.writeHead(status).end(body)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = createControlPlaneClient(origin, SECRET)
  t.teardown(() => client.close())
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { client, seen, origin }
}

t.test('a batch counts as committed only after 200 with the form of an answer', async t => {
  const { client, seen } = await answering(t, 200, '{"accepted":2,"rejected":1}')
  t.same(await client.ship(Buffer.from('{}\n{}\n'), never), { kind: 'committed', rejected: 1 })
  t.match(seen[0], {
    path: '/internal/calls',
    authorization: `Bearer ${internalToken(SECRET)}`,
    body: '{}\n{}\n',
  })
  for (const [status, body] of [
    [200, 'ok'],
    [200, '{}'],
    [202, '{"accepted":2,"rejected":0}'],
  ] as const) {
    const { client } = await answering(t, status, body)
    await t.rejects(client.ship(Buffer.from('{}\n'), never), ControlPlaneAway, `${status} ${body}`)
  }
})

t.test(
  'only the control plane’s own 400 and 422 refuse a batch, and 413; all else is tried again',
  async t => {
    const own = '{"error":{"code":"VALIDATION_ERROR","message":"No."}}'
    for (const status of [401, 403, 404, 405, 408, 421, 429, 500, 502, 503]) {
      const { client } = await answering(t, status, own)
      await t.rejects(client.ship(Buffer.from('{}\n'), never), ControlPlaneAway, String(status))
    }
    for (const status of [400, 413, 422]) {
      const { client } = await answering(t, status, own)
      t.same(await client.ship(Buffer.from('{}\n'), never), { kind: 'refused', status })
    }
    const ingress = '<html><title>400 The plain HTTP request was sent to HTTPS port</title></html>'
    for (const body of [ingress, 'RBAC: access denied', '{}', 'null', '{"error":"no"}', '']) {
      const { client } = await answering(t, 400, body)
      await t.rejects(client.ship(Buffer.from('{}\n'), never), ControlPlaneAway, body)
    }
  },
)

t.test('a path in CONTROL_PLANE_URL is kept', async t => {
  const { seen, origin } = await answering(t, 200, '{"owner":"own"}')
  const client = createControlPlaneClient(`${origin}/agh/`, SECRET)
  t.teardown(() => client.close())
  t.equal(await client.traceOwner('team', 'trace'), 'own')
  t.equal(seen[0]?.path, '/agh/internal/traces/owner')
})

t.test('a stopped spool does not wait for a hanging control plane', async t => {
  const server = createServer(() => {})
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const client = createControlPlaneClient(`http://127.0.0.1:${port}`, SECRET)
  t.teardown(() => client.close())
  const stop = new AbortController()
  const shipped = client.ship(Buffer.from('{}\n'), stop.signal)
  setTimeout(() => stop.abort(), 20)
  await t.rejects(shipped, ControlPlaneAway)
})
