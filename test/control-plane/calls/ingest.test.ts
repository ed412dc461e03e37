import { randomUUID } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { recordJson } from '../../../proxy/spool/record-json.js'
import { readTrace } from '../../../shared/contract/traces.js'
import { callRecord, ndjson, ship } from '../../support/call-records.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

interface Sums {
  charges: number
  chargedNano: number
  spendNano: number
  requests: number
  spans: number
  traces: number
  countedSpans: number
  tracedNano: number
  dead: number
}

/** Everything that must agree, over the whole database. */
async function sums({ deps }: ControlPlane): Promise<Sums> {
  const [row] = await deps.sql<Sums[]>`
    select
      (select count(*)::int from charges) as charges,
      (select coalesce(sum(cost_nano), 0)::float8 from charges) as charged_nano,
      (select coalesce(sum(cost_nano), 0)::float8 from spend_by_day) as spend_nano,
      (select coalesce(sum(requests), 0)::int from spend_by_day) as requests,
      (select count(*)::int from spans) as spans,
      (select count(*)::int from traces) as traces,
      (select coalesce(sum(span_count), 0)::int from traces) as counted_spans,
      (select coalesce(sum(total_cost_nano), 0)::float8 from traces) as traced_nano,
      (select count(*)::int from dead_letters) as dead`
  return row!
}

t.test(
  'a call is charged, its spend added to its day and its trace readable once the answer is there',
  async t => {
    const cp = await startControlPlane(t)
    const { teamId, viewer, virtualKeyId } = await team(cp)
    const admittedAtMs = Date.parse('2026-11-20T23:59:59.999Z')
    const call = callRecord(teamId, {
      charge: { admittedAtMs, virtualKeyId },
      span: { startTimeMs: Date.parse('2026-11-21T00:00:01.000Z') },
    })
    t.same(await ship(cp, [call]), { status: 200, body: { accepted: 1, rejected: 0 } })
    const [day] = await cp.deps
      .sql`select day::text, cost_nano, requests, virtual_key_id, team_id from spend_by_day`
    t.same(day, { day: '2026-11-20', costNano: '1500', requests: '1', virtualKeyId, teamId })
    const trace = await cp.call(readTrace, { params: { id: call.span.trace.id }, as: viewer.session })
    t.equal(trace.body.trace.totalCostUsd, 0.0000015)
    t.equal(trace.body.trace.totalTokens, 12)
    t.same(trace.body.spans[0]?.usage, { promptTokens: 8, completionTokens: 4, totalTokens: 12 })
  },
)

t.test('a batch that comes twice counts once', async t => {
  const cp = await startControlPlane(t)
  const { teamId } = await team(cp)
  const traceId = randomUUID()
  const batch = Array.from({ length: 40 }, (_, i) =>
    callRecord(teamId, { trace: i % 2 === 0 ? { id: traceId } : {}, charge: { costNano: i } }),
  )
  await ship(cp, batch)
  const once = await sums(cp)
  t.same(once, {
    charges: 40,
    chargedNano: 780,
    spendNano: 780,
    requests: 40,
    spans: 40,
    traces: 21,
    countedSpans: 40,
    tracedNano: 60_000,
    dead: 0,
  })
  t.same((await ship(cp, batch)).body, { accepted: 40, rejected: 0 })
  await ship(cp, batch.toReversed())
  t.same(await sums(cp), once)
})

t.test('one record twice in one batch counts once', async t => {
  const cp = await startControlPlane(t)
  const { teamId } = await team(cp)
  const call = callRecord(teamId)
  await ship(cp, [call, call, call])
  t.match(await sums(cp), { charges: 1, spendNano: 1500, requests: 1, spans: 1, countedSpans: 1 })
})

t.test('overlapping batches in parallel count every call once, without an error', async t => {
  const cp = await startControlPlane(t)
  const teams = await Promise.all([team(cp), team(cp)])
  const traceIds = Array.from({ length: 5 }, () => randomUUID())
  const calls = Array.from({ length: 120 }, (_, i) =>
    callRecord(teams[i % 2]!.teamId, {
      trace: { id: traceIds[i % 5]!, tags: [`t${i % 7}`] },
      charge: { virtualKeyId: teams[i % 2]!.virtualKeyId },
    }),
  )
  const shuffled = (seed: number) =>
    calls.map((call, i) => ({ call, at: (i * 7919 * (seed + 1)) % 127 })).sort((a, b) => a.at - b.at)
  const batches = Array.from({ length: 12 }, (_, i) =>
    shuffled(i)
      .slice(0, 100)
      .map(({ call }) => call),
  )
  const answers = await Promise.all([...batches, calls].map(batch => ship(cp, batch)))
  t.same(
    answers.map(answer => answer.status),
    answers.map(() => 200),
  )
  t.match(await sums(cp), {
    charges: 120,
    chargedNano: 180_000,
    spendNano: 180_000,
    requests: 120,
    spans: 120,
    countedSpans: 120,
    tracedNano: 180_000,
    dead: 0,
    // Each of the five ids is one team's; the other team's spans are in a trace of its own.
    traces: 10,
  })
})

t.test('many batches of one trace at once leave exact totals', async t => {
  const cp = await startControlPlane(t)
  const { teamId, owner } = await team(cp)
  const id = randomUUID()
  const startTimeMs = 1_790_000_000_000
  const calls = Array.from({ length: 300 }, (_, i) =>
    callRecord(teamId, {
      trace: { id, tags: [`t${i % 3}`] },
      span: { startTimeMs: startTimeMs + i, endTimeMs: startTimeMs + 2 * i },
    }),
  )
  const batches = Array.from({ length: 30 }, (_, i) => calls.slice(i * 10, i * 10 + 10))
  await Promise.all(batches.map(batch => ship(cp, batch)))
  const { trace, spans } = (await cp.call(readTrace, { params: { id }, as: owner.session })).body
  t.match(trace, {
    spanCount: 300,
    totalCostUsd: 0.00045,
    totalTokens: 3600,
    durationMs: 598,
    tags: ['t0', 't1', 't2'],
    startedAt: new Date(startTimeMs).toISOString(),
  })
  t.equal(spans.length, 300)
})

t.test('unreadable records go to the dead letters and the rest of their batch is stored', async t => {
  const cp = await startControlPlane(t)
  const { teamId } = await team(cp)
  const good = Array.from({ length: 3 }, () => callRecord(teamId))
  const bad = [
    '{"charge":{"requestId"',
    'null',
    '[]',
    JSON.stringify(callRecord(randomUUID())),
    JSON.stringify({ ...callRecord(teamId, { charge: { costNano: -1 } }) }),
    JSON.stringify({ ...callRecord(teamId, { charge: { costNano: 1.5 } }) }),
    JSON.stringify({ ...callRecord(teamId, { charge: { requestId: 'x' } }) }),
    `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
  ]
  const { status, body } = await ship(cp, [bad[0], good[0], ...bad.slice(1), good[1], '', good[2]])
  t.same({ status, body }, { status: 200, body: { accepted: 3, rejected: bad.length } })
  t.match(await sums(cp), { charges: 3, spans: 3, dead: bad.length })
  const letters = await cp.deps.sql`select reason from dead_letters order by id`
  const reasons = letters.map(letter => letter.reason as string)
  t.ok(reasons.includes('no such team'))
  t.ok(reasons.includes('charge.costNano: Too small: expected number to be >=0'), reasons.join('; '))
})

t.test(
  'a charge is kept when its span is unreadable, and the captured payload stays out of the dead letters',
  async t => {
    const cp = await startControlPlane(t)
    const { teamId } = await team(cp)
    const call = callRecord(teamId, {
      span: { payload: { input: 'the secret prompt', output: 'x', variables: null } },
    })
    const broken = { ...call, span: { ...call.span, startTimeMs: 'yesterday' } }
    const foreign = {
      ...call,
      charge: { ...call.charge, requestId: randomUUID() },
      span: { ...call.span, teamId: randomUUID() },
    }
    t.same((await ship(cp, [broken, foreign])).body, { accepted: 0, rejected: 2 })
    t.match(await sums(cp), { charges: 2, spendNano: 3000, spans: 0, dead: 2 })
    const letters = await cp.deps.sql<{ record: string }[]>`select record from dead_letters`
    for (const { record } of letters) {
      t.notMatch(record, 'secret')
      t.match(record, call.span.trace.id)
    }
  },
)

t.test('a record that PostgreSQL alone refuses is found by halving; the spool goes on', async t => {
  const cp = await startControlPlane(t)
  const { teamId } = await team(cp)
  // A constraint that no check before knows of stands for whatever we did not think of.
  await cp.deps.sql`alter table spans add constraint poison check (name <> 'poison')`
  await cp.deps.sql`alter table charges add constraint poison check (cost_nano <> 666)`
  const calls = Array.from({ length: 50 }, (_, i) =>
    callRecord(teamId, {
      span: i === 17 ? { name: 'poison' } : {},
      charge: i === 33 ? { costNano: 666 } : {},
    }),
  )
  t.same(await ship(cp, calls), { status: 200, body: { accepted: 48, rejected: 2 } })
  const letters = await cp.deps.sql`select reason from dead_letters order by id`
  t.same(
    letters.map(letter => letter.reason),
    ['PostgreSQL refused it: 23514 poison', 'PostgreSQL refused it: 23514 poison'],
  )
  t.match(await sums(cp), { charges: 49, requests: 49, spans: 48, countedSpans: 48, dead: 2 })
})

t.test('connections that die at any moment lose nothing and double nothing', async t => {
  const cp = await startControlPlane(t)
  const { teamId } = await team(cp)
  const traceIds = Array.from({ length: 4 }, () => randomUUID())
  const batches = Array.from({ length: 24 }, () =>
    Array.from({ length: 25 }, (_, i) => callRecord(teamId, { trace: { id: traceIds[i % 4]! } })),
  )
  let refused = 0
  const shipUntilTaken = async (batch: unknown[]) => {
    while ((await ship(cp, batch)).status !== 200) refused += 1
  }
  const killer = new pg.Client({ connectionString: cp.databaseUrl })
  await killer.connect()
  const shipping = Promise.all(
    [0, 1, 2].map(async lane => {
      for (const batch of batches.filter((_, i) => i % 3 === lane)) await shipUntilTaken(batch)
    }),
  )
  for (let round = 0; round < 40; round++) {
    await killer.query(`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'agh-test'`)
    await new Promise(resolve => setTimeout(resolve, 5 + Math.random() * 20))
  }
  await killer.end()
  await shipping
  t.ok(refused > 0, 'some batches were cut off')
  t.match(await sums(cp), {
    charges: 600,
    chargedNano: 900_000,
    spendNano: 900_000,
    requests: 600,
    spans: 600,
    traces: 4,
    countedSpans: 600,
    tracedNano: 900_000,
    dead: 0,
  })
})

t.test('text that PostgreSQL cannot hold is stored without it', async t => {
  const cp = await startControlPlane(t)
  const { teamId, owner } = await team(cp)
  const nasty = 'a\u0000b\ud800c'
  const call = callRecord(teamId, {
    charge: { model: nasty },
    span: {
      spanId: nasty,
      parentSpanId: nasty,
      name: nasty,
      model: nasty,
      errorCode: nasty,
      attributes: { [nasty]: nasty, ok: '😀 \\u0000' },
      payload: { input: { [nasty]: [nasty] }, output: nasty, variables: { v: nasty } },
    },
    trace: { name: nasty, sessionId: nasty, tags: [nasty], metadata: { [nasty]: nasty } },
  })
  t.same((await ship(cp, [call, call])).body, { accepted: 2, rejected: 0 })
  const { trace, spans } = (
    await cp.call(readTrace, { params: { id: call.span.trace.id }, as: owner.session })
  ).body
  const clean = 'a\ufffdb\ufffdc'
  t.match(trace, { name: clean, sessionId: clean, tags: [clean], metadata: { [clean]: clean }, spanCount: 1 })
  t.match(spans[0], {
    spanId: clean,
    attributes: { [clean]: clean, ok: '😀 \\u0000' },
    payload: { input: { [clean]: [clean] }, output: clean, variables: { v: clean } },
  })
})

t.test('hostile documents are stored within bounds and touch no prototype', async t => {
  const cp = await startControlPlane(t)
  const { teamId, owner } = await team(cp)
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  const call = callRecord(teamId)
  const line = JSON.stringify({
    ...call,
    span: {
      ...call.span,
      attributes: 'ATTRIBUTES',
      trace: { ...call.span.trace, metadata: 'METADATA' },
      payload: 'PAYLOAD',
    },
  })
    .replace(
      '"ATTRIBUTES"',
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"n":1e400}',
    )
    .replace('"METADATA"', '{"__proto__":{"polluted":1},"a_b":1}')
    .replace(
      '"PAYLOAD"',
      `{"input":${deep(50_000)},"output":${JSON.stringify('x'.repeat(3_000_000))},"variables":{"__proto__":1}}`,
    )
  t.same((await ship(cp, [line])).body, { accepted: 1, rejected: 0 })
  const { trace, spans } = (
    await cp.call(readTrace, { params: { id: call.span.trace.id }, as: owner.session })
  ).body
  t.equal(({} as { polluted?: number }).polluted, undefined)
  t.equal(trace.metadata.a_b, 1, 'keys are the caller’s, not camel-cased')
  t.ok(JSON.stringify(spans[0]?.payload?.input).includes('NESTED TOO DEEPLY'))
  t.match(spans[0]?.payload?.output, /x… \[truncated, 3000000 characters\]$/)
})

t.test('records of this version and of earlier ones, which repeat everything, are stored alike', async t => {
  const cp = await startControlPlane(t)
  const { teamId, virtualKeyId } = await team(cp)
  const call = callRecord(teamId, { charge: { virtualKeyId } })
  const other = callRecord(teamId, { charge: { virtualKeyId, admittedAtMs: call.charge.admittedAtMs } })
  t.same((await ship(cp, [recordJson(call), JSON.stringify(other)])).body, { accepted: 2, rejected: 0 })
  const stored = async (table: string, { charge, span }: typeof call) => {
    const [row] = await cp.deps
      .sql`select * from ${cp.deps.sql(table)} r where r::text like ${`%${charge.requestId}%`}`
    return JSON.stringify({ ...row, position: 0 })
      .replaceAll(charge.requestId, 'REQUEST')
      .replaceAll(span.trace.id, 'TRACE')
  }
  for (const table of ['charges', 'spans']) {
    const row = await stored(table, call)
    t.match(row, 'REQUEST')
    t.equal(row, await stored(table, other))
  }
})

t.test('without the internal token nothing is taken', async t => {
  const cp = await startControlPlane(t)
  const { teamId, owner } = await team(cp)
  for (const authorization of ['', 'Bearer wrong', `Bearer ${owner.personalKey.key}`]) {
    const payload = ndjson([callRecord(teamId)])
    const answer = await cp.app.inject({
      method: 'POST',
      url: '/internal/calls',
      headers: { authorization },
      payload,
    })
    t.equal(answer.statusCode, 401)
  }
  t.match(await sums(cp), { charges: 0, dead: 0 })
})

t.test('an empty body is an empty batch', async t => {
  const cp = await startControlPlane(t)
  t.same(await ship(cp, []), { status: 200, body: { accepted: 0, rejected: 0 } })
})
