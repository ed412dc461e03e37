import { randomUUID } from 'node:crypto'
import t from 'tap'
import { inTransaction } from '../../../control-plane/db/sql.js'
import { writeSpans } from '../../../control-plane/traces/ingest.js'
import { listSessions, readSession } from '../../../shared/contract/sessions.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { spanWrite } from '../../support/span-writes.js'

const NOW = Date.parse('2026-11-21T12:34:56.789Z')
const DAY_MS = 86_400_000
const iso = (ms: number) => new Date(ms).toISOString()

async function setUp(t: Parameters<typeof startControlPlane>[0]) {
  const clock = { ms: NOW }
  const cp = await startControlPlane(t, { now: () => clock.ms })
  const ours = await team(cp)
  /** A trace of one span that starts then. */
  const trace = async (
    sessionId: string | null,
    startTimeMs: number,
    parts: Parameters<typeof spanWrite>[1] = {},
  ) => {
    const span = spanWrite(ours.teamId, { startTimeMs, ...parts, trace: { sessionId, ...parts.trace } })
    await inTransaction(cp.deps.sql, tx =>
      writeSpans(tx, [span], clock.ms, { repeated: 'replace', foreign: 'refuse' }),
    )
    return span.trace.id
  }
  const list = (query: Record<string, string> = {}) =>
    cp.call(listSessions, { query, as: ours.viewer.personalKey })
  const ids = async (query?: Record<string, string>) => {
    const { body } = await list(query)
    t.equal(body.total, body.data.length)
    return body.data.map(session => session.sessionId)
  }
  const read = (id: string, as = ours.viewer.personalKey) => cp.call(readSession, { params: { id }, as })
  return { cp, clock, ours, trace, list, ids, read }
}

t.test('a session sums up its traces; traces without a session belong to none', async t => {
  const { trace, list, read } = await setUp(t)
  await trace('s/1 ü', NOW - 5000, { costNano: 1500, totalTokens: 10 })
  const id = await trace('s/1 ü', NOW - 9000, { costNano: null, endTimeMs: NOW - 8000, totalTokens: 2 })
  await trace('s/1 ü', NOW - 7000, { spanId: 'second', costNano: 3, trace: { id, tags: ['x'] } })
  await trace(null, NOW)
  const summary = {
    sessionId: 's/1 ü',
    traceCount: 2,
    totalCostUsd: 0.000001503,
    totalTokens: 12,
    firstAt: iso(NOW - 9000),
    lastAt: iso(NOW - 5000),
  }
  t.same((await list()).body, { data: [summary], total: 1, page: 1, limit: 20 })
  const { session, traces } = (await read('s/1 ü')).body
  t.same(session, summary)
  t.equal(traces.length, 2)
  t.match(traces[1], { id, sessionId: 's/1 ü', tags: ['x'], spanCount: 2, hasWarning: false })
})

t.test('newest activity first, by the latest trace start; every session on one page', async t => {
  const { trace, list } = await setUp(t)
  for (let n = 0; n < 25; n++) await trace(`s${n}`, NOW - ((n * 7) % 25) * 60_000)
  await trace('s3', NOW + 1)
  const seen: string[] = []
  for (let page = 1; page <= 3; page++) {
    const { body } = await list({ page: String(page), limit: '10' })
    t.match(body, { total: 25, page, limit: 10 })
    seen.push(...body.data.map(session => session.sessionId))
  }
  t.equal(seen[0], 's3')
  t.equal(new Set(seen).size, 25)
  t.match((await list({ limit: '101' })).error?.message, /^Number must be less than or equal to 100$/)
})

t.test('a trace start inside the window lists the session whole; none excludes it whole', async t => {
  const { trace, ids, list } = await setUp(t)
  await trace('long', NOW - 40 * DAY_MS, { costNano: 7 })
  await trace('long', NOW - 10 * DAY_MS, { costNano: 8 })
  await trace('old', NOW - 31 * DAY_MS)
  t.same(await ids(), ['long'], 'the last 30 days by default')
  t.match((await list()).body.data, [
    { traceCount: 2, totalCostUsd: 0.000000015, firstAt: iso(NOW - 40 * DAY_MS) },
  ])
  const at = NOW - 10 * DAY_MS
  t.same(await ids({ from: iso(at), to: iso(at) }), ['long'], 'both ends are inclusive')
  t.same(await ids({ from: iso(at + 1) }), [])
  t.same(
    await ids({ from: iso(NOW - 39 * DAY_MS), to: iso(at - 1) }),
    ['old'],
    'not one whose activity lies around it',
  )
  t.same(await ids({ from: iso(NOW - 40 * DAY_MS), to: iso(NOW - 32 * DAY_MS) }), ['long'])
  t.same(await ids({ from: iso(NOW), to: iso(NOW - 1) }), [])
})

t.test('q is part of the session id, in any letter case, its wildcards ordinary characters', async t => {
  const { trace, ids, list } = await setUp(t)
  await trace('Order-100%_a', NOW)
  await trace('order-1000', NOW - 1)
  t.same(await ids({ q: 'ORDER' }), ['Order-100%_a', 'order-1000'])
  t.same(await ids({ q: '0%_' }), ['Order-100%_a'])
  t.same(await ids({ q: '1_0' }), [])
  t.same(await ids({ q: '\\' }), [])
  t.same((await ids({ q: '  ' })).length, 2, 'blank means no filter')
  t.equal((await list({ q: 'a\u0000' })).error?.message, 'q must not contain the NUL character')
  t.equal((await list({ q: 'x'.repeat(257) })).status, 400)
  t.equal((await list({ from: 'soon' })).error?.message, 'Invalid date')
})

t.test('the detail has the newest 100 traces, whatever from and to say', async t => {
  const { trace, read, cp, ours } = await setUp(t)
  for (let n = 0; n < 103; n++) await trace('s', NOW - n * DAY_MS)
  const { session, traces } = (await read('s')).body
  t.equal(session.traceCount, 103)
  t.equal(traces.length, 100)
  t.same(
    traces.map(row => row.startedAt),
    traces
      .map(row => row.startedAt)
      .toSorted()
      .toReversed(),
  )
  t.equal(traces[0]?.startedAt, iso(NOW))
  const narrowed = await cp.app.inject({
    url: `/api/v1/sessions/s?from=${iso(NOW)}&to=${iso(NOW)}`,
    headers: { authorization: `Bearer ${ours.viewer.personalKey.key}` },
  })
  t.equal(narrowed.json().traces.length, 100)
})

t.test('an unknown session and another team’s answer 404 Session not found.', async t => {
  const { cp, trace, read, ids } = await setUp(t)
  await trace('s', NOW)
  const theirs = await team(cp)
  for (const answer of [
    await read('s', theirs.owner.personalKey),
    await read('t'),
    await read('\u0000'),
    await read(randomUUID()),
  ]) {
    t.same(
      { status: answer.status, error: answer.error },
      { status: 404, error: { code: 'NOT_FOUND', message: 'Session not found.' } },
    )
  }
  t.same(await ids(), ['s'])
})

t.test('a trace that changes its session or its start takes its sums along', async t => {
  const { trace, list, read } = await setUp(t)
  const id = await trace('a', NOW - 1000, { costNano: 5 })
  await trace('a', NOW - 3000, { costNano: 1 })
  await trace('b', NOW, { spanId: 'later', costNano: 2, trace: { id } })
  t.match((await list()).body.data, [
    {
      sessionId: 'b',
      traceCount: 1,
      totalCostUsd: 0.000000007,
      firstAt: iso(NOW - 1000),
      lastAt: iso(NOW - 1000),
    },
    { sessionId: 'a', traceCount: 1, totalCostUsd: 0.000000001, lastAt: iso(NOW - 3000) },
  ])
  await trace(null, NOW - 5000, { spanId: 'earlier', trace: { id } })
  t.match((await read('b')).body.session, { firstAt: iso(NOW - 5000), lastAt: iso(NOW - 5000) })
  await trace('a', NOW + 1, { spanId: 'latest', trace: { id } })
  t.equal((await read('b')).status, 404, 'a session without a trace is none')
  t.match((await read('a')).body.session, {
    traceCount: 2,
    firstAt: iso(NOW - 5000),
    lastAt: iso(NOW - 3000),
  })
})
