import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { connectSql, inTransaction } from '../../../control-plane/db/sql.js'
import { testDatabase } from '../../support/postgres.js'

t.test(
  'a server that drops a connection in mid-transaction fails that transaction, not the process',
  async t => {
    const { url } = await testDatabase(t)
    const sql = connectSql(url, { deadlineMs: 10_000, max: 3 })
    t.teardown(() => sql.end({ timeout: 1 }))
    await sql`create table written (n int)`

    const dropped = async (
      afterwards: (tx: Parameters<Parameters<typeof inTransaction>[1]>[0]) => Promise<unknown>,
    ) =>
      inTransaction(sql, async tx => {
        await tx`insert into written values (1)`
        const [row] = await tx`select pg_backend_pid() as pid`
        await sql`select pg_terminate_backend(${row?.pid})`
        await sleep(20)
        return afterwards(tx)
      })
    const failure = { code: /^CONNECTION_/ }
    await t.rejects(
      dropped(async () => {}),
      failure,
      'at the commit',
    )
    await t.rejects(
      dropped(tx => tx`select 1`),
      failure,
      'at the next statement',
    )
    await t.rejects(
      dropped(tx => inTransaction(tx, inner => inner`select 1`)),
      failure,
      'at a savepoint',
    )
    await t.rejects(
      dropped(() => Promise.reject(new Error('of its own'))),
      failure,
      'at the rollback',
    )
    t.same(await sql`select * from written`, [])
  },
)

t.test('a savepoint that fails leaves its transaction usable', async t => {
  const { url } = await testDatabase(t)
  const sql = connectSql(url, { deadlineMs: 10_000, max: 2 })
  t.teardown(() => sql.end({ timeout: 1 }))
  await sql`create table written (n int)`
  await inTransaction(sql, async tx => {
    await tx`insert into written values (1)`
    await t.rejects(inTransaction(tx, inner => inner`insert into written values ('x')`))
    await tx`insert into written values (2)`
  })
  t.equal((await sql`select * from written`).length, 2)
})
