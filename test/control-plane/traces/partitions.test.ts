import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createPartitionsAhead } from '../../../control-plane/traces/partitions.js'
import { deleteExpiredTraces } from '../../../control-plane/traces/retention.js'
import { createFeedback } from '../../../shared/contract/feedback.js'
import { readTrace } from '../../../shared/contract/traces.js'
import { callRecord, ship } from '../../support/call-records.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

const DAY_MS = 86_400_000
const monday = Date.parse('2031-03-03T00:00:00.000Z')

/** A control plane whose clock the test sets. */
async function atClock(t: Parameters<typeof startControlPlane>[0], startMs: number) {
  const clock = { ms: startMs }
  const cp = await startControlPlane(t, { now: () => clock.ms })
  return { cp, clock }
}

const weeksOf = async ({ deps }: ControlPlane, table: string): Promise<string[]> => {
  const rows = await deps.sql<{ name: string }[]>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass order by 1`
  return rows.map(row => row.name)
}

const placesOf = async ({ deps }: ControlPlane) => {
  const rows = await deps.sql<{ place: string; n: number }[]>`
    select tableoid::regclass::text as place, count(*)::int as n from traces group by 1
    union all select tableoid::regclass::text, count(*)::int from spans group by 1 order by 1`
  return Object.fromEntries(rows.map(row => [row.place, row.n]))
}

t.test('a migrated database has partitions for this week and the next', async t => {
  const cp = await startControlPlane(t)
  const { teamId } = await team(cp)
  await ship(cp, [callRecord(teamId)])
  t.notMatch(Object.keys(await placesOf(cp)).join(), 'default')
  t.equal(await createPartitionsAhead(cp.deps.sql, Date.now()), 0, 'and creating them again does nothing')
})

t.test('weeks start on Monday 00:00 UTC', async t => {
  const { cp, clock } = await atClock(t, monday - 1)
  const { teamId } = await team(cp)
  await createPartitionsAhead(cp.deps.sql, clock.ms)
  await ship(cp, [callRecord(teamId)])
  clock.ms = monday
  await ship(cp, [callRecord(teamId)])
  t.same(await placesOf(cp), { spans_20310224: 1, spans_20310303: 1, traces_20310224: 1, traces_20310303: 1 })
})

t.test('nothing is refused for want of a partition, and creating the week moves its rows there', async t => {
  const { cp, clock } = await atClock(t, monday)
  const { teamId, owner } = await team(cp)
  const call = callRecord(teamId)
  t.equal((await ship(cp, [call])).status, 200)
  t.same(await placesOf(cp), { spans_default: 1, traces_default: 1 })
  t.ok((await createPartitionsAhead(cp.deps.sql, clock.ms)) > 0)
  t.same(await placesOf(cp), { spans_20310303: 1, traces_20310303: 1 })
  clock.ms += 8 * 7 * DAY_MS
  const late = callRecord(teamId, { trace: { id: call.span.trace.id } })
  await ship(cp, [late])
  t.same(await placesOf(cp), { spans_20310303: 2, traces_20310303: 1 }, 'a late span lies beside its trace')
  const trace = await cp.call(readTrace, { params: { id: call.span.trace.id }, as: owner.personalKey })
  t.equal(trace.body.trace.spanCount, 2)
})

t.test('ingestion goes on while weeks are created', async t => {
  const { cp, clock } = await atClock(t, monday)
  const { teamId } = await team(cp)
  const shipping = Promise.all(
    Array.from({ length: 20 }, () =>
      ship(
        cp,
        Array.from({ length: 20 }, () => callRecord(teamId)),
      ),
    ),
  )
  await createPartitionsAhead(cp.deps.sql, clock.ms)
  for (const { status, body } of await shipping)
    t.same({ status, body }, { status: 200, body: { accepted: 20, rejected: 0 } })
  const places = await placesOf(cp)
  t.equal((places.traces_20310303 ?? 0) + (places.traces_default ?? 0), 400)
})

t.test('traces live as long as their team keeps them, others as long as theirs', async t => {
  const { cp, clock } = await atClock(t, monday)
  const [short, long] = [await team(cp), await team(cp)]
  await cp.deps.sql`update teams set retention_days = 7 where id = ${short.teamId}`
  await cp.deps.sql`update teams set retention_days = 30 where id = ${long.teamId}`
  await createPartitionsAhead(cp.deps.sql, clock.ms)
  const old = [callRecord(short.teamId), callRecord(long.teamId)]
  await ship(cp, old)
  clock.ms += 1
  const edge = callRecord(short.teamId)
  await ship(cp, [edge])
  clock.ms += 7 * DAY_MS
  t.equal((await deleteExpiredTraces(cp.deps.sql, clock.ms)).deletedTraces, 1)
  const read = (call: (typeof old)[0], as: typeof short) =>
    cp.call(readTrace, { params: { id: call.span.trace.id }, as: as.owner.personalKey })
  t.equal((await read(old[0]!, short)).status, 404)
  t.equal((await read(edge, short)).status, 200, 'kept to the millisecond')
  t.equal((await read(old[1]!, long)).status, 200)
  t.match(await placesOf(cp), { spans_20310303: 2, traces_20310303: 2 })
  const [owners] = await cp.deps.sql`select count(*)::int as n from trace_owners`
  t.same(owners, { n: 2 })
  t.same(await deleteExpiredTraces(cp.deps.sql, clock.ms), { droppedWeeks: [], deletedTraces: 0 })
})

t.test('a week that no team keeps is dropped whole, ids included; charges stay', async t => {
  const { cp, clock } = await atClock(t, monday)
  const { teamId, owner } = await team(cp)
  await createPartitionsAhead(cp.deps.sql, clock.ms)
  const call = callRecord(teamId)
  await ship(cp, [call, ...Array.from({ length: 30 }, () => callRecord(teamId))])
  clock.ms = monday + (7 + 90) * DAY_MS - 1
  t.notOk((await deleteExpiredTraces(cp.deps.sql, clock.ms)).droppedWeeks.includes('20310303'))
  clock.ms += 1
  t.ok((await deleteExpiredTraces(cp.deps.sql, clock.ms)).droppedWeeks.includes('20310303'))
  for (const table of ['traces', 'spans']) t.notOk((await weeksOf(cp, table)).includes(`${table}_20310303`))
  const params = { id: call.span.trace.id }
  t.equal((await cp.call(readTrace, { params, as: owner.personalKey })).status, 404)
  const [left] = await cp.deps.sql`
    select (select count(*)::int from trace_owners) as owners, (select count(*)::int from charges) as charges`
  t.same(left, { owners: 0, charges: 31 })
  await ship(cp, [callRecord(teamId, { trace: params })])
  t.equal(
    (await cp.call(readTrace, { params, as: owner.personalKey })).body.trace.spanCount,
    1,
    'the id can be used anew',
  )
})

t.test('retention that died half-way spares what began anew under the ids that it had freed', async t => {
  const { cp, clock } = await atClock(t, monday)
  const { teamId, owner } = await team(cp)
  await team(cp)
  await cp.deps.sql`update teams set retention_days = 7 where id = ${teamId}`
  const id = randomUUID()
  await ship(cp, [callRecord(teamId, { trace: { id } })])
  clock.ms += 8 * DAY_MS
  await cp.deps.sql`delete from trace_owners where id = ${id}`
  const late = callRecord(teamId, { trace: { id } })
  await ship(cp, [late])
  const params = { id }
  await cp.call(createFeedback, { params, body: { rating: 1 }, as: owner.personalKey })
  t.equal((await deleteExpiredTraces(cp.deps.sql, clock.ms)).deletedTraces, 1)
  const { status, body } = await cp.call(readTrace, { params, as: owner.personalKey })
  t.equal(status, 200)
  t.match(body.spans, [{ spanId: late.span.spanId }])
  t.match(body.feedback, [{ rating: 1 }])
})

t.test('more than a batch expires in one run, long traces too', async t => {
  const { cp, clock } = await atClock(t, monday)
  const [short, long] = [await team(cp), await team(cp)]
  await cp.deps.sql`update teams set retention_days = 1 where id = ${short.teamId}`
  const id = randomUUID()
  const calls = Array.from({ length: 7_000 }, (_, i) =>
    callRecord(i % 7 === 0 ? long.teamId : short.teamId, { trace: i % 7 > 5 ? {} : i % 7 > 0 ? { id } : {} }),
  )
  await ship(cp, calls)
  clock.ms += 2 * DAY_MS
  t.equal((await deleteExpiredTraces(cp.deps.sql, clock.ms)).deletedTraces, 1001)
  t.same(await placesOf(cp), { spans_default: 1000, traces_default: 1000 })
})
