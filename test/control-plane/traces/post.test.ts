import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Call } from '../../../shared/contract/endpoint.js'
import { updateTraceSettings } from '../../../shared/contract/settings.js'
import { ingestTraces } from '../../../shared/contract/trace-ingestion.js'
import { listTraces, readTrace } from '../../../shared/contract/traces.js'
import { type Credential, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

type TraceInput = NonNullable<Call<typeof ingestTraces>['body']>['traces'][number]
type SpanInput = TraceInput['spans'][number]

const START = '2026-11-21T12:00:00.000Z'
const span = (spanId: string, fields: Partial<SpanInput> = {}): SpanInput => ({
  spanId,
  name: `step ${spanId}`,
  startTime: START,
  ...fields,
})

async function setUp(t: Test) {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const post = (traces: unknown, as: Credential = ours.virtualKey) =>
    cp.call(ingestTraces, { as, body: { traces: traces as TraceInput[] } })
  const read = async (id: string) => {
    const answer = await cp.call(readTrace, { as: ours.viewer.personalKey, params: { id } })
    return answer.error === null ? answer.body : null
  }
  const settings = (body: NonNullable<Call<typeof updateTraceSettings>['body']>) =>
    cp.call(updateTraceSettings, { as: ours.owner.personalKey, body })
  const count = async () => (await cp.call(listTraces, { as: ours.viewer.personalKey })).body.total
  return { cp, ours, post, read, settings, count }
}

t.test('every field of a span and of a trace reads back as it was sent', async t => {
  const { post, read, settings } = await setUp(t)
  await settings({ capturePayloads: true })
  const whole = span('root', {
    name: 'answer a question',
    kind: 'llm',
    status: 'ok',
    endTime: '2026-11-21T12:00:01.500Z',
    model: 'gpt-test',
    provider: 'openai',
    usage: { promptTokens: 10, completionTokens: 5, totalTokens: 15 },
    costUsd: 0.000000003,
    attributes: { nested: { list: [1, 'two', null] }, constructor: 'own', warnings: ['slow'] },
    errorType: 'provider_error',
    errorCode: 'overloaded',
    payload: { input: [{ role: 'user', content: 'Hi' }], output: 'Hello', variables: { name: 'Ada' } },
  })
  const child = span('child', { parentSpanId: 'root', startTime: '2026-11-21T14:00:00.250+02:00' })
  const { body } = await post([
    {
      name: 'Checkout',
      sessionId: 's-1',
      tags: ['b', 'a'],
      metadata: { plan: 'pro' },
      spans: [whole, child],
    },
  ])
  t.equal(body.accepted, 2)
  t.match(await read(body.traceIds[0]!), {
    trace: {
      id: body.traceIds[0],
      name: 'Checkout',
      sessionId: 's-1',
      status: 'ok',
      startedAt: START,
      endedAt: '2026-11-21T12:00:01.500Z',
      spanCount: 2,
      totalCostUsd: 0.000000003,
      totalTokens: 15,
      durationMs: 1500,
      tags: ['a', 'b'],
      hasWarning: true,
      metadata: { plan: 'pro' },
    },
    spans: [
      { ...whole, parentSpanId: null, durationMs: 1500, promptVersionId: null, startTime: START },
      {
        spanId: 'child',
        parentSpanId: 'root',
        name: 'step child',
        kind: 'other',
        status: 'unset',
        startTime: '2026-11-21T12:00:00.250Z',
        endTime: null,
        durationMs: null,
        model: null,
        provider: null,
        usage: null,
        costUsd: null,
        errorType: null,
        errorCode: null,
        attributes: {},
        payload: null,
      },
    ],
    feedback: [],
  })
})

t.test(
  'rule 1: a trace id left out is minted, an unknown one is used, an own one is appended to',
  async t => {
    const { post, read, count } = await setUp(t)
    // Of no UUID version, as OpenTelemetry makes them; upper case is the same id.
    const known = '11111111-1111-1111-1111-11111111111A'
    const first = await post([{ spans: [span('a')] }, { traceId: known, spans: [span('a')] }])
    t.equal(first.body.traceIds.length, 2)
    t.equal(first.body.traceIds[1], known.toLowerCase())
    t.match(first.body.traceIds[0], /^[0-9a-f]{8}-[0-9a-f]{4}-4/)
    await post([{ traceId: known.toLowerCase(), spans: [span('b', { parentSpanId: 'a' })] }])
    t.same(
      (await read(known))?.spans.map(each => each.spanId),
      ['a', 'b'],
    )
    t.equal(await count(), 2)
  },
)

t.test('rule 1: a trace id of another team answers 404 and changes nothing of theirs', async t => {
  const { cp, post, read } = await setUp(t)
  const theirs = await team(cp)
  const { body } = await post([{ spans: [span('a')] }])
  const before = await read(body.traceIds[0]!)
  const { status, error } = await post([{ traceId: body.traceIds[0], spans: [span('b')] }], theirs.virtualKey)
  t.equal(status, 404)
  t.same(error, { code: 'NOT_FOUND', message: 'Trace not found.' })
  t.same(await read(body.traceIds[0]!), before)
  t.equal((await cp.call(listTraces, { as: theirs.owner.personalKey })).body.total, 0)
})

t.test('rule 2: traces before the one that fails stay, it and those after it are not written', async t => {
  const { cp, post, read, count } = await setUp(t)
  const theirs = await team(cp)
  const foreign = (await post([{ spans: [span('a')] }], theirs.virtualKey)).body.traceIds[0]
  const [first, last, orphaned] = [randomUUID(), randomUUID(), randomUUID()]
  const refused = await post([
    { traceId: first, spans: [span('a')] },
    { traceId: foreign, spans: [span('b')] },
    { traceId: last, spans: [span('a')] },
  ])
  t.equal(refused.status, 404)
  t.equal((await read(first))?.spans.length, 1)
  t.equal(await read(last), null)
  const orphan = await post([
    { traceId: last, spans: [span('a')] },
    { traceId: orphaned, spans: [span('a'), span('b', { parentSpanId: 'nobody' })] },
  ])
  t.equal(orphan.error?.code, 'INVALID_SPAN_PARENT')
  t.equal((await read(last))?.spans.length, 1)
  t.equal(await read(orphaned), null, 'within one trace it is all or nothing')
  t.equal(await count(), 2)
})

t.test('rule 2: one trace in two inputs is written in their order', async t => {
  const { post, read } = await setUp(t)
  const [traceId, other] = [randomUUID(), randomUUID()]
  const child = span('child', { parentSpanId: 'root' })
  const inOrder = await post([
    { traceId, spans: [span('root')] },
    { traceId, spans: [child, span('root', { name: 'said again' })] },
  ])
  t.same(inOrder.body.traceIds, [traceId, traceId])
  t.same((await read(traceId))?.spans.map(({ name }) => name).sort(), ['said again', 'step child'])
  const tooEarly = await post([
    { traceId: other, spans: [child] },
    { traceId: other, spans: [span('root')] },
  ])
  t.equal(tooEarly.error?.code, 'INVALID_SPAN_PARENT')
  t.equal(await read(other), null)
})

t.test('rule 3: a prompt version that is not the team’s answers 404 before anything is written', async t => {
  const { cp, ours, post, count } = await setUp(t)
  const theirs = await team(cp)
  const [own, foreign] = [await promptVersion(cp, ours.teamId), await promptVersion(cp, theirs.teamId)]
  for (const promptVersionId of [foreign, randomUUID(), '11111111-1111-1111-1111-111111111111']) {
    const { status, error } = await post([
      { spans: [span('a')] },
      { spans: [span('a', { promptVersionId: own }), span('b', { promptVersionId })] },
    ])
    t.equal(status, 404)
    t.same(error, { code: 'NOT_FOUND', message: 'Prompt version not found.' })
  }
  t.equal(await count(), 0)
  const malformed = await post([{ spans: [span('a', { promptVersionId: 'v1' })] }])
  t.same(malformed.error, {
    code: 'VALIDATION_ERROR',
    message: 'traces.0.spans.0.promptVersionId: Invalid uuid',
  })
  const stored = await post([{ spans: [span('a', { promptVersionId: own.toUpperCase() })] }])
  t.equal(stored.status, 200)
})

t.test('rule 4: 200 spans pass, 201 over the whole request answer 413 and store nothing', async t => {
  const { post, count } = await setUp(t)
  const many = (length: number) => Array.from({ length }, (_, i) => span(`s${i}`))
  const tooMany = await post([{ spans: many(101) }, { spans: many(100) }])
  t.equal(tooMany.status, 413)
  t.same(tooMany.error, {
    code: 'PAYLOAD_TOO_LARGE',
    message: 'Batch has 201 spans; the per-request limit is 200.',
  })
  t.equal(await count(), 0)
  t.equal((await post([{ spans: many(100) }, { spans: many(100) }])).body.accepted, 200)
})

t.test('a parent is a span of the same trace, in the batch in any order or stored before', async t => {
  const { post, read } = await setUp(t)
  const [traceId, other] = [randomUUID(), randomUUID()]
  await post([{ traceId, spans: [span('child', { parentSpanId: 'root' }), span('root')] }])
  const later = await post([{ traceId, spans: [span('grandchild', { parentSpanId: 'child' })] }])
  t.equal(later.status, 200)
  for (const [spanId, parentSpanId] of [
    ['a', 'root'],
    ['a', 'a'],
  ] as const) {
    const { status, error } = await post([{ traceId: other, spans: [span(spanId, { parentSpanId })] }])
    t.equal(status, 400)
    t.equal(error?.code, 'INVALID_SPAN_PARENT')
    t.match(error?.message, parentSpanId)
  }
  t.equal(await read(other), null)
})

t.test('the same spanId again replaces the span’s fields; totals follow', async t => {
  const { post, read } = await setUp(t)
  const traceId = randomUUID()
  const first = span('a', { status: 'error', costUsd: 1, usage: { totalTokens: 100 }, model: 'old' })
  const second = span('a', { status: 'ok', costUsd: 2, usage: { totalTokens: 7 }, name: 'renamed' })
  await post([{ traceId, spans: [first] }])
  t.equal((await post([{ traceId, spans: [second] }])).body.accepted, 1)
  // Twice the same trace in one request: the second appends to the first, and replaces in it.
  await post([
    { traceId, spans: [span('b', { costUsd: 1 })] },
    { traceId, spans: [span('b', { costUsd: 3 })] },
  ])
  const found = await read(traceId)
  t.match(found?.trace, { status: 'ok', spanCount: 2, totalCostUsd: 5, totalTokens: 7 })
  t.match(found?.spans[0], { name: 'renamed', model: null, costUsd: 2 })
})

t.test(
  'an explicit name names and renames; without one a trace keeps its name, or its start time',
  async t => {
    const { post, read } = await setUp(t)
    const traceId = randomUUID()
    const name = async () => (await read(traceId))?.trace.name
    await post([{ traceId, spans: [span('a')] }])
    t.equal(await name(), `Trace ${START}`)
    await post([{ traceId, name: 'First', spans: [span('b')] }])
    t.equal(await name(), 'First')
    await post([{ traceId, spans: [span('c')] }])
    t.equal(await name(), 'First')
    await post([{ traceId, name: 'Second', spans: [span('c')] }])
    t.equal(await name(), 'Second')
  },
)

t.test('what a later request says of its trace stands, whenever its spans started', async t => {
  const { post, read } = await setUp(t)
  const traceId = randomUUID()
  const second = span('b', { startTime: '2026-11-21T11:00:00.000Z' })
  await post([{ traceId, name: 'First', sessionId: 's1', metadata: { x: 1, y: 1 }, spans: [span('a')] }])
  await post([{ traceId, name: 'Second', sessionId: 's2', metadata: { x: 2 }, spans: [second] }])
  t.match((await read(traceId))?.trace, { name: 'Second', sessionId: 's2', metadata: { x: 2, y: 1 } })
})

t.test('tags unite, metadata merges, the session stays until another one is given', async t => {
  const { post, read } = await setUp(t)
  const traceId = randomUUID()
  await post([{ traceId, sessionId: 's', tags: ['a'], metadata: { x: 1, y: 1 }, spans: [span('a')] }])
  await post([{ traceId, tags: ['b'], metadata: { y: 2, z: { deep: true } }, spans: [span('b')] }])
  t.match((await read(traceId))?.trace, {
    sessionId: 's',
    tags: ['a', 'b'],
    metadata: { x: 1, y: 2, z: { deep: true } },
  })
})

t.test(
  'payloads are stored when the team’s setting or the trace says so; the trace’s false wins',
  async t => {
    const { post, read, settings } = await setUp(t)
    const payload = { input: 'in', output: { answer: 42 }, variables: { v: 1 } }
    const stored = async (capturePayloads?: boolean) => {
      const { body } = await post([{ capturePayloads, spans: [span('a', { payload })] }])
      return (await read(body.traceIds[0]!))?.spans[0]?.payload
    }
    t.equal(await stored(), null)
    t.equal(await stored(false), null)
    t.same(await stored(true), payload)
    await settings({ capturePayloads: true })
    t.same(await stored(), payload)
    t.equal(await stored(false), null)
  },
)

t.test('values under the team’s redacted keys are stored nowhere', async t => {
  const { cp, ours, post, read, settings } = await setUp(t)
  await settings({ capturePayloads: true, redactKeys: ['Password'] })
  const secret = 'hunter2-hunter2'
  const { body } = await post([
    {
      metadata: { password: secret },
      spans: [
        span('a', {
          attributes: { deep: [{ PASSWORD: secret }], args: JSON.stringify({ password: secret }) },
          payload: {
            input: { password: secret },
            output: [{ password: [secret] }],
            variables: { password: secret },
          },
        }),
      ],
    },
  ])
  const found = await read(body.traceIds[0]!)
  t.notMatch(JSON.stringify(found), secret)
  t.match(found?.spans[0]?.payload, { input: { password: '[REDACTED]' } })
  const rows = await cp.deps.sql`select spans::text from spans where team_id = ${ours.teamId}`
  t.notMatch(JSON.stringify(rows), secret)
})

async function promptVersion({ deps }: Awaited<ReturnType<typeof startControlPlane>>, teamId: string) {
  const { sql } = deps
  const [promptId, id, createdAt] = [randomUUID(), randomUUID(), new Date()]
  await sql`insert into prompts ${sql({ teamId, id: promptId, name: 'P', createdAt })}`
  await sql`
    insert into prompt_versions (team_id, id, prompt_id, version_number, messages, variables, created_at)
    values (${teamId}, ${id}, ${promptId}, 1, '[]', '{}', ${createdAt})`
  return id
}
