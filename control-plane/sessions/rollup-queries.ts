import type { Sql } from '../db/sql.js'
import type { Fragment } from '../traces/queries.js'
import type { SessionDelta } from './session-delta.js'

export interface SessionKey {
  teamId: string
  sessionId: string
}

/**
 * A session's histogram may hold a bucket more than once, whoever reads it adds up; so it grows by appending, up to this
 * many numbers, three each. Merged it has 200 buckets and less, a trace some five: merged in one write of ten it costs
 * 3 µs a span less than in each.
 */
const MOST_LATENCIES = 600

/** Adds to sessions, or makes them: a statement, or a part of one. */
export const upsertSessions = (tx: Sql, deltas: readonly SessionDelta[]): Fragment => tx`
    insert into trace_sessions as s (
      team_id, session_id, trace_count, span_count, error_count, total_cost_nano, prompt_tokens, completion_tokens,
      total_tokens, latencies, first_at, last_at, last_started_at)
    select r."teamId", r."sessionId", r."traceCount", r."spanCount", r."errorCount", r."totalCostNano",
      r."promptTokens", r."completionTokens", r."totalTokens", r.latencies, to_timestamp(r."firstAtMs" / 1000),
      to_timestamp(r."lastAtMs" / 1000), to_timestamp(r."lastStartedAtMs" / 1000)
    from json_to_recordset(${JSON.stringify(deltas)}::text::json) as r(
      "teamId" uuid, "sessionId" text, "traceCount" bigint, "spanCount" bigint, "errorCount" bigint,
      "totalCostNano" bigint, "promptTokens" bigint, "completionTokens" bigint, "totalTokens" bigint,
      latencies bigint[], "firstAtMs" double precision, "lastAtMs" double precision,
      "lastStartedAtMs" double precision)
    order by 1, 2
    on conflict (team_id, session_id) do update set
      trace_count = s.trace_count + excluded.trace_count,
      span_count = s.span_count + excluded.span_count,
      error_count = s.error_count + excluded.error_count,
      total_cost_nano = s.total_cost_nano + excluded.total_cost_nano,
      prompt_tokens = s.prompt_tokens + excluded.prompt_tokens,
      completion_tokens = s.completion_tokens + excluded.completion_tokens,
      total_tokens = s.total_tokens + excluded.total_tokens,
      latencies = case
        when cardinality(s.latencies) + cardinality(excluded.latencies) <= ${MOST_LATENCIES}
        then s.latencies || excluded.latencies else merge_latencies(s.latencies, excluded.latencies) end,
      first_at = least(s.first_at, excluded.first_at),
      last_at = greatest(s.last_at, excluded.last_at),
      last_started_at = greatest(s.last_started_at, excluded.last_started_at)`

/** Looks up when sessions begin and end; those without a trace go. A statement of its own, after `upsertSessions`. */
export async function refreshSessionEnds(tx: Sql, keys: readonly SessionKey[]): Promise<void> {
  const stale = tx`json_to_recordset(${JSON.stringify(keys)}::text::json) as r("teamId" uuid, "sessionId" text)`
  const startOf = (order: 'asc' | 'desc') => tx`(
    select t.started_at from traces t where t.team_id = r."teamId" and t.session_id = r."sessionId"
    order by t.started_at ${order === 'asc' ? tx`asc` : tx`desc`} limit 1)`
  await tx`
    delete from trace_sessions s using ${stale}
    where s.team_id = r."teamId" and s.session_id = r."sessionId" and s.trace_count = 0`
  await tx`
    update trace_sessions s
    set first_at = coalesce(${startOf('asc')}, s.first_at), last_at = coalesce(${startOf('desc')}, s.last_at),
      last_started_at = coalesce((
        select max(coalesce(t.last_started_at, t.started_at)) from traces t
        where t.team_id = r."teamId" and t.session_id = r."sessionId"), s.last_started_at)
    from ${stale} where s.team_id = r."teamId" and s.session_id = r."sessionId"`
}

/** Sessions of traces that a week holds, in order, after one. */
export async function listSessionsOfWeek(
  sql: Sql,
  monday: string,
  after: SessionKey | null,
  limit: number,
): Promise<SessionKey[]> {
  const rest = after === null ? sql`true` : sql`(team_id, session_id) > (${after.teamId}, ${after.sessionId})`
  return sql<SessionKey[]>`
    select distinct team_id, session_id from ${sql(`traces_${monday}`)}
    where session_id is not null and ${rest} order by 1, 2 limit ${limit}`
}

/** Holds sessions until the end of the transaction. */
export async function lockSessions(tx: Sql, keys: readonly SessionKey[]): Promise<void> {
  await tx`
    select from trace_sessions s
    join json_to_recordset(${JSON.stringify(keys)}::text::json) as r("teamId" uuid, "sessionId" text)
      on s.team_id = r."teamId" and s.session_id = r."sessionId"
    order by s.team_id, s.session_id for update of s`
}

/**
 * Sums sessions up from their traces again, those received in a range left out. A statement of its own, after
 * `lockSessions`.
 */
export async function recomputeSessions(
  tx: Sql,
  keys: readonly SessionKey[],
  leftOut: { fromMs: number; toMs: number },
): Promise<void> {
  await tx`
    update trace_sessions s set trace_count = n.traces, span_count = n.spans, error_count = n.errors,
      total_cost_nano = n.cost, prompt_tokens = n.prompt, completion_tokens = n.completion, total_tokens = n.tokens,
      latencies = n.latencies, first_at = coalesce(n.first_at, s.first_at), last_at = coalesce(n.last_at, s.last_at),
      last_started_at = coalesce(n.last_started_at, s.last_started_at)
    from json_to_recordset(${JSON.stringify(keys)}::text::json) as r("teamId" uuid, "sessionId" text)
    cross join lateral (
      select count(*) as traces, coalesce(sum(t.span_count), 0)::bigint as spans,
        coalesce(sum(t.error_count), 0)::bigint as errors, coalesce(sum(t.total_cost_nano), 0)::bigint as cost,
        coalesce(sum(t.prompt_tokens), 0)::bigint as prompt,
        coalesce(sum(t.completion_tokens), 0)::bigint as completion,
        coalesce(sum(t.total_tokens), 0)::bigint as tokens, sum_latencies(t.latencies) as latencies,
        min(t.started_at) as first_at, max(t.started_at) as last_at, max(coalesce(t.last_started_at, t.started_at)) as last_started_at
      from traces t where t.team_id = r."teamId" and t.session_id = r."sessionId"
        and not (t.received_at >= ${new Date(leftOut.fromMs)} and t.received_at < ${new Date(leftOut.toMs)})
    ) n
    where s.team_id = r."teamId" and s.session_id = r."sessionId"`
  await tx`
    delete from trace_sessions s
    using json_to_recordset(${JSON.stringify(keys)}::text::json) as r("teamId" uuid, "sessionId" text)
    where s.team_id = r."teamId" and s.session_id = r."sessionId" and s.trace_count = 0`
}
