import { connect, createServer, type Server, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { connectSql, inTransaction, StatementDeadline } from '../../../control-plane/db/sql.js'
import { publicError } from '../../../control-plane/http/errors.js'
import { AppError } from '../../../shared/errors/app-error.js'
import { testDatabase } from '../../support/postgres.js'

test('columns are camelCase in JavaScript, keys inside jsonb are left alone', async t => {
  const sql = await client(t)
  const [row] = await sql`select 1 as one_two, '{"some_key": {"__x_y": 2}}'::jsonb as json_value`
  t.same(row, { oneTwo: 1, jsonValue: { some_key: { __x_y: 2 } } })
})

test('fragments, helpers, transactions and savepoints work through the deadlines', async t => {
  const sql = await client(t)
  await sql`create table things (id int primary key, some_name text)`
  await inTransaction(sql, async tx => {
    await tx`insert into things ${tx([
      { id: 1, someName: 'a' },
      { id: 2, someName: 'b' },
    ])}`
    await t.rejects(
      inTransaction(tx, async inner => {
        await inner`insert into things ${inner({ id: 3, someName: 'c' })}`
        throw new Error('no')
      }),
      { message: 'no' },
    )
  })
  const only = sql`where id > ${1}`
  t.same([...(await sql`select some_name from things ${only} order by id`)], [{ someName: 'b' }])
  await t.rejects(
    inTransaction(sql, async tx => {
      await tx`insert into things ${tx({ id: 4, someName: 'd' })}`
      throw new Error('rolled back')
    }),
    { message: 'rolled back' },
  )
  t.equal((await sql`select 1 from things where id = 4`).length, 0)
})

test('a slow statement is cancelled by its deadline', async t => {
  const sql = await client(t, 500)
  const startedAt = Date.now()
  const error = await sql`select pg_sleep(10)`.catch(caught => caught)
  t.ok(Date.now() - startedAt < 5_000)
  t.match(publicError(error), { code: 'UNAVAILABLE', status: 503 })
  t.same([...(await sql`select 1 as one`)], [{ one: 1 }], 'the pool goes on')
})

test('a frozen server is answered within the deadline, and the pool heals when it thaws', async t => {
  const relay = await startRelay(t)
  const sql = await client(t, 600, relay.url)
  await sql`select 1`
  relay.freeze()
  const startedAt = Date.now()
  const attempts = await Promise.allSettled(Array.from({ length: 20 }, () => sql`select 1`))
  const held = inTransaction(sql, tx => tx`select 1`)
  await t.rejects(held, StatementDeadline)
  t.ok(Date.now() - startedAt < 5_000, `took ${Date.now() - startedAt} ms`)
  for (const attempt of attempts) {
    t.equal(attempt.status, 'rejected')
    if (attempt.status === 'rejected') t.equal((publicError(attempt.reason) as AppError).status, 503)
  }
  relay.thaw()
  t.same([...(await eventually(() => sql`select 1 as one`))], [{ one: 1 }])
})

test('a transaction that began while the server was frozen does nothing after it was given up', async t => {
  const relay = await startRelay(t)
  const sql = await client(t, 500, relay.url)
  await sql`create table late (id int)`
  relay.freeze()
  let ran = false
  const begun = inTransaction(sql, async tx => {
    ran = true
    await tx`insert into late values (1)`
  })
  await t.rejects(begun, StatementDeadline)
  relay.thaw()
  await eventually(() => sql`select 1`)
  await new Promise(resolve => setTimeout(resolve, 300))
  t.equal(ran, false)
  t.equal((await sql`select 1 from late`).length, 0)
})

test('a server that is away is a 503 at once, and found again when it is back', async t => {
  const relay = await startRelay(t)
  const sql = await client(t, 1_500, relay.url)
  await sql`select 1`
  await relay.stop()
  const startedAt = Date.now()
  const error = publicError(await sql`select 1`.catch(caught => caught))
  t.ok(error instanceof AppError)
  t.match(error, { code: 'UNAVAILABLE', status: 503, headers: { 'retry-after': '2' } })
  t.ok(Date.now() - startedAt < 5_000)
  await relay.restart()
  t.same([...(await eventually(() => sql`select 1 as one`))], [{ one: 1 }])
})

async function client(t: Test, deadlineMs = 20_000, through?: (url: string) => string) {
  const { url } = await testDatabase(t)
  const sql = connectSql(through?.(url) ?? url, { deadlineMs, max: 4 })
  t.teardown(() => sql.end({ timeout: 0 }))
  return sql
}

async function eventually<T>(attempt: () => PromiseLike<T>, forMs = 15_000): Promise<T> {
  const until = Date.now() + forMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (Date.now() > until) throw error
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }
}

/** A TCP relay in front of PostgreSQL that can stop passing bytes on: what SIGSTOP looks like from outside. */
async function startRelay(t: Test) {
  const target = new URL(process.env.TEST_DATABASE_SERVER ?? '')
  const sockets = new Set<Socket>()
  let frozen = false
  const accept = (from: Socket) => {
    const to = connect(Number(target.port), target.hostname)
    for (const socket of [from, to]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
      if (frozen) socket.pause()
    }
    from.on('data', bytes => to.write(bytes))
    to.on('data', bytes => from.write(bytes))
    from.on('close', () => to.destroy())
    to.on('close', () => from.destroy())
    if (frozen) for (const socket of [from, to]) socket.pause()
  }
  let server: Server = createServer(accept)
  const listen = (port: number) =>
    new Promise<number>(resolve => {
      server.listen(port, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
    })
  const port = await listen(0)
  const stop = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  t.teardown(stop)
  return {
    url: (databaseUrl: string) => {
      const url = new URL(databaseUrl)
      url.host = `127.0.0.1:${port}`
      return url.href
    },
    freeze: () => {
      frozen = true
      for (const socket of sockets) socket.pause()
    },
    thaw: () => {
      frozen = false
      for (const socket of sockets) socket.resume()
    },
    stop,
    restart: () => {
      server = createServer(accept)
      return listen(port)
    },
  }
}

test('a transaction among many statements has its connection for itself, however long the queues are', async t => {
  const { url } = await testDatabase(t)
  const sql = connectSql(url, { max: 2, deadlineMs: 20_000 })
  t.teardown(() => sql.end({ timeout: 1 }))
  const send = () => sql`select 1 as one`.execute()
  await Promise.all(Array.from({ length: 8 }, send))
  // The driver sends up to 100 statements behind one that is under way.
  for (let count = 190; count < 215; count++) {
    const statements = Array.from({ length: count }, send)
    const committed = inTransaction(sql, tx => tx`select 1 as one`)
    t.same([...(await committed)], [{ one: 1 }], `behind ${count} statements`)
    await Promise.all(statements)
  }
})
