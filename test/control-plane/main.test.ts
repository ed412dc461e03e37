import { type ChildProcess, spawn } from 'node:child_process'
import { type AddressInfo, connect, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { connectSql, inTransaction } from '../../control-plane/db/sql.js'
import { createJobs } from '../../control-plane/jobs/enqueue.js'
import { startControlPlane } from '../../control-plane/main.js'
import { ConfigError } from '../../shared/config/environment.js'
import { testDatabase } from '../support/postgres.js'

const environment = (url: string, extra: Record<string, string> = {}) => ({
  DATABASE_URL: url,
  AGH_SECRET: 'test-secret-test-secret-test-secret',
  CONTROL_PLANE_PORT: '0',
  LOG_LEVEL: 'silent',
  ...extra,
})

test('it starts, is ready with its jobs running, serves, and closes', async t => {
  const { url } = await testDatabase(t)
  const running = await startControlPlane(environment(url))
  await ready(running.url)
  t.same(await (await fetch(`${running.url}/healthz`)).json(), { status: 'ok' })
  t.equal((await fetch(`${running.url}/api/v1/auth/me`)).status, 401)
  t.equal((await fetch(`${running.url}/api/v1/openapi.json`)).status, 200)
  const metrics = await (await fetch(`${running.url}/metrics`)).text()
  t.match(metrics, /agh_control_plane_jobs_running 1[\s\S]*process_cpu|process_cpu[\s\S]*jobs_running 1/)
  await running.close()
  await t.rejects(fetch(`${running.url}/healthz`))
})

test('it refuses to serve on a schema that is not the one it knows', async t => {
  const { url } = await testDatabase(t)
  const sql = connectSql(url)
  t.teardown(() => sql.end())
  await sql`delete from schema_migrations where name like '0001%'`
  await t.rejects(startControlPlane(environment(url)), { name: 'SchemaError', message: /agh migrate/ })
})

test('an invalid variable stops the start with one line that names it and masks credentials', async t => {
  const refusal = (extra: Record<string, string>) =>
    startControlPlane(environment('postgres://u:hidden@h/d', extra)).catch(error => error)
  const signup = await refusal({ SIGNUP: 'maybe' })
  t.ok(signup instanceof ConfigError)
  t.equal(signup.message, 'SIGNUP holds "maybe"; it may hold first, open or closed.')
  const database = await refusal({ DATABASE_URL: 'mysql://user:hidden@host/db' })
  t.equal(database.message, 'DATABASE_URL holds "mysql://***@host/db"; it may hold a postgres:// URL.')
  const smtp = await refusal({ SMTP_URL: 'http://user:hidden@host' })
  t.match(smtp.message, /^SMTP_URL holds "http:\/\/\*\*\*@host"; it may hold/)
  const unescaped = await refusal({ DATABASE_URL: 'mysql://user:hid@d/en@host/db' })
  t.match(unescaped.message, /^DATABASE_URL holds "mysql:\/\/\*\*\*@host\/db"; it may hold/)
  const sender = await refusal({ MAIL_FROM: 'nobody' })
  t.equal(sender.message, 'MAIL_FROM holds "nobody"; it may hold a sender such as agh <agh@example.com>.')
})

test('a process drains on SIGTERM: a request at work is answered, and it exits with 0', async t => {
  const { url } = await testDatabase(t)
  const child = await startProcess(t, environment(url, { LOG_LEVEL: 'info' }))
  const origin = child.origin
  await ready(origin)
  const body = JSON.stringify({ email: 'ada@example.com', password: 'correct horse' })
  // scrypt takes a fifth of a second: the signal arrives in the middle of it.
  const signUp = fetch(`${origin}/api/v1/auth/signup`, { method: 'POST', body })
  await new Promise(resolve => setTimeout(resolve, 60))
  child.process.kill('SIGTERM')
  t.equal((await signUp).status, 201)
  t.equal(await child.exited, 0)
})

test('a request and a job that hang are cut off at once, before whoever stops the process kills it', async t => {
  const { url } = await testDatabase(t)
  // A mail server that greets and says no more.
  const mailServer = createServer(socket => socket.write('220 here\r\n'))
  await new Promise<void>(listening => mailServer.listen(0, '127.0.0.1', listening))
  t.teardown(() => mailServer.close())
  const { port } = mailServer.address() as AddressInfo
  const running = await startControlPlane(environment(url, { SMTP_URL: `smtp://127.0.0.1:${port}` }))
  await ready(running.url)

  const sql = connectSql(url)
  t.teardown(() => sql.end())
  const greeted = new Promise(connected => mailServer.once('connection', connected))
  const mail = { to: 'a@b', subject: 's', text: 't' }
  await inTransaction(sql, tx => createJobs().enqueue(tx, 'send_mail', mail))
  await greeted
  const request = connect(Number(new URL(running.url).port), '127.0.0.1')
  request.on('error', () => {})
  request.write('POST /api/v1/auth/login HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{')
  await new Promise(resolve => setTimeout(resolve, 200))

  const startedAt = Date.now()
  await running.close()
  t.ok(Date.now() - startedAt < 13_000, `${Date.now() - startedAt} ms`)
})

test('a process that an exception ends drains too, and exits with 1: it wants to be started again', async t => {
  const { url } = await testDatabase(t)
  const throwing = "process.once('SIGUSR2', () => { throw new Error('unforeseen') })"
  const child = await startProcess(t, environment(url, { LOG_LEVEL: 'info' }), [
    '--import',
    `data:text/javascript,${encodeURIComponent(throwing)}`,
  ])
  await ready(child.origin)
  child.process.kill('SIGUSR2')
  t.equal(await child.exited, 1)
})

test('a process whose database is unknown says so in one line', async t => {
  const { url } = await testDatabase(t)
  const broken = environment(url, { PORT: 'eighty' })
  const child = spawn(process.execPath, [entry], { env: broken, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.on('data', bytes => {
    said += bytes
  })
  const code = await new Promise(resolve => child.once('exit', resolve))
  t.equal(code, 1)
  t.equal(said, 'agh: PORT holds "eighty"; it may hold a port from 0 to 65535.\n')
})

const entry = fileURLToPath(new URL('../../control-plane/main.js', import.meta.url))

async function startProcess(t: Test, env: Record<string, string>, options: readonly string[] = []) {
  const stdio = ['ignore', 'pipe', 'inherit'] as const
  const child: ChildProcess = spawn(process.execPath, [...options, entry], { env, stdio: [...stdio] })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = new Promise<number | null>(resolve => child.once('exit', code => resolve(code)))
  const origin = await new Promise<string>((resolve, reject) => {
    let said = ''
    child.stdout?.on('data', bytes => {
      said += bytes
      const found = /"url":"(http:[^"]+)"/.exec(said)?.[1]
      if (found !== undefined) resolve(found)
    })
    child.once('exit', () => reject(new Error(`It ended: ${said}`)))
  })
  return { process: child, exited, origin }
}

async function ready(origin: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    if ((await fetch(`${origin}/readyz`)).status === 200) return
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  throw new Error(await (await fetch(`${origin}/readyz`)).text())
}
