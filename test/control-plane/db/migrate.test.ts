import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import pg from 'pg'
import { type Test, test } from 'tap'
import { migrate } from '../../../control-plane/db/migrate.js'
import {
  checkHistory,
  knownMigrations,
  type Migration,
  SchemaError,
} from '../../../control-plane/db/migrations.js'
import { checkSchema, isSchemaUsable } from '../../../control-plane/db/schema-check.js'
import { connectSql } from '../../../control-plane/db/sql.js'
import { databaseUrl, onServer, testDatabase } from '../../support/postgres.js'

test('an empty database gets every migration, and a second run finds nothing to do', async t => {
  const url = await emptyDatabase(t)
  const names = knownMigrations().map(migration => migration.name)
  t.ok(names.length >= 5)
  t.same(
    names.map(name => name.slice(0, 4)),
    [...new Set(names.map(name => name.slice(0, 4)))],
    'numbers are unique',
  )
  t.same(await migrate(url), names)
  t.same(await migrate(url), [])
  const sql = connected(t, url)
  await checkSchema(sql)
  t.equal(await isSchemaUsable(sql), true)
  t.equal(
    (await sql`select 1 from pg_namespace where nspname = 'graphile_worker'`).length,
    1,
    'the job queue too',
  )
})

test('every file of migrations/ is a migration', async t => {
  const folder = new URL('../../../migrations/', import.meta.url)
  const files = readdirSync(folder)
  t.same(
    files.sort(),
    knownMigrations().map(migration => migration.name),
  )
})

test('processes that migrate at the same moment apply each migration once', async t => {
  const url = await emptyDatabase(t)
  const applied = await Promise.all([migrate(url), migrate(url), migrate(url)])
  t.equal(applied.flat().length, knownMigrations().length)
})

test('a migration that fails leaves nothing behind, and what came before it stays', async t => {
  const url = await emptyDatabase(t)
  const good = migration('0001_good.sql', 'create table good (id int);')
  const bad = migration('0002_bad.sql', 'create table half (id int); select 1 / 0;')
  await t.rejects(migrate(url, { migrations: [good, bad] }), { message: /division by zero/ })
  const sql = connected(t, url)
  t.same(await tables(sql), ['good', 'schema_migrations'])
  const mended = migration('0002_bad.sql', 'create table half (id int);')
  t.same(await migrate(url, { migrations: [good, mended] }), ['0002_bad.sql'])
})

test('a migration waits for a busy table without holding everybody up, and tries again', async t => {
  const url = await emptyDatabase(t)
  const first = migration('0001_first.sql', 'create table busy (id int);')
  await migrate(url, { migrations: [first] })
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  await holder.query('begin; lock table busy in access exclusive mode')
  const running = migrate(url, {
    migrations: [first, migration('0002_next.sql', 'alter table busy add x int;')],
  })
  await new Promise(resolve => setTimeout(resolve, 2_500))
  await holder.query('commit')
  await holder.end()
  t.same(await running, ['0002_next.sql'])
})

test('a database that a newer agh made is refused by migrate and by a starting process', async t => {
  const { url } = await testDatabase(t)
  const sql = connected(t, url)
  await sql`insert into schema_migrations (name, checksum) values ('9999_future.sql', 'x')`
  const refusal = { name: 'SchemaError', message: /9999_future\.sql.*newer agh/ }
  await t.rejects(migrate(url), refusal)
  await t.rejects(checkSchema(sql), refusal)
  t.equal(await isSchemaUsable(sql), true, 'a running process goes on: nothing in it breaks older versions')
  await sql`update schema_migrations set breaking = 'drops a column' where name = '9999_future.sql'`
  await t.rejects(checkSchema(sql), { message: /drops a column/ })
  t.equal(await isSchemaUsable(sql), false)
})

test('a process refuses a database that lacks a migration, and an empty one, saying what to do', async t => {
  const sql = connected(t, await emptyDatabase(t))
  await t.rejects(checkSchema(sql), {
    name: 'SchemaError',
    message: /lacks the migrations .*Run "agh migrate"/,
  })
  const { url } = await testDatabase(t)
  const migrated = connected(t, url)
  await migrated`delete from schema_migrations where name like '0002%'`
  await t.rejects(checkSchema(migrated), { message: /lacks the migrations 0002_gateway\.sql\./ })
})

test('a migration that was changed after it was applied is refused', async t => {
  const known = [migration('0001_a.sql', 'select 1')]
  const applied = [{ name: '0001_a.sql', checksum: 'another', breaking: null }]
  t.throws(() => checkHistory(known, applied), SchemaError)
})

test('a breaking migration is announced, but not on an empty database', async t => {
  const url = await emptyDatabase(t)
  const told: string[] = []
  const onBreaking = (name: string, why: string) => told.push(`${name}: ${why}`)
  const first = { ...migration('0001_a.sql', 'select 1'), breaking: 'everything' }
  await migrate(url, { migrations: [first], onBreaking })
  t.same(told, [])
  const second = { ...migration('0002_b.sql', 'select 1'), breaking: 'old code cannot run' }
  await migrate(url, { migrations: [first, second], onBreaking })
  t.same(told, ['0002_b.sql: old code cannot run'])
})

test('a second process gives up on a lock that is held for too long', async t => {
  const url = await emptyDatabase(t)
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  await holder.query('select pg_advisory_lock(720430001)')
  await t.rejects(migrate(url, { lockWaitMs: 300 }), { message: /has been migrating/ })
  await holder.end()
})

const migration = (name: string, sql: string): Migration => ({
  name,
  sql,
  checksum: name + sql,
  breaking: null,
})

async function emptyDatabase(t: Test): Promise<string> {
  const server = process.env.TEST_DATABASE_SERVER ?? ''
  const name = `agh_test_${randomBytes(6).toString('hex')}`
  await onServer(server, `create database ${name}`)
  t.teardown(() => onServer(server, `drop database if exists ${name} with (force)`))
  return databaseUrl(server, name)
}

function connected(t: Test, url: string) {
  const sql = connectSql(url, { deadlineMs: 20_000, max: 2 })
  t.teardown(() => sql.end({ timeout: 1 }))
  return sql
}

async function tables(sql: ReturnType<typeof connectSql>): Promise<string[]> {
  const rows = await sql`select tablename from pg_tables where schemaname = 'public' order by 1`
  return rows.map(row => row.tablename)
}
