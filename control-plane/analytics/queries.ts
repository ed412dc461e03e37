import type { AnalyticsGroup } from '../../shared/contract/analytics.js'
import type { SpanKind } from '../../shared/contract/traces.js'
import type { Sql } from '../db/sql.js'
import type { HourParts, Range } from '../traces/hour-parts.js'
import type { FlatBars } from '../traces/latency.js'
import type { Fragment } from '../traces/queries.js'
import { NO_VERSION, type SpanSums } from '../traces/span-rollup.js'

export interface AnalyticsQuestion {
  teamId: string
  groupBy: AnalyticsGroup
  kind: SpanKind | null
  model: string | null
}

/** The sums of one group. */
export interface GroupSums extends SpanSums {
  /** null: spans without a model, session or prompt version. */
  key: string | null
  latencies: FlatBars
}

/**
 * Sums of a team's spans from the rollups; spans themselves are read for the parts of an hour at the ends of the
 * window. By session, which no rollup knows because a trace may change it, from the sessions' own sums and from the
 * traces; spans in no session are left out then.
 */
export async function sumSpans(
  sql: Sql,
  question: AnalyticsQuestion,
  parts: HourParts,
): Promise<GroupSums[]> {
  if (question.groupBy !== 'session') return sumPieces(sql, rollupPieces(sql, question, parts))
  const range = { fromMs: parts.added.fromMs, toMs: parts.removed.fromMs }
  const isOfSpans = question.kind !== null || question.model !== null
  const whole = isOfSpans ? [] : await listWholeSessions(sql, question.teamId, range)
  return [...whole, ...(await sumPieces(sql, sessionPieces(sql, question, range)))]
}

/** @param pieces a query of rollup rows, or of rows in their form, any number of a key. */
async function sumPieces(sql: Sql, pieces: Fragment): Promise<GroupSums[]> {
  const rows = await sql<(Omit<GroupSums, 'latencies'> & { bars: string })[]>`
    with pieces (
      key, requests, errors, prompt_tokens, completion_tokens, total_tokens, cost_nano, buckets, counts, sums, latencies
    ) as materialized (${pieces}),
    bars as (
      select key, string_agg(concat_ws(',', bucket, n, us), ',') as bars from (
        select key, bucket, sum(n) as n, sum(us) as us from (
          select key, bucket, n, us from pieces, unnest(buckets, counts, sums) as h(bucket, n, us)
          union all
          select key, bucket, n, s from pieces, bars_of(latencies) where latencies is not null
        ) counted
        group by key, bucket
      ) bar
      group by key
    ), totals as (
      select key, sum(requests)::double precision as requests, sum(errors)::double precision as errors,
        sum(prompt_tokens)::double precision as prompt_tokens,
        sum(completion_tokens)::double precision as completion_tokens,
        sum(total_tokens)::double precision as total_tokens, sum(cost_nano)::double precision as cost_nano
      from pieces group by key having sum(requests) > 0
    )
    select totals.*, coalesce(bars.bars, '') as bars from totals left join bars on bars.key is not distinct from totals.key`
  return rows.map(({ bars, ...sums }) => ({ ...sums, latencies: JSON.parse(`[${bars}]`) }))
}

const dayOf = (sql: Sql, clock: Fragment) => sql`to_char(${clock} at time zone 'UTC', 'YYYY-MM-DD')`

function rollupPieces(sql: Sql, question: AnalyticsQuestion, parts: HourParts): Fragment {
  const { teamId, groupBy, kind, model } = question
  const key =
    groupBy === 'day'
      ? dayOf(sql, sql`at`)
      : groupBy === 'model'
        ? sql`nullif(model, '')`
        : sql`nullif(prompt_version_id, ${NO_VERSION}::uuid)::text`
  const columns = sql`${key} as key, requests, errors, prompt_tokens, completion_tokens, total_tokens, cost_nano,
    buckets, counts, sums, null::bigint[] as latencies`
  const asked = sql`team_id = ${teamId} ${kind === null ? sql`` : sql`and kind = ${kind}`}
    ${model === null ? sql`` : sql`and model = ${model}`}`
  const within = (range: Range) => sql`at >= ${new Date(range.fromMs)} and at < ${new Date(range.toMs)}`
  const days = groupBy === 'prompt_version' ? 'day' : 'model_day'
  return sql`
    select ${columns} from span_rollups where ${asked} and grain = ${days} and ${within(parts.days)}
    union all
    select ${columns} from span_rollups
    where ${asked} and grain = 'hour' and (${within(parts.hours[0]!)} or ${within(parts.hours[1]!)})
    union all
    select ${columns} from span_rollup_deltas where ${asked} and ${within(parts.whole)}
    union all ${spanPieces(sql, question, parts.added, 1)}
    union all ${spanPieces(sql, question, parts.removed, -1)}`
}

/** Whether a session `s` lies in the window from its first span to its last. */
const isWhole = (sql: Sql, { fromMs, toMs }: Range): Fragment =>
  sql`s.first_at >= ${new Date(fromMs)} and s.last_started_at < ${new Date(toMs)}`

/** Sessions that lie in the window as a whole: a row each. */
async function listWholeSessions(sql: Sql, teamId: string, range: Range): Promise<GroupSums[]> {
  return sql<GroupSums[]>`
    select s.session_id as key, s.span_count::double precision as requests,
      s.error_count::double precision as errors, s.prompt_tokens::double precision,
      s.completion_tokens::double precision, s.total_tokens::double precision,
      s.total_cost_nano::double precision as cost_nano, to_json(s.latencies) as latencies
    from trace_sessions s where s.team_id = ${teamId} and ${isWhole(sql, range)}`
}

/**
 * The others: traces that lie in the window as a whole are added up from their own sums; of those that reach over its
 * ends the spans are read. Where only some of the spans are wanted, those of all sessions are.
 */
function sessionPieces(sql: Sql, question: AnalyticsQuestion, range: Range): Fragment {
  const { teamId, kind, model } = question
  const [from, end] = [new Date(range.fromMs), new Date(range.toMs)]
  const inWindow = sql`t.team_id = ${teamId} and t.session_id is not null
    and t.started_at < ${end} and t.last_started_at >= ${from}`
  // Session by session and trace by trace, each one range of an index: `offset 0` keeps PostgreSQL from reading all
  // traces and spans instead.
  const spansOf = (traces: Fragment) => sql`
    (select t.* from ${traces} offset 0) t cross join lateral (
      select * from spans s where s.team_id = t.team_id and s.trace_received_at = t.received_at
        and s.trace_id = t.id offset 0
    ) s`
  if (kind !== null || model !== null) {
    return spanPieces(sql, question, range, 1, spansOf(sql`traces t where ${inWindow}`))
  }
  const parted = sql`(
      select * from trace_sessions s
      where s.team_id = ${teamId} and s.first_at < ${end} and s.last_started_at >= ${from}
        and not (${isWhole(sql, range)}) offset 0
    ) s cross join lateral (
      select * from traces t where t.session_id = s.session_id and ${inWindow} offset 0
    ) t`
  return sql`
    select t.session_id, t.span_count, t.error_count, t.prompt_tokens, t.completion_tokens, t.total_tokens,
      coalesce(t.total_cost_nano, 0), '{}'::bigint[], '{}'::bigint[], '{}'::bigint[], t.latencies
    from ${parted} where t.started_at >= ${from} and t.last_started_at < ${end}
    union all ${spanPieces(
      sql,
      question,
      range,
      1,
      spansOf(sql`${parted} where t.started_at < ${from} or t.last_started_at >= ${end}`),
    )}`
}

/** Spans one by one, in the form of rollup rows. @param source spans `s`, with their traces `t` where the key is of those. */
function spanPieces(
  sql: Sql,
  question: AnalyticsQuestion,
  range: Range,
  sign: 1 | -1,
  source: Fragment = sql`spans s`,
): Fragment {
  const { teamId, groupBy, kind, model } = question
  const key = {
    day: () => dayOf(sql, sql`s.start_time`),
    model: () => sql`s.model`,
    prompt_version: () => sql`s.prompt_version_id::text`,
    session: () => sql`t.session_id`,
  }[groupBy]()
  const times = (value: Fragment) => sql`${sign}::bigint * ${value}`
  const us = sql`greatest(0, round(s.duration_ms * 1000))::bigint`
  const bar = (value: Fragment) => sql`case when s.duration_ms is null then '{}' else array[${value}] end`
  return sql`
    select ${key}, ${times(sql`1`)}, ${times(sql`(case when s.status = 'error' then 1 else 0 end)`)},
      ${times(sql`coalesce(s.prompt_tokens, 0)`)}, ${times(sql`coalesce(s.completion_tokens, 0)`)},
      ${times(sql`coalesce(s.total_tokens, 0)`)}, ${times(sql`coalesce(s.cost_nano, 0)`)},
      ${bar(sql`latency_bucket(${us})`)}, ${bar(times(sql`1`))}, ${bar(times(us))}, null::bigint[]
    from ${source}
    where s.team_id = ${teamId} and s.start_time >= ${new Date(range.fromMs)}
      and s.start_time < ${new Date(range.toMs)}
      ${kind === null ? sql`` : sql`and s.kind = ${kind}`} ${model === null ? sql`` : sql`and s.model = ${model}`}`
}
