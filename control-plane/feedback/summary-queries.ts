import type { Sql } from '../db/sql.js'
import type { Fragment } from '../traces/queries.js'

export interface FeedbackCount {
  key: string
  count: number
  /** null: none of them has a rating. */
  avgRating: number | null
  downCount: number
}

export interface Window {
  from: Date
  to: Date
}

/**
 * Folded by trace first, then counted once for every distinct key of the trace's llm spans (spec 2, summary
 * attribution). The cost follows the traces with feedback in the window: each is one range of its spans' key.
 */
function countsBy(sql: Sql, teamId: string, { from, to }: Window, key: Fragment): Fragment {
  return sql`
    with judged as materialized (
      select trace_received_at, trace_id, count(*) as count, count(rating) as rated, sum(rating) as sum,
        count(*) filter (where rating < 0) as down
      from feedback where team_id = ${teamId} and created_at between ${from} and ${to}
      group by trace_received_at, trace_id
    )
    select k.key, sum(j.count)::double precision as count,
      (sum(j.sum)::numeric / nullif(sum(j.rated), 0))::double precision as avg_rating,
      sum(j.down)::double precision as down_count
    from judged j cross join lateral (
      select distinct ${key} as key from spans s
      where s.team_id = ${teamId} and s.trace_received_at = j.trace_received_at and s.trace_id = j.trace_id
        and s.kind = 'llm' and ${key} is not null
    ) k
    group by k.key`
}

export async function countFeedbackByModel(
  sql: Sql,
  teamId: string,
  window: Window,
): Promise<FeedbackCount[]> {
  return sql<FeedbackCount[]>`
    select * from (${countsBy(sql, teamId, window, sql`s.model`)}) c order by key collate "C"`
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
    from (${countsBy(sql, teamId, window, sql`s.prompt_version_id`)}) c
    left join prompt_versions v on v.team_id = ${teamId} and v.id = c.key
    left join prompts p on p.team_id = ${teamId} and p.id = v.prompt_id`
}
