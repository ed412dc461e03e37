import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openDataDir } from '../../bin/data-dir.js'
import { prepareTeam } from '../../bin/first-start.js'
import { programEnvironment } from '../../bin/start-environment.js'
import { connectSql } from '../../control-plane/db/sql.js'
import { TEST_SECRET } from '../support/control-plane.js'
import { testDatabase } from '../support/postgres.js'

function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'agh-data-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

test('two starts do not share a DATA_DIR; one that is over frees it', async t => {
  const path = folder(t)
  const first = openDataDir(path)
  t.throws(() => openDataDir(path), { message: new RegExp(`process ${process.pid}\\) uses DATA_DIR`) })
  first.release()
  openDataDir(path).release()
})

test('a lock that a dead start left behind is taken over, also one that it had no time to write', async t => {
  for (const left of ['999999999 long/ago', '']) {
    const path = folder(t)
    writeFileSync(join(path, 'agh.lock'), left)
    openDataDir(path).release()
  }
})

test('there is no owner whose password could not be kept: the next start makes one and shows it', async t => {
  const { url } = await testDatabase(t)
  const path = folder(t)
  const settled = { DATABASE_URL: url, AGH_SECRET: TEST_SECRET, DATA_DIR: path }
  const programs = programEnvironment({}, { ...settled, PORT: 8787, CONTROL_PLANE_PORT: 8788 })
  const users = async () => {
    const sql = connectSql(url, { deadlineMs: 20_000, max: 1 })
    const rows = await sql`select email from users`
    await sql.end()
    return rows.map(row => row.email)
  }
  // As a disk that is full: what is to be written cannot be.
  const file = join(path, 'first-owner.json')
  mkdirSync(file)
  await t.rejects(prepareTeam(programs, {}), { code: 'EISDIR' })
  t.same(await users(), [])

  rmSync(file, { recursive: true })
  const first = await prepareTeam(programs, {})
  t.same(await users(), ['owner@localhost'])
  t.match(JSON.parse(readFileSync(file, 'utf8')), { email: first?.email, password: first?.password })
})
