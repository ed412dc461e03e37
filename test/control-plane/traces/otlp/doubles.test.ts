import t, { type Test } from 'tap'
import { ingestTraces } from '../../../../shared/contract/trace-ingestion.js'
import { chance } from '../../../faults/random.js'
import { type ControlPlane, startControlPlane } from '../../../support/control-plane.js'
import {
  exportRequest,
  nanos,
  newSpanId,
  newTraceId,
  otlpSpan,
  postOtlp,
  protobuf,
  START_MS,
  uuidOf,
} from '../../../support/otlp.js'
import { type SeededTeam, team } from '../../../support/seed.js'

/** The hunt for a dropped or doubled span: repeats, disorder, splits, races, and connections that die in mid-batch. */

type OtlpSpan = ReturnType<typeof otlpSpan>

/** Traces of a root and children, each span with tokens and a cost that no other has. */
function workload(traces: number, spansEach: number): OtlpSpan[] {
  return Array.from({ length: traces }, () => {
    const [traceId, root] = [newTraceId(), newSpanId()]
    return Array.from({ length: spansEach }, (_, i) =>
      otlpSpan({
        traceId,
        spanId: i === 0 ? root : newSpanId(),
        ...(i > 0 && { parentSpanId: root }),
        name: `step ${i}`,
        startTimeUnixNano: nanos(START_MS + i),
        attributes: {
          'llm.token_count.prompt': i,
          'llm.cost.total': (i + 1) / 1000,
          'llm.model_name': `m${i % 3}`,
        },
      }),
    )
  }).flat()
}

/** The same order each run: a failure can be looked at again. */
const shuffled = <T>(items: readonly T[], seed: number): T[] => chance(seed).shuffled(items)

const parts = <T>(items: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))

/** What must be stored, and what is: by span, and by the sums that ingestion keeps on the trace. */
async function checkBooks(t: Test, cp: ControlPlane, teamId: string, sent: readonly OtlpSpan[]) {
  const { sql } = cp.deps
  const ids = (rows: readonly { traceId: string; spanId: string }[]) =>
    rows.map(row => `${row.traceId} ${row.spanId}`).sort()
  const stored = await sql<{ traceId: string; spanId: string }[]>`
    select trace_id, span_id from spans where team_id = ${teamId}`
  t.same(ids(stored), ids(sent.map(span => ({ traceId: uuidOf(span.traceId), spanId: span.spanId }))))
  const wrong = await sql`
    select t.id, t.span_count, s.* from traces t
    left join lateral (
      select count(*) as spans, sum(total_tokens) as tokens, sum(cost_nano) as nano, min(start_time) as start,
        max(end_time) as end
      from spans s where s.team_id = t.team_id and s.trace_received_at = t.received_at and s.trace_id = t.id) s on true
    where t.team_id = ${teamId} and (t.span_count, t.total_tokens, t.total_cost_nano, t.started_at, t.ended_at)
      is distinct from (s.spans, s.tokens, s.nano, s.start, s.end)`
  t.same([...wrong], [], 'the sums on each trace are those of its spans')
  const [owners] = await sql<{ traces: number; names: number }[]>`
    select count(*)::int as traces, count(*) filter (where name = 'step 0')::int as names
    from traces where team_id = ${teamId}`
  const traces = new Set(sent.map(span => span.traceId)).size
  t.same({ ...owners }, { traces, names: traces })
}

async function setUp(t: Test) {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const send = async (spans: readonly OtlpSpan[], form: 'json' | 'protobuf' = 'protobuf') => {
    const request = exportRequest(spans)
    return postOtlp(cp, ours.virtualKey, form === 'json' ? request : protobuf(request))
  }
  return { cp, ours, send }
}

t.test('the same batch ten times, one after the other and in both forms, is one batch', async t => {
  const { cp, ours, send } = await setUp(t)
  const spans = workload(20, 15)
  for (let i = 0; i < 10; i++) t.equal((await send(spans, i % 2 === 0 ? 'json' : 'protobuf')).status, 200)
  await checkBooks(t, cp, ours.teamId, spans)
})

t.test('out of order, split over requests of every size, with overlaps', async t => {
  const { cp, ours, send } = await setUp(t)
  const spans = workload(30, 20)
  for (const [round, size] of [1, 7, 199, 200, 201, 333].entries()) {
    const some = size === 1 ? shuffled(spans, round).slice(0, 40) : shuffled(spans, round)
    for (const part of parts(some, size)) t.equal((await send(part)).status, 200)
  }
  await checkBooks(t, cp, ours.teamId, spans)
})

t.test('eight requests at once with the same spans, and sixteen that overlap, all succeed', async t => {
  const { cp, ours, send } = await setUp(t)
  const spans = workload(25, 20)
  const same = Array.from({ length: 8 }, (_, i) => shuffled(spans, i))
  const overlapping = Array.from({ length: 16 }, (_, i) => shuffled(spans, 100 + i).slice(0, 250))
  const answers = await Promise.all([...same, ...overlapping].map(each => send(each)))
  t.same(
    answers.map(answer => answer.status),
    answers.map(() => 200),
  )
  await checkBooks(t, cp, ours.teamId, spans)
})

t.test('POST /traces and OTLP at once on the same traces deadlock nobody and lose nothing', async t => {
  const { cp, ours, send } = await setUp(t)
  const spans = workload(12, 10)
  const post = (part: readonly OtlpSpan[]) => postSameSpans(cp, ours, part)
  const jobs = Array.from({ length: 6 }, (_, i) => [
    ...parts(shuffled(spans, i), 40).map(part => () => send(part)),
    ...parts(shuffled(spans, 50 + i), 40).map(part => () => post(part)),
  ]).flat()
  const statuses = (await Promise.all(shuffled(jobs, 7).map(job => job()))).map(answer => answer.status)
  t.same(
    statuses.filter(status => status !== 200),
    [],
  )
  await send(spans)
  await checkBooks(t, cp, ours.teamId, spans)
})

t.test(
  'a connection that dies in mid-batch answers 503; sent again, the batch is whole and single',
  async t => {
    const { cp, ours, send } = await setUp(t)
    const { sql } = cp.deps
    const spans = workload(60, 25)
    const seen: number[] = []
    for (let round = 0; round < 6; round++) {
      const sending = send(shuffled(spans, round))
      let killed = 0
      while (killed === 0) {
        const [row] = await sql<{ killed: number }[]>`
        select count(pg_terminate_backend(pid))::int as killed from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
          and application_name = 'agh-test'`
        killed = row?.killed ?? 0
        if (await isSettled(sending)) break
      }
      const answer = await sending
      seen.push(answer.status)
      if (answer.status !== 200) {
        t.equal(answer.status, 503)
        t.ok(answer.headers['retry-after'])
      }
    }
    t.ok(seen.includes(503), `statuses: ${seen}`)
    t.equal((await send(spans)).status, 200)
    await checkBooks(t, cp, ours.teamId, spans)
  },
)

const isSettled = (promise: Promise<unknown>) =>
  Promise.race([promise.then(() => true), new Promise<boolean>(resolve => setImmediate(resolve, false))])

/** The same spans through the other door, parents left out: there they must be known. */
async function postSameSpans(cp: ControlPlane, ours: SeededTeam, spans: readonly OtlpSpan[]) {
  const traces = [...new Set(spans.map(span => span.traceId))].map(traceId => ({
    traceId: uuidOf(traceId),
    spans: spans
      .filter(span => span.traceId === traceId)
      .map(span => ({ spanId: span.spanId, name: span.name, startTime: '2026-11-21T12:00:00Z' })),
  }))
  return cp.call(ingestTraces, { as: ours.virtualKey, body: { traces } })
}
