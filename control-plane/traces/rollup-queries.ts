import { inTransaction, type Sql } from '../db/sql.js'
import type { KeyShift } from '../feedback/key-shifts.js'
import { insertKeyShifts } from '../feedback/sum-queries.js'
import { upsertSessions } from '../sessions/rollup-queries.js'
import type { SessionDelta } from '../sessions/session-delta.js'
import { NO_VERSION, type SpanRollupDelta } from './span-rollup.js'
import type { FacetDelta } from './trace-facets.js'

export interface TraceSignature {
  teamId: string
  receivedAtMs: number
  traceId: string
  /** Base64, of all texts; see search-signature.ts. */
  signature: string
  /** The same of the names alone. */
  names: string
}

/** What a write adds to the sums and to the search. */
export interface Additions {
  spans: readonly SpanRollupDelta[]
  facets: readonly FacetDelta[]
  signatures: readonly TraceSignature[]
  sessions: readonly SessionDelta[]
  /** For the feedback on known traces; see `insertKeyShifts`. */
  keys: readonly KeyShift[]
}

/**
 * Adds them in one statement: a round trip less each, of which a small write has few others. All but the sessions are
 * appended, so that nobody waits for anybody; sessions are held from here to the end of the transaction.
 */
export async function addSums(
  tx: Sql,
  { spans, facets, signatures, sessions, keys }: Additions,
): Promise<void> {
  const ofFeedback = keys.length === 0 ? tx`` : tx`, new_feedback as (${insertKeyShifts(tx, keys)})`
  await tx`
    with new_spans as (${insertSpanDeltas(tx, spans)}),
      new_facets as (${insertFacetDeltas(tx, facets)}),
      new_signatures as (${insertSignatures(tx, signatures)}),
      new_sessions as (${upsertSessions(tx, sessions)})
      ${ofFeedback}
    select 1`
}

const insertSpanDeltas = (tx: Sql, deltas: readonly SpanRollupDelta[]) => tx`
  insert into span_rollup_deltas (
    team_id, at, week, kind, model, prompt_version_id, requests, errors, prompt_tokens, completion_tokens,
    total_tokens, cost_nano, buckets, counts, sums)
  select r."teamId", to_timestamp(r."atMs" / 1000), (to_timestamp(r."weekMs" / 1000) at time zone 'UTC')::date,
    r.kind, r.model, r."promptVersionId", r.requests, r.errors, r."promptTokens", r."completionTokens",
    r."totalTokens", r."costNano", r.buckets, r.counts, r.sums
  from json_to_recordset(${JSON.stringify(deltas)}::text::json) as r(
    "teamId" uuid, "atMs" double precision, "weekMs" double precision, kind text, model text,
    "promptVersionId" uuid, requests bigint, errors bigint, "promptTokens" bigint, "completionTokens" bigint,
    "totalTokens" bigint, "costNano" bigint, buckets bigint[], counts bigint[], sums bigint[])`

const insertFacetDeltas = (tx: Sql, deltas: readonly FacetDelta[]) => tx`
  insert into trace_facet_deltas (team_id, at, dimension, value, traces)
  select r."teamId", to_timestamp(r."atMs" / 1000), r.dimension, r.value, r.traces
  from json_to_recordset(${JSON.stringify(deltas)}::text::json) as r(
    "teamId" uuid, "atMs" double precision, dimension text, value text, traces bigint)`

const insertSignatures = (tx: Sql, signatures: readonly TraceSignature[]) => tx`
  insert into trace_signatures (team_id, received_at, trace_id, signature, names)
  select r."teamId", to_timestamp(r."receivedAtMs" / 1000), r."traceId", decode(r.signature, 'base64'),
    decode(r.names, 'base64')
  from json_to_recordset(${JSON.stringify(signatures)}::text::json)
    as r("teamId" uuid, "receivedAtMs" double precision, "traceId" uuid, signature text, names text)`

/**
 * Moves up to `limit` deltas of spans into the sums of their hour and their days. Two at once take different deltas.
 *
 * @returns how many there were.
 */
export async function foldSpanDeltas(tx: Sql, limit: number): Promise<number> {
  const [row] = await tx<{ taken: number }[]>`
    with taken as (
      delete from span_rollup_deltas
      where ctid = any(array(select ctid from span_rollup_deltas limit ${limit} for update skip locked))
      returning *
    ), grains as (
      select 'hour' as grain, taken.* from taken
      union all
      select 'day', team_id, date_trunc('day', at, 'UTC'), week, kind, model, prompt_version_id, requests, errors,
        prompt_tokens, completion_tokens, total_tokens, cost_nano, buckets, counts, sums
      from taken
      union all
      select 'model_day', team_id, date_trunc('day', at, 'UTC'), week, kind, model, ${NO_VERSION}::uuid, requests,
        errors, prompt_tokens, completion_tokens, total_tokens, cost_nano, buckets, counts, sums
      from taken
    ), bars as (
      select grain, team_id, at, week, kind, model, prompt_version_id, array_agg(bucket order by bucket) as buckets,
        array_agg(n order by bucket) as counts, array_agg(s order by bucket) as sums
      from (
        select grain, team_id, at, week, kind, model, prompt_version_id, bucket, sum(n)::bigint as n,
          sum(s)::bigint as s
        from grains, unnest(buckets, counts, sums) as h(bucket, n, s)
        group by 1, 2, 3, 4, 5, 6, 7, 8
      ) bar
      group by 1, 2, 3, 4, 5, 6, 7
    ), totals as (
      select grain, team_id, at, week, kind, model, prompt_version_id, sum(requests)::bigint as requests,
        sum(errors)::bigint as errors, sum(prompt_tokens)::bigint as prompt_tokens,
        sum(completion_tokens)::bigint as completion_tokens, sum(total_tokens)::bigint as total_tokens,
        sum(cost_nano)::bigint as cost_nano
      from grains group by 1, 2, 3, 4, 5, 6, 7
    ), folded as (
      insert into span_rollups as r (
        grain, team_id, at, week, kind, model, prompt_version_id, requests, errors, prompt_tokens, completion_tokens,
        total_tokens, cost_nano, buckets, counts, sums)
      select totals.*, coalesce(buckets, '{}'), coalesce(counts, '{}'), coalesce(sums, '{}')
      from totals left join bars using (grain, team_id, at, week, kind, model, prompt_version_id)
      order by team_id, grain, at, week, kind, model, prompt_version_id
      on conflict (team_id, grain, at, week, kind, model, prompt_version_id) do update set
        requests = r.requests + excluded.requests,
        errors = r.errors + excluded.errors,
        prompt_tokens = r.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = r.completion_tokens + excluded.completion_tokens,
        total_tokens = r.total_tokens + excluded.total_tokens,
        cost_nano = r.cost_nano + excluded.cost_nano,
        (buckets, counts, sums) = (
          select m.buckets, m.counts, m.sums
          from merge_histograms(r.buckets, r.counts, r.sums, excluded.buckets, excluded.counts, excluded.sums) m)
    )
    select count(*)::int as taken from taken`
  return row?.taken ?? 0
}

/** The same for deltas of traces. */
export async function foldFacetDeltas(tx: Sql, limit: number): Promise<number> {
  const [row] = await tx<{ taken: number }[]>`
    with taken as (
      delete from trace_facet_deltas
      where ctid = any(array(select ctid from trace_facet_deltas limit ${limit} for update skip locked))
      returning *
    ), folded as (
      insert into trace_facets as f (team_id, grain, dimension, at, value, traces)
      select team_id, grain, dimension, date_trunc(grain, at, 'UTC') as at, value, sum(traces)::bigint
      from taken cross join (values ('hour'), ('day')) as grains(grain)
      group by 1, 2, 3, 4, 5
      order by 1, 2, 3, 4, 5
      on conflict (team_id, grain, dimension, at, value) do update set traces = f.traces + excluded.traces
    )
    select count(*)::int as taken from taken`
  return row?.taken ?? 0
}

/** Forgets the sums of a week's traces, which are dropped whole. @param monday YYYYMMDD */
export async function deleteRollupsOfWeek(sql: Sql, monday: string): Promise<void> {
  const starts = sql`(to_date(${monday}::text, 'YYYYMMDD')::timestamp at time zone 'UTC')`
  for (const { id } of await sql<{ id: string }[]>`select id from teams order by id`) {
    const week = sql`team_id = ${id} and week = to_date(${monday}::text, 'YYYYMMDD')`
    const received = sql`team_id = ${id} and at >= ${starts} and at < ${starts} + interval '7 days'`
    await sql`delete from span_rollup_deltas where ${week}`
    await sql`delete from span_rollups where ${week}`
    // At once: without the deltas a day would have a version of before.
    await inTransaction(sql, async tx => {
      await tx`delete from trace_facet_deltas where ${received}`
      await tx`delete from trace_facets where ${received}`
    })
  }
}
