import { randomUUID } from 'node:crypto'
import t from 'tap'
import { traceOwner } from '../../../shared/contract/internal.js'
import { listTraces, readTrace } from '../../../shared/contract/traces.js'
import { callRecord, ship } from '../../support/call-records.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { type SeededTeam, team } from '../../support/seed.js'

const START = Date.parse('2026-11-21T12:00:00.000Z')

const read = async (cp: ControlPlane, as: SeededTeam, id: string) =>
  (await cp.call(readTrace, { params: { id }, as: as.viewer.session })).body

t.test('a trace has its row, its metadata, its spans and an empty feedback list', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const call = callRecord(ours.teamId, {
    trace: { metadata: { snake_key: { deep_key: 1 } } },
    span: {
      startTimeMs: START,
      parentSpanId: 'agent-1',
      promptVersionId: randomUUID(),
      status: 'error',
      errorType: 'provider_error',
      errorCode: 'client_disconnected',
      attributes: { timeToFirstTokenMs: 12.5, user_tags: ['x'], metadata: { k_k: 1 } },
      payload: {
        input: [{ role: 'user', content: 'hi' }],
        output: { role: 'assistant' },
        variables: { a_b: 1 },
      },
    },
  })
  await ship(cp, [call])
  const { trace, spans, feedback } = await read(cp, ours, call.span.trace.id)
  t.same(feedback, [])
  t.match(trace, {
    id: call.span.trace.id,
    status: 'error',
    metadata: { snake_key: { deep_key: 1 } },
    sessionId: null,
  })
  t.equal(trace.name, 'Trace 2026-11-21T12:00:00.000Z')
  t.same(spans, [
    {
      spanId: call.charge.requestId,
      parentSpanId: 'agent-1',
      name: 'chat fast',
      kind: 'llm',
      status: 'error',
      startTime: '2026-11-21T12:00:00.000Z',
      endTime: '2026-11-21T12:00:00.250Z',
      durationMs: 250,
      model: 'gpt-test',
      provider: 'openai',
      usage: { promptTokens: 8, completionTokens: 4, totalTokens: 12 },
      costUsd: 0.0000015,
      promptVersionId: call.span.promptVersionId,
      errorType: 'provider_error',
      errorCode: 'client_disconnected',
      attributes: {
        requestId: call.charge.requestId,
        cached: false,
        timeToFirstTokenMs: 12.5,
        user_tags: ['x'],
        metadata: { k_k: 1 },
      },
      payload: {
        input: [{ role: 'user', content: 'hi' }],
        output: { role: 'assistant' },
        variables: { a_b: 1 },
      },
    },
  ])
})

t.test('an uncaptured payload is null, so are a missing cost and usage', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const call = callRecord(ours.teamId, { span: { costNano: null, tokens: null } })
  await ship(cp, [call])
  const { trace, spans } = await read(cp, ours, call.span.trace.id)
  t.match(trace, { totalCostUsd: null, totalTokens: 0 })
  t.match(spans[0], { payload: null, costUsd: null, usage: null })
})

t.test('spans are in start order, ties in order of arrival', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const id = randomUUID()
  const call = (spanId: string, startTimeMs: number) =>
    callRecord(ours.teamId, { trace: { id }, span: { spanId, startTimeMs } })
  await ship(cp, [call('z', START + 5), call('b', START), call('a', START)])
  await ship(cp, [call('0', START), call('first', START - 1)])
  const { spans, trace } = await read(cp, ours, id)
  t.same(
    spans.map(span => span.spanId),
    ['first', 'b', 'a', '0', 'z'],
  )
  t.equal(
    trace.name,
    `Trace ${new Date(START - 1).toISOString()}`,
    'the default name follows the earliest span',
  )
})

t.test('a foreign, an unknown and a malformed id answer the same bytes', async t => {
  const cp = await startControlPlane(t)
  const [ours, theirs] = [await team(cp), await team(cp)]
  const call = callRecord(theirs.teamId)
  await ship(cp, [call])
  const answers = await Promise.all(
    [call.span.trace.id, randomUUID(), 'nonsense', '%00', `${call.span.trace.id}x`, "' or 1=1 --"].map(id =>
      cp.call(readTrace, { params: { id }, as: ours.owner.session }),
    ),
  )
  for (const { status, text } of answers) {
    t.equal(status, 404)
    t.equal(text, '{"error":{"code":"NOT_FOUND","message":"Trace not found."}}')
  }
  t.equal(
    (await cp.call(readTrace, { params: { id: call.span.trace.id.toUpperCase() }, as: theirs.teamKey }))
      .status,
    200,
  )
})

t.test('two teams that send one trace id never share a trace', async t => {
  const cp = await startControlPlane(t)
  const [ours, theirs] = [await team(cp), await team(cp)]
  const id = randomUUID()
  const call = (owner: SeededTeam, name: string) => callRecord(owner.teamId, { trace: { id, name } })
  await ship(cp, [call(ours, 'ours'), call(theirs, 'theirs'), call(ours, 'ours')])
  await ship(cp, [call(theirs, 'theirs')])
  t.match((await read(cp, ours, id)).trace, { spanCount: 2, name: 'ours' })
  t.equal((await cp.call(readTrace, { params: { id }, as: theirs.owner.session })).status, 404)
  const { data, total } = (await cp.call(listTraces, { as: theirs.owner.session })).body
  t.equal(total, 1, 'one id of the other team’s own, the same each time')
  t.match(data[0], { spanCount: 2, name: 'theirs' })
})

t.test('two teams that race for one trace id each get a trace', async t => {
  const cp = await startControlPlane(t)
  const teams = [await team(cp), await team(cp), await team(cp)]
  const ids = Array.from({ length: 10 }, () => randomUUID())
  const batches = teams.map(({ teamId }, i) =>
    Array.from({ length: 30 }, (_, n) => callRecord(teamId, { trace: { id: ids[(n * (i + 3)) % 10]! } })),
  )
  const answers = await Promise.all([...batches, ...batches].map(batch => ship(cp, batch)))
  for (const { status } of answers) t.equal(status, 200)
  const [row] = await cp.deps.sql`
    select count(*)::int as n, count(distinct t.team_id)::int as teams, sum(span_count)::int as spans,
      count(*) filter (where o.team_id <> t.team_id)::int as foreign
    from traces t join trace_owners o using (id)`
  t.match(row, { teams: 3, spans: 90, foreign: 0 })
})

t.test('the proxy is told whose a trace id is', async t => {
  const cp = await startControlPlane(t)
  const [ours, theirs] = [await team(cp), await team(cp)]
  const call = callRecord(ours.teamId)
  await ship(cp, [call])
  const traceId = call.span.trace.id
  const ask = async (body: { teamId: string; traceId: string }) =>
    (await cp.call(traceOwner, { body, as: { key: cp.deps.config.internalToken } })).body?.owner
  t.equal(await ask({ teamId: ours.teamId, traceId }), 'own')
  t.equal(await ask({ teamId: theirs.teamId, traceId }), 'foreign')
  t.equal(await ask({ teamId: ours.teamId, traceId: randomUUID() }), 'unknown')
  t.equal(await ask({ teamId: ours.teamId, traceId: 'nonsense' }), 'unknown')
  const stranger = await cp.call(traceOwner, {
    body: { teamId: ours.teamId, traceId },
    as: ours.owner.personalKey,
  })
  t.equal(stranger.status, 401)
})
