import { setTimeout as sleep } from 'node:timers/promises'
import { parseCrontab } from 'graphile-worker'
import pg from 'pg'
import { type Test, test } from 'tap'
import { inTransaction } from '../../../control-plane/db/sql.js'
import { crontab, jobList } from '../../../control-plane/jobs/index.js'
import { type Job, job } from '../../../control-plane/jobs/job.js'
import { startJobs } from '../../../control-plane/jobs/worker.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'

test('a job exists if and only if the transaction that needs it commits', async t => {
  const cp = await startControlPlane(t)
  const { sql, jobs } = cp.deps
  const seen: unknown[] = []
  await inTransaction(sql, tx => jobs.enqueue(tx, 'note', { snake_key: 1, camelKey: { deep: ['x'] } }))
  await t.rejects(
    inTransaction(sql, async tx => {
      await jobs.enqueue(tx, 'note', { rolled: 'back' })
      throw new Error('no')
    }),
  )
  work(t, cp, [job('note', async payload => void seen.push(payload))])
  await until(() => seen.length > 0)
  await sleep(300)
  t.same(seen, [{ snake_key: 1, camelKey: { deep: ['x'] } }])
})

test('a job that fails is tried again', async t => {
  const cp = await startControlPlane(t)
  let attempts = 0
  const flaky = job('flaky', async () => {
    attempts++
    if (attempts === 1) throw new Error('not yet')
  })
  work(t, cp, [flaky])
  await inTransaction(cp.deps.sql, tx => cp.deps.jobs.enqueue(tx, 'flaky', {}))
  await until(() => attempts === 1)
  await cp.deps.sql`update graphile_worker._private_jobs set run_at = now()`
  await until(() => attempts === 2)
})

test('a job key keeps one waiting job, the newest', async t => {
  const cp = await startControlPlane(t)
  const { sql, jobs } = cp.deps
  const options = { key: 'once', runAtMs: Date.now() + 60_000 }
  await inTransaction(sql, tx => jobs.enqueue(tx, 'note', { n: 1 }, options))
  await inTransaction(sql, tx => jobs.enqueue(tx, 'note', { n: 2 }, options))
  const rows = await sql`select payload from graphile_worker._private_jobs`
  t.same(
    rows.map(row => row.payload),
    [{ n: 2 }],
  )
})

test('jobs of the schedule that nobody gets to, or that fail, wait once and not once a minute', async t => {
  const cp = await startControlPlane(t)
  const { sql } = cp.deps
  const waiting = () => sql<{ task: string; jobs: number }[]>`
    select t.identifier as task, count(*)::int as jobs from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id group by 1 order by 1`
  const items = parseCrontab(crontab.join('\n'))
  for (const minute of [1, 2, 3]) {
    // As graphile-worker adds what is due.
    for (const { task, options } of items) {
      await sql`select 1 from graphile_worker.add_job(${task}, job_key => ${options?.jobKey ?? null}::text)`
    }
    t.ok(
      (await waiting()).every(row => row.jobs === 1),
      `after minute ${minute}`,
    )
    await sql`update graphile_worker._private_jobs set attempts = 1, last_error = 'failed'`
  }
  t.equal((await waiting()).length, jobList.length - 1, 'all but mails')
})

test('a mail that was given up leaves the queue after a week; one that is tried again does not', async t => {
  const cp = await startControlPlane(t)
  const { sql, jobs } = cp.deps
  for (const name of ['lost', 'new', 'trying'])
    await inTransaction(sql, tx => jobs.enqueue(tx, 'send_mail', { name }))
  await sql`
    update graphile_worker._private_jobs set updated_at = now() - interval '8 days',
      attempts = case payload->>'name' when 'trying' then max_attempts - 1 else max_attempts end`
  await sql`update graphile_worker._private_jobs set updated_at = now() where payload->>'name' = 'new'`
  await jobList.find(one => one.name === 'sweep_expired')?.run({}, cp.deps)
  const left = await sql`select payload->>'name' as name from graphile_worker._private_jobs order by 1`
  t.same(
    left.map(row => row.name),
    ['new', 'trying'],
  )
})

test('stopping waits for the job at work', async t => {
  const cp = await startControlPlane(t)
  let state = 'waiting'
  const slow = job('slow', async () => {
    state = 'running'
    await sleep(500)
    state = 'done'
  })
  const worker = startJobs(cp.deps, cp.databaseUrl, [slow], [])
  await inTransaction(cp.deps.sql, tx => cp.deps.jobs.enqueue(tx, 'slow', {}))
  await until(() => state === 'running')
  await worker.stop()
  t.equal(state, 'done')
  t.equal(worker.isRunning(), false)
})

test('the queue goes on after PostgreSQL dropped every connection', async t => {
  const cp = await startControlPlane(t)
  const seen: unknown[] = []
  const worker = work(t, cp, [job('note', async payload => void seen.push(payload))])
  await until(() => worker.isRunning())
  const admin = new pg.Client({ connectionString: cp.databaseUrl })
  await admin.connect()
  await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'agh-jobs'`,
  )
  await admin.end()
  await inTransaction(cp.deps.sql, tx => cp.deps.jobs.enqueue(tx, 'note', { n: 1 }))
  await until(() => seen.length === 1, 20_000)
})

test('a queue that cannot look its tasks up at first takes jobs later', async t => {
  const cp = await startControlPlane(t)
  const { sql, jobs } = cp.deps
  const seen: unknown[] = []
  await sql`alter table graphile_worker._private_tasks rename to away`
  const worker = work(t, cp, [job('note', async payload => void seen.push(payload))])
  await until(() => worker.isRunning())
  await sleep(300)
  await sql`alter table graphile_worker.away rename to _private_tasks`
  await inTransaction(sql, tx => jobs.enqueue(tx, 'note', { n: 1 }))
  await until(() => seen.length === 1, 20_000)
})

test('the schedule waits for a database that cannot take it, and leaves no promise behind', async t => {
  const cp = await startControlPlane(t)
  const { sql } = cp.deps
  const loose: unknown[] = []
  const hear = (reason: unknown) => void loose.push(reason)
  process.on('unhandledRejection', hear)
  t.teardown(() => process.off('unhandledRejection', hear))
  await sql`alter table graphile_worker._private_known_crontabs rename to away`
  const worker = startJobs(cp.deps, cp.databaseUrl, [job('note', async () => {})], ['0 0 1 1 * note'])
  t.teardown(() => worker.stop())
  await until(() => worker.isRunning())
  await sleep(300)
  t.ok(worker.isRunning(), 'jobs are taken meanwhile')
  await sql`alter table graphile_worker.away rename to _private_known_crontabs`
  let known = 0
  for (const end = Date.now() + 10_000; known === 0 && Date.now() < end; await sleep(100))
    known = (await sql`select from graphile_worker._private_known_crontabs where identifier = 'note'`).length
  t.equal(known, 1)
  t.same(loose, [])
})

test('jobs of the service have unique names, and every cron line names one of them', async t => {
  const names = jobList.map(one => one.name)
  t.equal(new Set(names).size, names.length)
  for (const line of crontab) t.ok(names.includes(line.split(' ')[5] ?? ''), line)
})

test('the hourly sweep removes what has expired and nothing else', async t => {
  const now = Date.now()
  const cp = await startControlPlane(t, { now: () => now })
  const { sql } = cp.deps
  const day = 86_400_000
  const rows = [now - 2 * day, now - 60_000].map(at => ({
    account: 'a',
    address: 'b',
    failed: true,
    at: new Date(at),
  }))
  await sql`insert into sign_in_attempts ${sql(rows)}`
  await jobList.find(one => one.name === 'sweep_expired')?.run({}, cp.deps)
  t.equal((await sql`select 1 from sign_in_attempts`).length, 1)
})

function work(t: Test, cp: ControlPlane, jobs: Job[]) {
  const worker = startJobs(cp.deps, cp.databaseUrl, jobs, [])
  t.teardown(() => worker.stop())
  return worker
}

async function until(condition: () => boolean, forMs = 10_000): Promise<void> {
  const deadline = Date.now() + forMs
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('It did not happen in time.')
    await sleep(20)
  }
}
