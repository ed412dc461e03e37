import { randomUUID } from 'node:crypto'
import t from 'tap'
import { inTransaction } from '../../../control-plane/db/sql.js'
import { foldRollups } from '../../../control-plane/traces/fold-rollups.js'
import { writeSpans } from '../../../control-plane/traces/ingest.js'
import { bucketOf, percentiles } from '../../../control-plane/traces/latency.js'
import { readAnalytics } from '../../../shared/contract/analytics.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { spanWrite } from '../../support/span-writes.js'

const NOW = Date.parse('2026-11-21T12:34:56.789Z')
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const iso = (ms: number) => new Date(ms).toISOString()
const none = { p50: null, p95: null, p99: null }
const same = (ms: number) => ({ p50: ms, p95: ms, p99: ms })

async function setUp(t: Parameters<typeof startControlPlane>[0]) {
  const cp = await startControlPlane(t, { now: () => NOW })
  const ours = await team(cp)
  const span = async (parts: Parameters<typeof spanWrite>[1] = {}) => {
    const made = spanWrite(ours.teamId, { startTimeMs: NOW - HOUR_MS, spanId: randomUUID(), ...parts })
    await inTransaction(cp.deps.sql, tx =>
      writeSpans(tx, [made], NOW, { repeated: 'replace', foreign: 'refuse' }),
    )
    return made
  }
  const call = (query: Record<string, string> = {}) =>
    cp.call(readAnalytics, { query: query as never, as: ours.viewer.personalKey })
  /** The answer, which is the same before and after the sums are folded. */
  const read = async (query?: Record<string, string>) => {
    const { body } = await call(query)
    await foldRollups(cp.deps.sql)
    t.same((await call(query)).body, body, 'folded')
    return body
  }
  return { cp, ours, span, call, read }
}

t.test('a window that ends in the future starts 30 days before now', async t => {
  const { span, read } = await setUp(t)
  await span()
  const { from, to, totals } = await read({ to: '2099-01-01' })
  t.match(
    { from, to, totals },
    {
      from: iso(NOW - 30 * DAY_MS),
      to: '2099-01-01T00:00:00.000Z',
      totals: { requests: 1 },
    },
  )
})

t.test('the envelope has the window, the totals and a bucket a day, keyed by date', async t => {
  const { span, read } = await setUp(t)
  await span({
    endTimeMs: NOW - HOUR_MS + 200,
    status: 'ok',
    promptTokens: 5,
    completionTokens: 3,
    totalTokens: 8,
    costNano: 1_500_000,
  })
  await span({ status: 'error', costNano: null })
  await span({ startTimeMs: NOW - 2 * DAY_MS, endTimeMs: NOW - 2 * DAY_MS + 100, costNano: 500_000 })
  t.same(await read(), {
    from: iso(NOW - 30 * DAY_MS),
    to: iso(NOW),
    groupBy: 'day',
    totals: {
      ...{
        requests: 3,
        errorRate: 1 / 3,
        promptTokens: 5,
        completionTokens: 3,
        totalTokens: 8,
        costUsd: 0.002,
      },
      latencyMs: { p50: 100, p95: 200, p99: 200 },
    },
    buckets: [
      {
        ...{
          key: '2026-11-19',
          requests: 1,
          errorRate: 0,
          promptTokens: 0,
          completionTokens: 0,
          totalTokens: 0,
        },
        ...{ costUsd: 0.0005, latencyMs: same(100) },
      },
      {
        ...{
          key: '2026-11-21',
          requests: 2,
          errorRate: 0.5,
          promptTokens: 5,
          completionTokens: 3,
          totalTokens: 8,
        },
        ...{ costUsd: 0.0015, latencyMs: same(200) },
      },
    ],
  })
})

t.test('without spans there are zeros, no latencies and no buckets', async t => {
  const { read } = await setUp(t)
  const { totals, buckets } = await read()
  t.same(totals, {
    ...{ requests: 0, errorRate: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0, costUsd: 0 },
    latencyMs: none,
  })
  t.same(buckets, [])
})

t.test('a null cost counts as 0, a null latency in requests only', async t => {
  const { span, read } = await setUp(t)
  await span({ costNano: null, endTimeMs: null })
  await span({ costNano: 7, endTimeMs: NOW - HOUR_MS + 40 })
  t.match((await read()).totals, { requests: 2, costUsd: 0.000000007, latencyMs: same(40) })
})

t.test('a group without a key is in the totals and in no bucket', async t => {
  const { span, read } = await setUp(t)
  const version = randomUUID()
  await span({ model: 'm1', promptVersionId: version, trace: { sessionId: 's1' } })
  await span({ model: 'm1', trace: { sessionId: 's1' } })
  await span({ model: 'm2' })
  await span()
  const grouped = async (group_by: string) => {
    const { totals, buckets, groupBy } = await read({ group_by })
    t.equal(groupBy, group_by)
    return { all: totals.requests, buckets: buckets.map(({ key, requests }) => [key, requests]) }
  }
  t.same(await grouped('model'), {
    all: 4,
    buckets: [
      ['m1', 2],
      ['m2', 1],
    ],
  })
  t.same(await grouped('prompt_version'), { all: 4, buckets: [[version, 1]] })
  t.same(await grouped('session'), { all: 4, buckets: [['s1', 2]] })
  t.same(await grouped('day'), { all: 4, buckets: [['2026-11-21', 4]] })
})

t.test('kind and model filter what is counted, under every grouping', async t => {
  const { span, read } = await setUp(t)
  await span({ kind: 'llm', model: 'm1', trace: { sessionId: 's1' }, endTimeMs: NOW - HOUR_MS + 10 })
  await span({ kind: 'llm', model: 'm2', trace: { sessionId: 's1' } })
  await span({ kind: 'tool', model: 'm1', trace: { sessionId: 's2' } })
  for (const group_by of ['day', 'model', 'session', 'prompt_version']) {
    t.equal((await read({ group_by, kind: 'llm' })).totals.requests, 2, group_by)
    t.equal((await read({ group_by, model: 'm1' })).totals.requests, 2, group_by)
    t.match(
      (await read({ group_by, kind: 'llm', model: 'm1' })).totals,
      { requests: 1, latencyMs: same(10) },
      group_by,
    )
    t.equal((await read({ group_by, model: 'm' })).totals.requests, 0, 'exact')
  }
  t.equal((await read({ model: '' })).totals.requests, 3, 'blank means no filter')
})

t.test('a span belongs to the session that its trace has now', async t => {
  const { span, read } = await setUp(t)
  const { trace } = await span({ trace: { sessionId: 'first' } })
  await span({ trace: { id: trace.id, sessionId: 'second' }, startTimeMs: NOW - 1 })
  const { buckets } = await read({ group_by: 'session' })
  t.same(
    buckets.map(({ key, requests }) => [key, requests]),
    [['second', 2]],
  )
})

t.test('a span that is replaced by a later one takes its session over the end of a window', async t => {
  const { span, read } = await setUp(t)
  const at = NOW - 5 * HOUR_MS
  const trace = { id: randomUUID(), sessionId: 's1' }
  const write = (spanId: string, startTimeMs: number) =>
    span({ spanId, startTimeMs, endTimeMs: startTimeMs + 10, trace })
  const inWindow = async () =>
    (await read({ group_by: 'session', from: iso(at), to: iso(at + HOUR_MS) })).buckets[0]?.requests
  await write('first', at)
  await write('second', at + 60_000)
  t.equal(await inWindow(), 2)
  await write('second', at + 2 * HOUR_MS)
  t.equal(await inWindow(), 1)
})

t.test(
  'a session is counted by its spans in the window, wherever the window cuts it or its traces',
  async t => {
    const { span, read } = await setUp(t)
    const spans: { session: string; at: number; ms: number }[] = []
    for (let n = 0; n < 48; n++) {
      // Four sessions of four traces of three spans, each reaching hours further back than the one before.
      const [session, trace] = [n % 4, n % 16]
      const at = NOW - session * 3 * HOUR_MS - trace * 700_000 - n * (n % 3) * 300_000
      const id = `20000000-0000-4000-8000-0000000000${String(trace).padStart(2, '0')}`
      spans.push({ session: `s${session}`, at, ms: 10 + n })
      await span({ startTimeMs: at, endTimeMs: at + 10 + n, trace: { id, sessionId: `s${session}` } })
    }
    for (const hours of [0, 1, 3, 6, 9, 12, 20]) {
      for (const length of [1, 4, 7, 30]) {
        const [from, to] = [NOW - (hours + length) * HOUR_MS, NOW - hours * HOUR_MS]
        const inside = spans.filter(({ at }) => at >= from && at <= to)
        const sessions = [...new Set(inside.map(({ session }) => session))].sort()
        const { buckets } = await read({ group_by: 'session', from: iso(from), to: iso(to) })
        const expected = sessions.map(session => {
          const took = inside.filter(one => one.session === session).map(({ ms }) => ms)
          return [session, took.length, Math.max(...took)]
        })
        const seen = buckets.map(({ key, requests, latencyMs: { p99 } }) => [key, requests, p99])
        t.same(
          seen.map(([key, requests]) => [key, requests]).sort(),
          expected.map(([key, requests]) => [key, requests]),
          `${length} hours until ${hours} ago`,
        )
        for (const [key, , most] of expected) {
          const [, , p99] = seen.find(one => one[0] === key) ?? []
          t.ok(Math.abs(Number(p99) - Number(most)) <= 0.05 * Number(most), `${key}: ${p99} of ${most}`)
        }
      }
    }
  },
)

t.test(
  'the window is the span’s start, to the millisecond and with both ends, whatever hours it cuts',
  async t => {
    const { span, read } = await setUp(t)
    const starts = Array.from({ length: 40 }, (_, n) => NOW - n * 5 * HOUR_MS - n * n * 1234)
    for (const [n, startTimeMs] of starts.entries()) {
      await span({ startTimeMs, endTimeMs: startTimeMs + 10 + n, kind: 'llm', costNano: n })
    }
    const windows = [
      [NOW - 7 * DAY_MS, NOW],
      [starts[20]!, starts[3]!],
      [starts[20]! + 1, starts[3]! - 1],
      [starts[5]!, starts[5]!],
      [starts[5]! - 60_000, starts[5]! + 60_000],
      [Date.parse('2026-11-15T00:00:00Z'), Date.parse('2026-11-18T00:00:00Z') - 1],
      [NOW, NOW - 1],
    ]
    for (const [from, to] of windows as [number, number][]) {
      const inside = starts.flatMap((start, n) => (start >= from && start <= to ? n : []))
      const cost = inside.reduce((sum, n) => sum + n, 0) / 1e9
      for (const group_by of ['day', 'session', 'model']) {
        const { totals } = await read({ group_by, from: iso(from), to: iso(to) })
        t.match(totals, { requests: inside.length, costUsd: cost }, `${group_by} ${iso(from)} ${iso(to)}`)
      }
      const { buckets } = await read({ from: iso(from), to: iso(to) })
      const days = new Map<string, number>()
      for (const n of inside.toReversed()) {
        const day = iso(starts[n]!).slice(0, 10)
        days.set(day, (days.get(day) ?? 0) + 1)
      }
      t.same(
        buckets.map(({ key, requests }) => [key, requests]),
        [...days],
      )
    }
  },
)

t.test('percentiles are those of nearest rank within 5 %, over many durations', async t => {
  const { cp, ours, read } = await setUp(t)
  let state = 7
  const durations = Array.from({ length: 3000 }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return Math.round(Math.exp((state / 0x7fffffff) * 9))
  })
  for (let at = 0; at < durations.length; at += 500) {
    const spans = durations.slice(at, at + 500).map((ms, n) => {
      const startTimeMs = NOW - ((at + n) % 600) * HOUR_MS
      return spanWrite(ours.teamId, { spanId: `${at + n}`, startTimeMs, endTimeMs: startTimeMs + ms })
    })
    await inTransaction(cp.deps.sql, tx =>
      writeSpans(tx, spans, NOW, { repeated: 'keep', foreign: 'refuse' }),
    )
  }
  const { totals } = await read()
  const sorted = durations.toSorted((a, b) => a - b)
  for (const [name, share] of [
    ['p50', 0.5],
    ['p95', 0.95],
    ['p99', 0.99],
  ] as const) {
    const exact = sorted[Math.ceil(share * sorted.length) - 1]!
    t.ok(
      Math.abs(totals.latencyMs[name]! - exact) <= 0.05 * exact,
      `${name}: ${totals.latencyMs[name]} of ${exact}`,
    )
  }
})

t.test('both clocks of a bucket agree: PostgreSQL’s and ours', async t => {
  const { cp } = await setUp(t)
  const us = Array.from({ length: 500 }, (_, n) => Math.floor(1.07 ** n)).filter(n => n < 1e14)
  const rows = await cp.deps.sql<{ us: string; bucket: string }[]>`
    select us, latency_bucket(us) as bucket from unnest(${us.map(String)}::text[]::bigint[]) as us`
  for (const row of rows) t.ok(Math.abs(Number(row.bucket) - bucketOf(Number(row.us))) <= 1, row.us)
  t.equal(bucketOf(0), 0)
  t.same(percentiles([3, 1, 10, 3, -1, -10], [0.5]), [null], 'what was taken off is gone')
})

t.test('wrong parameters answer 400, another team sees nothing of ours', async t => {
  const { cp, span, call } = await setUp(t)
  await span()
  t.equal((await call({ from: 'x' })).error?.message, 'Invalid date')
  t.match((await call({ group_by: 'hour' })).error?.message, /^Invalid enum value/)
  t.match((await call({ kind: 'x' })).error?.message, /^Invalid enum value/)
  const theirs = await team(cp)
  t.equal((await cp.call(readAnalytics, { as: theirs.teamKey })).body.totals.requests, 0)
})
