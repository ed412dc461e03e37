import { randomUUID } from 'node:crypto'
import t from 'tap'
import { inTransaction } from '../../../control-plane/db/sql.js'
import { foldRollups } from '../../../control-plane/traces/fold-rollups.js'
import { writeSpans } from '../../../control-plane/traces/ingest.js'
import type { SpanWrite } from '../../../control-plane/traces/span-write.js'
import { createFeedback } from '../../../shared/contract/feedback.js'
import { listTraces, readFacets, readTrace } from '../../../shared/contract/traces.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { type SeededTeam, team } from '../../support/seed.js'
import { spanWrite } from '../../support/span-writes.js'

const NOW = Date.parse('2026-11-21T12:34:56.789Z')
const DAY_MS = 86_400_000

type Query = Record<string, string | string[]>

async function setUp(t: Parameters<typeof startControlPlane>[0]) {
  const clock = { ms: NOW }
  const cp = await startControlPlane(t, { now: () => clock.ms })
  const ours = await team(cp)
  const write = (...spans: SpanWrite[]) =>
    inTransaction(cp.deps.sql, tx =>
      writeSpans(tx, spans, clock.ms, { repeated: 'replace', foreign: 'refuse' }),
    )
  const trace = async (parts: Parameters<typeof spanWrite>[1] = {}) => {
    const span = spanWrite(ours.teamId, parts)
    await write(span)
    return span.trace.id
  }
  const list = async (query: Query) => {
    const { error, body } = await cp.call(listTraces, {
      query: query as never,
      as: ours.viewer.personalKey,
    })
    if (error !== null) throw new Error(error.message)
    return body
  }
  /** Ids that a query finds; the total must be theirs, and stay so when the sums are folded. */
  const ids = async (query: Query) => {
    const found = (await list(query)).data.map(row => row.id)
    t.equal((await list(query)).total, found.length, `total of ${JSON.stringify(query)}`)
    await foldRollups(cp.deps.sql)
    t.equal((await list(query)).total, found.length, `folded total of ${JSON.stringify(query)}`)
    return found
  }
  return { cp, clock, ours, write, trace, list, ids }
}

async function insertPrompt(cp: ControlPlane, { teamId }: SeededTeam, versions: number) {
  const { sql } = cp.deps
  const [promptId, at] = [randomUUID(), new Date(NOW)]
  await sql`insert into prompts ${sql({ teamId, id: promptId, name: 'p', createdAt: at })}`
  const ids: string[] = []
  for (let versionNumber = 1; versionNumber <= versions; versionNumber++) {
    const id = randomUUID()
    const row = { teamId, id, promptId, versionNumber, messages: '[]', variables: [], createdAt: at }
    await sql`insert into prompt_versions ${sql(row)}`
    ids.push(id)
  }
  return { promptId, versionIds: ids }
}

t.test('prompt_id finds every version of the prompt, also when the prompt is deleted', async t => {
  const { cp, ours, trace, ids } = await setUp(t)
  const { promptId, versionIds } = await insertPrompt(cp, ours, 2)
  const other = await insertPrompt(cp, ours, 1)
  const one = await trace({ promptVersionId: versionIds[0]! })
  const two = await trace({ promptVersionId: versionIds[1]! })
  await trace({ promptVersionId: other.versionIds[0]! })
  await trace()
  t.same((await ids({ prompt_id: promptId })).sort(), [one, two].sort())
  await cp.deps.sql`update prompts set deleted_at = now() where id = ${promptId}`
  t.same((await ids({ prompt_id: promptId })).sort(), [one, two].sort())
  t.same(await ids({ prompt_id: randomUUID() }), [])
})

t.test(
  'score bounds are inclusive, over the scores of one trace; without a score nothing matches',
  async t => {
    const { cp, ours, trace, ids } = await setUp(t)
    const score = (traceId: string, value: number | null) =>
      cp.deps.sql`insert into trace_scores ${cp.deps.sql({
        teamId: ours.teamId,
        id: randomUUID(),
        ruleId: randomUUID(),
        traceId,
        traceReceivedAt: new Date(NOW),
        score: value,
        createdAt: new Date(NOW),
      })}`
    const [low, high, both, none, unread] = [
      await trace(),
      await trace(),
      await trace(),
      await trace(),
      await trace(),
    ]
    await score(low, 10)
    await score(high, 90)
    await score(both, 10)
    await score(both, 90)
    await score(unread, null)
    t.same((await ids({ min_score: '90' })).sort(), [high, both].sort())
    t.same(await ids({ min_score: '90.5' }), [])
    t.same((await ids({ max_score: '10' })).sort(), [low, both].sort())
    t.same(await ids({ min_score: '20', max_score: '80' }), [], 'one score between, not one on each side')
    t.notOk((await ids({ min_score: '0', max_score: '100' })).some(id => id === none || id === unread))
  },
)

t.test(
  'rating bounds are inclusive, over the feedback of one trace; without a rating nothing matches',
  async t => {
    const { cp, ours, trace, ids } = await setUp(t)
    const rate = (id: string, body: { rating?: number; label?: string }) =>
      cp.call(createFeedback, { params: { id }, body, as: ours.owner.personalKey })
    const [bad, good, unrated, silent] = [await trace(), await trace(), await trace(), await trace()]
    await rate(bad, { rating: -1 })
    await rate(good, { rating: 5 })
    await rate(unrated, { label: 'hm' })
    t.same(await ids({ min_rating: '5' }), [good])
    t.same(await ids({ max_rating: '-1' }), [bad])
    t.same(await ids({ max_rating: '0' }), [bad])
    t.same(await ids({ min_rating: '0', max_rating: '4' }), [])
    t.notOk((await ids({ min_rating: '-1' })).some(id => id === unrated || id === silent))
    const shown = await cp.call(readTrace, { params: { id: good }, as: ours.viewer.personalKey })
    t.match(shown.body.feedback, [{ rating: 5, traceId: good }], 'and the trace shows it')
  },
)

t.test(
  'every filter at once finds the trace that meets them all, and loses it with any one changed',
  async t => {
    const { cp, ours, trace, ids } = await setUp(t)
    const { promptId, versionIds } = await insertPrompt(cp, ours, 1)
    const id = await trace({
      name: 'pay',
      status: 'error',
      endTimeMs: NOW + 500,
      startTimeMs: NOW,
      model: 'm1',
      costNano: 2_000_000,
      totalTokens: 20,
      promptVersionId: versionIds[0]!,
      errorType: 'tool_declared',
      errorCode: 'no_stock',
      hasWarning: true,
      input: { order: 'seven lamps' },
      trace: { sessionId: 's1', tags: ['a', 'b'], metadata: { env: 'prod', n: 5 } },
    })
    await trace({ model: 'm1', trace: { tags: ['a'], sessionId: 's1' } })
    await cp.call(createFeedback, { params: { id }, body: { rating: 3 }, as: ours.owner.personalKey })
    await cp.deps.sql`insert into trace_scores ${cp.deps.sql({
      teamId: ours.teamId,
      id: randomUUID(),
      ruleId: randomUUID(),
      traceId: id,
      traceReceivedAt: new Date(NOW),
      score: 60,
      createdAt: new Date(NOW),
    })}`
    const all: Query = {
      from: new Date(NOW - 1000).toISOString(),
      to: new Date(NOW).toISOString(),
      status: 'error',
      model: 'm1',
      session_id: 's1',
      prompt_version_id: versionIds[0]!,
      prompt_id: promptId,
      min_latency_ms: '500',
      min_cost_usd: '0.002',
      min_tokens: '20',
      error_type: 'tool_declared',
      error_code: 'no_stock',
      has_warning: 'true',
      q: 'SEVEN lamps',
      q_in: 'input',
      tags: ['b', 'a'],
      'metadata[env]': 'prod',
      'metadata[n]': '5',
      min_score: '60',
      max_score: '60',
      min_rating: '3',
      max_rating: '3',
    }
    t.same(await ids(all), [id])
    const changed: Query = {
      from: new Date(NOW + 1).toISOString(),
      to: new Date(NOW - 1).toISOString(),
      status: 'ok',
      model: 'm2',
      session_id: 's2',
      prompt_version_id: randomUUID(),
      prompt_id: randomUUID(),
      min_latency_ms: '501',
      min_cost_usd: '0.0020001',
      min_tokens: '21',
      error_type: 'transform',
      error_code: 'no',
      has_warning: 'false',
      q: 'eight lamps',
      q_in: 'output',
      tags: ['a', 'c'],
      'metadata[env]': 'dev',
      'metadata[n]': '6',
      min_score: '61',
      max_score: '59',
      min_rating: '4',
      max_rating: '2',
    }
    for (const [name, value] of Object.entries(changed))
      t.same(await ids({ ...all, [name]: value }), [], name)
    for (const name of Object.keys(all).filter(name => name !== 'q')) {
      const { [name]: _, ...others } = all
      t.same(await ids(others), [id], `without ${name}`)
    }
  },
)

t.test('each filter alone counts what it lists, whatever the window cuts off', async t => {
  const { clock, trace, ids } = await setUp(t)
  const made: { at: number; id: string }[] = []
  for (let n = 0; n < 14; n++) {
    clock.ms = NOW - n * 7 * 3_600_000
    const isOdd = n % 2 === 1
    const id = await trace({
      status: isOdd ? 'error' : 'ok',
      model: isOdd ? 'odd' : 'even',
      errorType: isOdd ? 'transport' : null,
      errorCode: isOdd ? 'odd' : null,
      hasWarning: isOdd,
      trace: { tags: isOdd ? ['odd'] : [] },
    })
    made.unshift({ at: clock.ms, id })
  }
  clock.ms = NOW
  const odd: Query[] = [
    { status: 'error' },
    { model: 'odd' },
    { error_type: 'transport' },
    { error_code: 'odd' },
    { has_warning: 'true' },
    { tags: 'odd' },
    { tags: ['odd', 'odd'] },
  ]
  for (const [from, to] of [
    [NOW - 3 * DAY_MS, NOW],
    [NOW - 2 * DAY_MS - 1, NOW - 7 * 3_600_000],
    [NOW - 7 * 3_600_000, NOW - 7 * 3_600_000],
    [NOW - 7 * 3_600_000 + 1, NOW - 1],
    [NOW, NOW - 5 * DAY_MS],
  ] as const) {
    const window = { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
    const inside = made.filter(({ at }) => at >= from && at <= to).toReversed()
    const places = new Map(made.toReversed().map(({ id }, n) => [id, n]))
    const wanted = (rest: 0 | 1) =>
      inside.filter(({ id }) => places.get(id)! % 2 === rest).map(({ id }) => id)
    t.same(
      await ids(window),
      inside.map(({ id }) => id),
    )
    for (const query of odd) t.same(await ids({ ...query, ...window }), wanted(1), JSON.stringify(query))
    t.same(await ids({ has_warning: 'false', ...window }), wanted(0))
  }
})

t.test('dates at the ends of time are dates', async t => {
  const { trace, list } = await setUp(t)
  await trace()
  t.equal((await list({ from: '1000-01-01', to: '9999-12-31T23:59:59-12:00' })).total, 1)
  t.equal((await list({ from: '9999-12-31T23:59:59-12:00' })).total, 0)
})

t.test('facets count traces, most frequent first, 100 at most, in the window and of the team', async t => {
  const { cp, clock, ours, trace, write } = await setUp(t)
  const theirs = await team(cp)
  await write(spanWrite(theirs.teamId, { model: 'theirs', trace: { tags: ['theirs'] } }))
  const facets = async (query: Query = {}) => {
    const read = async () =>
      (await cp.call(readFacets, { query: query as never, as: ours.viewer.personalKey })).body
    const before = await read()
    await foldRollups(cp.deps.sql)
    t.same(await read(), before, 'folded')
    return before
  }
  const empty = { models: [], providers: [], tags: [], metadataKeys: [], errorTypes: [], errorCodes: [] }
  t.same(await facets(), empty)
  const id = await trace({
    model: 'm1',
    provider: 'p1',
    errorType: 'transport',
    errorCode: 'boom',
    trace: { tags: ['x', 'y'], metadata: { env: 'prod', __proto: 1 } },
  })
  await trace({ spanId: 'again', model: 'm1', provider: 'p2', trace: { id, tags: ['x'] } })
  clock.ms -= 90_000_000
  await trace({ model: 'm0', trace: { tags: ['x'], metadata: { env: 'dev' } } })
  clock.ms = NOW
  t.same(await facets(), {
    models: [
      { value: 'm0', count: 1 },
      { value: 'm1', count: 1 },
    ],
    providers: [
      { value: 'p1', count: 1 },
      { value: 'p2', count: 1 },
    ],
    tags: [
      { value: 'x', count: 2 },
      { value: 'y', count: 1 },
    ],
    metadataKeys: [
      { value: 'env', count: 2 },
      { value: '__proto', count: 1 },
    ],
    errorTypes: [{ value: 'transport', count: 1 }],
    errorCodes: [{ value: 'boom', count: 1 }],
  })
  t.match((await facets({ from: new Date(NOW).toISOString() })).models, [{ value: 'm1', count: 1 }])
  t.match((await facets({ to: new Date(NOW - 1).toISOString() })).models, [{ value: 'm0', count: 1 }])
  t.same(await facets({ from: new Date(NOW + 1).toISOString() }), empty)
  const many = Array.from({ length: 120 }, (_, n) => `t${String(n).padStart(3, '0')}`)
  await trace({ trace: { tags: many } })
  const { tags } = await facets()
  t.equal(tags.length, 100)
  t.same(
    tags.slice(0, 3).map(tag => tag.value),
    ['x', 't000', 't001'],
    'ties by value',
  )
})

t.test('a replaced span takes its values out of the facets', async t => {
  const { cp, ours, trace } = await setUp(t)
  const id = await trace({ model: 'old', errorCode: 'old' })
  await trace({ model: 'new', trace: { id } })
  const { models, errorCodes } = (await cp.call(readFacets, { as: ours.viewer.personalKey })).body
  t.same({ models, errorCodes }, { models: [{ value: 'new', count: 1 }], errorCodes: [] })
})

t.test('no key of metadata or attributes reaches an object’s prototype', async t => {
  const { cp, ours, trace, ids } = await setUp(t)
  const metadata = JSON.parse('{"constructor": "c", "toString": "s", "prototype": {"x": 1}}')
  const id = await trace({ attributes: metadata, trace: { metadata } })
  t.same(await ids({ 'metadata[constructor]': 'c' }), [id])
  t.same(await ids({ 'metadata[__proto__]': 'x' }), [])
  const { body } = await cp.call(readTrace, { params: { id }, as: ours.viewer.personalKey })
  t.same(body.trace.metadata, metadata)
  t.equal(({} as Record<string, unknown>).x, undefined)
})
