import type { Sql } from '../db/sql.js'
import { receivedWithin } from '../traces/filter-queries.js'
import type { Range } from '../traces/hour-parts.js'
import type { Fragment } from '../traces/queries.js'
import { ALL_TIME } from '../traces/window.js'
import type { SumDimension } from './key-shifts.js'
import { keysOfTrace, sumsOfFeedback } from './sum-queries.js'

export interface FeedbackCount {
  key: string
  count: number
  /** null: none of them has a rating. */
  avgRating: number | null
  downCount: number
}

export interface Window {
  from: Date
  /** Inclusive. */
  to: Date
}

const DAY_MS = 86_400_000

/** The whole UTC days of a window, which the sums hold, and what is left at its ends; within PostgreSQL's dates. */
function partsOf({ from, to }: Window): { days: Range; ends: Range[] } {
  const fromMs = Math.min(from.getTime(), ALL_TIME.toMs)
  const toMs = Math.min(to.getTime() + 1, ALL_TIME.toMs)
  const first = Math.ceil(fromMs / DAY_MS) * DAY_MS
  const last = Math.floor(toMs / DAY_MS) * DAY_MS
  if (first >= last) return { days: { fromMs, toMs: fromMs }, ends: [{ fromMs, toMs }] }
  const ends = [
    { fromMs, toMs: first },
    { fromMs: last, toMs },
  ]
  return { days: { fromMs: first, toMs: last }, ends }
}

/**
 * Whole days from the sums. At the ends of the window feedback is folded by trace, then counted once for every distinct
 * key of the trace's llm spans (spec 2, summary attribution). So the cost follows the keys of a day times the days, and
 * the traces that were judged on two days at most. One statement, so that both parts are of one moment.
 */
function countsBy(sql: Sql, teamId: string, window: Window, dimension: SumDimension): Fragment {
  const { days, ends } = partsOf(window)
  const dayOf = (ms: number) => sql`(${new Date(ms)}::timestamptz at time zone 'UTC')::date`
  const ofDays = sql`
    team_id = ${teamId} and dimension = ${dimension} and day >= ${dayOf(days.fromMs)} and day < ${dayOf(days.toMs)}`
  return sql`
    with judged as materialized (
      select f.team_id, f.trace_received_at, f.trace_id, ${sumsOfFeedback(sql)}
      from feedback f where f.team_id = ${teamId} and ${receivedWithin(sql, sql`f.created_at`, ends)}
      group by f.team_id, f.trace_received_at, f.trace_id
    ), parts as (
      select k.key, j.count, j.rated, j.rating_sum, j.down
      from judged j cross join lateral (${keysOfTrace(sql, sql`j`)}) k
      where k.dimension = ${dimension}
      union all
      select key, count, rated, rating_sum, down from feedback_sums where ${ofDays}
      union all
      select key, count, rated, rating_sum, down from feedback_sum_deltas where ${ofDays}
    )
    select key, sum(count)::double precision as count,
      (sum(rating_sum) / nullif(sum(rated), 0))::double precision as avg_rating,
      sum(down)::double precision as down_count
    from parts group by key having sum(count) <> 0`
}

export async function countFeedbackByModel(
  sql: Sql,
  teamId: string,
  window: Window,
): Promise<FeedbackCount[]> {
  return sql<FeedbackCount[]>`
    select * from (${countsBy(sql, teamId, window, 'model')}) c order by key collate "C"`
}

export interface VersionFeedbackCount extends FeedbackCount {
  /** These three: null when the version no longer exists. */
  promptId: string | null
  promptName: string | null
  versionNumber: number | null
}

export async function countFeedbackByPromptVersion(
  sql: Sql,
  teamId: string,
  window: Window,
): Promise<VersionFeedbackCount[]> {
  return sql<VersionFeedbackCount[]>`
    select c.*, v.prompt_id, p.name as prompt_name, v.version_number
    from (${countsBy(sql, teamId, window, 'prompt_version')}) c
    left join prompt_versions v on v.team_id = ${teamId} and v.id = c.key::uuid
    left join prompts p on p.team_id = ${teamId} and p.id = v.prompt_id`
}
