import { connect, createServer, type Server, type Socket } from 'node:net'
import t from 'tap'
import { connectSql } from '../../../control-plane/db/sql.js'
import { testDatabase } from '../../support/postgres.js'

/** A port in front of PostgreSQL that can be closed and opened again. */
async function gate(url: string) {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  const pass = (inner: Socket) => {
    const outer = connect(Number(port), hostname)
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy()).on('close', () => to.destroy())
      from.pipe(to)
    }
  }
  let server: Server
  let opened = 0
  const open = () =>
    new Promise<void>(resolve => {
      server = createServer(pass).listen(opened, '127.0.0.1', () => {
        opened = (server.address() as { port: number }).port
        resolve()
      })
    })
  const close = async () => {
    const closed = new Promise(resolve => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  await open()
  const front = new URL(url)
  front.hostname = '127.0.0.1'
  front.port = String(opened)
  return { url: front.href, open, close }
}

t.test(
  'a pool that was refused more often than it has connections works when PostgreSQL is back',
  async t => {
    const { url } = await testDatabase(t)
    const database = await gate(url)
    t.teardown(() => database.close())
    const sql = connectSql(database.url, { deadlineMs: 10_000, max: 2 })
    t.teardown(() => sql.end({ timeout: 1 }))
    t.same(await sql`select 1 as one`, [{ one: 1 }])
    await database.close()
    for (let attempt = 0; attempt < 6; attempt++) await t.rejects(sql`select 1`)
    await database.open()
    t.same(await sql`select 1 as one`, [{ one: 1 }])
  },
)
