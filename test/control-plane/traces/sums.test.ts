import { randomUUID } from 'node:crypto'
import t from 'tap'
import { inTransaction } from '../../../control-plane/db/sql.js'
import { foldRollups } from '../../../control-plane/traces/fold-rollups.js'
import { writeSpans } from '../../../control-plane/traces/ingest.js'
import { bucketOf } from '../../../control-plane/traces/latency.js'
import { createPartitionsAhead } from '../../../control-plane/traces/partitions.js'
import { deleteExpiredTraces } from '../../../control-plane/traces/retention.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { storedPrompt } from '../../support/prompts.js'
import { type SeededTeam, team } from '../../support/seed.js'
import { spanWrite } from '../../support/span-writes.js'

const START = Date.parse('2031-03-05T12:00:00.000Z')
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const randomly = (seed: number) => {
  let state = seed
  const next = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state / 0x80000000
  }
  const pick = <T>(...items: T[]): T => items[Math.floor(next() * items.length)]!
  return { next, pick }
}

/** A span that may repeat one of before in every field that sums are made of. */
function anySpan(
  teamId: string,
  traceIds: readonly string[],
  versionIds: readonly string[],
  { next, pick }: ReturnType<typeof randomly>,
) {
  const startTimeMs = START - Math.floor(next() * 50 * HOUR_MS)
  return spanWrite(teamId, {
    spanId: `s${Math.floor(next() * 4)}`,
    name: pick('call', 'run', 'step'),
    kind: pick('llm', 'tool', 'other'),
    status: pick('ok', 'error', 'unset'),
    startTimeMs,
    endTimeMs: next() < 0.2 ? null : startTimeMs + Math.floor(next() ** 4 * 100_000),
    model: pick(null, 'm1', 'm2'),
    provider: pick(null, 'p1'),
    promptTokens: pick(null, 1, 20),
    completionTokens: pick(null, 3),
    costNano: pick(null, 5, 1_000_000_000_007),
    promptVersionId: pick(null, ...versionIds),
    errorType: pick(null, 'transport', 'transform'),
    errorCode: pick(null, 'boom', 'bang'),
    hasWarning: next() < 0.2,
    trace: {
      id: pick(...traceIds),
      sessionId: pick(null, null, 'session-a', 'session-b', 'session-c'),
      tags: pick<string[]>([], ['x'], ['x', 'y']),
      metadata: pick<Record<string, unknown> | null>(null, { env: 'prod' }, { n: 5, env: 'dev' }),
    },
  })
}

/** Three of two prompts, and one of none. */
async function someVersions(cp: ControlPlane, { editor }: SeededTeam): Promise<string[]> {
  const one = await storedPrompt(cp, editor.personalKey, { templates: ['a', 'b'] })
  const two = await storedPrompt(cp, editor.personalKey, { templates: ['c'] })
  return [...one.versionIds, ...two.versionIds, '10000000-0000-4000-8000-000000000001']
}

/** Every sum as it is kept, and the same computed from the spans and traces. */
async function kept({ deps: { sql } }: ControlPlane) {
  const rollups = await sql`
    with rows as (
      select team_id, at, week::text, kind, model, prompt_version_id, requests, errors, prompt_tokens,
        completion_tokens, total_tokens, cost_nano, buckets, counts, sums from span_rollups where grain = 'hour'
      union all select team_id, at, week::text, kind, model, prompt_version_id, requests, errors, prompt_tokens,
        completion_tokens, total_tokens, cost_nano, buckets, counts, sums from span_rollup_deltas
    )
    select at, week, kind, nullif(model, '') as model,
      nullif(prompt_version_id, '00000000-0000-0000-0000-000000000000') as version,
      sum(requests)::text as requests, sum(errors)::text as errors, sum(prompt_tokens)::text as prompt,
      sum(completion_tokens)::text as completion, sum(total_tokens)::text as total, sum(cost_nano)::text as cost,
      (select json_object_agg(bucket, array[n, us] order by bucket) from (
        select bucket, sum(c) as n, sum(s) as us from rows i, unnest(i.buckets, i.counts, i.sums) as h(bucket, c, s)
        where (i.team_id, i.at, i.week, i.kind, i.model, i.prompt_version_id)
          = (rows.team_id, rows.at, rows.week, rows.kind, rows.model, rows.prompt_version_id)
        group by bucket having sum(c) <> 0) bars)::text as bars
    from rows group by rows.team_id, at, week, kind, model, prompt_version_id having sum(requests) <> 0
    order by team_id, at, week, kind, model nulls first, version nulls first`
  const facets = await sql`
    select at, dimension, value, sum(traces)::text as traces from (
      select team_id, at, dimension, value, traces from trace_facets where grain = 'hour'
      union all select * from trace_facet_deltas) f
    where dimension <> 'change'
    group by team_id, at, dimension, value having sum(traces) <> 0 order by team_id, at, dimension, value`
  const sessions = await sql`
    select session_id, trace_count, span_count, error_count, total_cost_nano, prompt_tokens, completion_tokens,
      total_tokens, first_at, last_at, last_started_at,
      (select coalesce(array_agg(value order by bucket, place), '{}')::text from (
        select bucket, array[bucket, sum(n)::bigint, sum(s)::bigint] as bar from bars_of(latencies)
        group by bucket having sum(n) <> 0
      ) bars, unnest(bar) with ordinality as part(value, place)) as latencies
    from trace_sessions order by team_id, session_id`
  return { rollups: [...rollups], facets: [...facets], sessions: [...sessions] }
}

async function recomputed({ deps: { sql } }: ControlPlane) {
  const spans = await sql<{ bucketUs: string | null; group: string }[]>`
    select s.* , case when duration_ms is not null then greatest(0, round(duration_ms * 1000))::text end as bucket_us,
      concat_ws('|', team_id, date_trunc('hour', start_time, 'UTC'),
        date_trunc('week', trace_received_at, 'UTC')::date, kind, model, prompt_version_id) as "group"
    from spans s`
  const bars = new Map<string, Map<number, [number, number]>>()
  for (const { group, bucketUs } of spans) {
    if (bucketUs === null) continue
    const of = bars.get(group) ?? new Map<number, [number, number]>()
    bars.set(group, of)
    const [n, us] = of.get(bucketOf(Number(bucketUs))) ?? [0, 0]
    of.set(bucketOf(Number(bucketUs)), [n + 1, us + Number(bucketUs)])
  }
  const rows = await sql<{ group: string }[]>`
    select at, week, kind, model, version, count(*)::text as requests,
      count(*) filter (where status = 'error')::text as errors,
      coalesce(sum(prompt_tokens), 0)::text as prompt, coalesce(sum(completion_tokens), 0)::text as completion,
      coalesce(sum(total_tokens), 0)::text as total, coalesce(sum(cost_nano), 0)::text as cost, "group"
    from (
      select *, date_trunc('hour', start_time, 'UTC') as at, prompt_version_id as version,
        date_trunc('week', trace_received_at, 'UTC')::date::text as week,
        concat_ws('|', team_id, date_trunc('hour', start_time, 'UTC'),
          date_trunc('week', trace_received_at, 'UTC')::date, kind, model, prompt_version_id) as "group"
      from spans
    ) s
    group by team_id, at, week, kind, model, version, "group"
    order by team_id, at, week, kind, model nulls first, version nulls first`
  const rollups = rows.map(({ group, ...row }) => {
    const of = bars.get(group)
    const text = of && [...of].sort((a, b) => a[0] - b[0]).map(([b, [n, us]]) => `"${b}" : [${n},${us}]`)
    return { ...row, bars: text === undefined ? null : `{ ${text.join(', ')} }` }
  })
  const facets = await sql`
    select date_trunc('hour', received_at, 'UTC') as at, dimension, value, count(*)::text as traces
    from traces t, lateral (
      select 'all' as dimension, '' as value union all select 'status', status
      union all select 'warning', 'true' where warning_count > 0
      union all select 'model', unnest(models) union all select 'provider', unnest(providers)
      union all select 'tag', unnest(tags) union all select 'metadata_key', jsonb_object_keys(metadata)
      union all select 'error_type', unnest(error_types) union all select 'error_code', unnest(error_codes)
      union all select 'prompt_version', unnest(prompt_version_ids)
      union all select distinct 'prompt', prompt_id::text from prompt_versions v
        where v.team_id = t.team_id and v.id::text = any(t.prompt_version_ids)) f
    group by team_id, 1, 2, 3 order by team_id, at, dimension, value`
  const sessions = await sql`
    select session_id, count(*) as trace_count, coalesce(sum(total_cost_nano), 0)::bigint as total_cost_nano,
      sum(span_count)::bigint as span_count, sum(error_count)::bigint as error_count,
      sum(prompt_tokens)::bigint as prompt_tokens, sum(completion_tokens)::bigint as completion_tokens,
      sum(total_tokens)::bigint as total_tokens, min(started_at) as first_at, max(started_at) as last_at,
      max(last_started_at) as last_started_at,
      (select coalesce(array_agg(value order by bucket, place), '{}')::text from (
        select bucket, array[bucket, sum(b.n)::bigint, sum(b.s)::bigint] as bar
        from traces i, bars_of(i.latencies) b
        where i.team_id = traces.team_id and i.session_id = traces.session_id group by bucket
      ) bars, unnest(bar) with ordinality as part(value, place)) as latencies
    from traces where session_id is not null group by team_id, session_id order by team_id, session_id`
  return { rollups, facets: [...facets], sessions: [...sessions] }
}

/** What each trace's row says of its spans, against the spans. */
async function wrongTraces({ deps: { sql } }: ControlPlane): Promise<unknown[]> {
  const wrong = await sql`
    select t.id, t.started_at, n.* from traces t join (
      select trace_received_at, trace_id, count(*) as spans, count(*) filter (where status = 'error') as errors,
        count(*) filter (where has_warning) as warnings, sum(cost_nano) as cost, sum(total_tokens) as tokens,
        min(start_time) as started, max(end_time) as ended, max(start_time) as last_started,
        count(duration_ms) as timed, sum(greatest(0, round(duration_ms * 1000))::bigint) filter (where duration_ms is not null)
          as us,
        array_agg(distinct model order by model) filter (where model is not null) as models,
        array_agg(distinct name order by name) as names,
        array_agg(distinct error_code order by error_code) filter (where error_code is not null) as codes
      from spans group by 1, 2) n on n.trace_received_at = t.received_at and n.trace_id = t.id
    where (t.span_count, t.error_count, t.warning_count, t.total_cost_nano, t.total_tokens, t.started_at, t.ended_at,
        t.models, t.span_names, t.error_codes)
      is distinct from (n.spans, n.errors, n.warnings, n.cost::bigint, coalesce(n.tokens, 0), n.started, n.ended,
        coalesce(n.models, '{}'), n.names, coalesce(n.codes, '{}'))
      or t.duration_ms is distinct from extract(epoch from n.ended - n.started) * 1000
      or t.last_started_at <> n.last_started
      or (select (coalesce(sum(b.n), 0), sum(b.s)) from bars_of(t.latencies) b) is distinct from (n.timed::numeric, n.us)`
  return [...wrong]
}

async function holds(t: Parameters<typeof startControlPlane>[0], cp: ControlPlane, when: string) {
  const [held, exact] = [await kept(cp), await recomputed(cp)]
  t.same(held.rollups, exact.rollups, `spans ${when}`)
  t.same(held.facets, exact.facets, `facets ${when}`)
  t.same(held.sessions, exact.sessions, `sessions ${when}`)
  t.same(await wrongTraces(cp), [], `traces ${when}`)
}

for (const seed of [1, 2]) {
  t.test(`after any writes, one by one and at once, every sum is that of the spans (${seed})`, async t => {
    const cp = await startControlPlane(t)
    const random = randomly(seed)
    const teams = [await team(cp), await team(cp)]
    const ids = teams.map(() => Array.from({ length: 5 }, () => randomUUID()))
    const versions = [await someVersions(cp, teams[0]!), await someVersions(cp, teams[1]!)]
    const write = async () => {
      const of = random.pick(0, 1)
      const spans = Array.from({ length: random.pick(1, 3, 8) }, () =>
        anySpan(teams[of]!.teamId, ids[of]!, versions[of]!, random),
      )
      const rules = { repeated: random.pick('replace', 'replace', 'keep'), foreign: 'refuse' } as const
      const at = START + Math.floor(random.next() * 5 * HOUR_MS)
      for (let attempt = 1; ; attempt++) {
        try {
          return await inTransaction(cp.deps.sql, tx => writeSpans(tx, spans, at, rules))
        } catch (error) {
          if ((error as { code?: string }).code !== '40P01' || attempt === 5) throw error
        }
      }
    }
    for (let i = 0; i < 25; i++) await write()
    await holds(t, cp, 'one by one')
    for (let round = 0; round < 6; round++) await Promise.all([write(), write(), write(), write()])
    await holds(t, cp, 'at once')
    t.ok((await foldRollups(cp.deps.sql)) > 0)
    await holds(t, cp, 'folded')
    await Promise.all([write(), foldRollups(cp.deps.sql), write(), foldRollups(cp.deps.sql)])
    await holds(t, cp, 'folded meanwhile')
    await foldRollups(cp.deps.sql)
    t.equal(await foldRollups(cp.deps.sql), 0, 'and then there is nothing left to fold')
    const [days] = await cp.deps.sql`
      select count(*)::int as wrong from (
        select team_id, date_trunc('day', at, 'UTC') as at, kind, model, prompt_version_id, sum(requests) as n
        from span_rollups where grain = 'hour' group by 1, 2, 3, 4, 5
      ) h full join (
        select team_id, at, kind, model, prompt_version_id, sum(requests) as n from span_rollups where grain = 'day'
        group by 1, 2, 3, 4, 5
      ) d using (team_id, at, kind, model, prompt_version_id) where h.n is distinct from d.n`
    t.same(days, { wrong: 0 }, 'days hold what their hours do')
  })
}

t.test('a session keeps the latencies of any number of traces, in bounded room', async t => {
  const cp = await startControlPlane(t)
  const { teamId } = await team(cp)
  for (let trace = 0; trace < 230; trace++) {
    const endTimeMs = START + 10 + (trace % 7) * 100
    const span = spanWrite(teamId, { startTimeMs: START, endTimeMs, trace: { sessionId: 'long' } })
    await inTransaction(cp.deps.sql, tx =>
      writeSpans(tx, [span], START, { repeated: 'replace', foreign: 'refuse' }),
    )
  }
  await holds(t, cp, 'after each write')
  const [room] = await cp.deps.sql`select cardinality(latencies) <= 600 as is_bounded from trace_sessions`
  t.same(room, { isBounded: true })
})

t.test('retention takes what it deletes out of every sum', async t => {
  const clock = { ms: Date.parse('2031-03-03T00:00:00.000Z') }
  const cp = await startControlPlane(t, { now: () => clock.ms })
  const [short, long] = [await team(cp), await team(cp)]
  await cp.deps.sql`update teams set retention_days = 7 where id = ${short.teamId}`
  await cp.deps.sql`update teams set retention_days = 14 where id = ${long.teamId}`
  await createPartitionsAhead(cp.deps.sql, clock.ms)
  const random = randomly(7)
  const versions = new Map([
    [short.teamId, await someVersions(cp, short)],
    [long.teamId, await someVersions(cp, long)],
  ])
  for (let day = 0; day < 12; day++) {
    for (const { teamId } of [short, long]) {
      const ids = Array.from({ length: 3 }, () => randomUUID())
      const spans = Array.from({ length: 6 }, () => anySpan(teamId, ids, versions.get(teamId)!, random))
      await inTransaction(cp.deps.sql, tx =>
        writeSpans(tx, spans, clock.ms, { repeated: 'replace', foreign: 'refuse' }),
      )
    }
    clock.ms += DAY_MS
  }
  await foldRollups(cp.deps.sql)
  t.ok((await deleteExpiredTraces(cp.deps.sql, clock.ms)).deletedTraces > 0)
  await holds(t, cp, 'row by row')
  clock.ms += 12 * DAY_MS
  t.ok((await deleteExpiredTraces(cp.deps.sql, clock.ms)).droppedWeeks.includes('20310303'))
  await holds(t, cp, 'by the week')
  const [left] = await cp.deps.sql`
    select (select count(*) from trace_signatures g where not exists (
      select from traces t where t.team_id = g.team_id and t.received_at = g.received_at and t.id = g.trace_id))::int
      as signatures`
  t.same(left, { signatures: 0 })
})
