import { randomUUID } from 'node:crypto'
import t from 'tap'
import { connectSql } from '../../../control-plane/db/sql.js'
import { testDatabase } from '../../support/postgres.js'

t.test('arrays of text and uuids come back as they went, whatever is in them', async t => {
  const { url } = await testDatabase(t)
  const sql = connectSql(url, { deadlineMs: 10_000, max: 1 })
  t.teardown(() => sql.end({ timeout: 1 }))
  const nasty = ['', ' ', '"', '\\', 'a,b', '{}', 'null', 'NULL', "'", 'line\nbreak', '😀', 'a"b\\"c', '\t']
  for (const texts of [[], nasty, ...nasty.map(text => [text]), nasty.toReversed()]) {
    const [row] = await sql`select ${texts}::text[] as texts, cardinality(${texts}::text[]) as n`
    t.same(row, { texts, n: texts.length })
  }
  const ids = [randomUUID(), randomUUID()]
  const [row] = await sql`select ${ids}::uuid[] as ids, array['a', null] as gaps, null::text[] as nothing`
  t.same(row, { ids, gaps: ['a', null], nothing: null })
  await sql`create table held (tags text[])`
  await sql`insert into held ${sql({ tags: nasty })}`
  t.same((await sql`select tags from held where tags @> ${['"']}`)[0], { tags: nasty })
})
