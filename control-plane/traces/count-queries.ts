import type { Sql } from '../db/sql.js'
import type { DayCount } from './day-counts.js'
import type { HourParts, Range } from './hour-parts.js'
import { matchingTraces, rowMatches, type TraceQuestion } from './list-queries.js'
import type { Fragment } from './queries.js'
import type { Dimension } from './trace-facets.js'

/** How many traces of some ranges match, by day. @param most counting stops there, from the newest on. */
export async function countTracesByDay(
  sql: Sql,
  question: TraceQuestion,
  ranges: readonly Range[],
  most: number,
): Promise<DayCount[]> {
  const { source } = matchingTraces(sql, question, ranges)
  const limit = Number.isFinite(most) ? sql`limit ${most}` : sql``
  return sql<DayCount[]>`${countByDay(sql, sql`select t.received_at from ${source} ${limit}`)}`
}

/** @param received rows (received_at). */
export const countByDay = (sql: Sql, received: Fragment): Fragment => sql`
  select (extract(epoch from day) * 1000)::double precision as day_ms, count::double precision from (
    select date_bin('1 day', received_at, 'epoch') as day, count(*) as count from (${received}) received group by 1
  ) days
  order by day desc`

/**
 * How many traces of a window match, from the counts that ingestion keeps, for questions that one of them answers: some
 * hundred rows whatever the number of traces.
 *
 * @param facets signed, to be added up. @param parts of the window.
 */
export async function countByFacets(
  sql: Sql,
  { teamId, conditions }: TraceQuestion,
  facets: readonly { facet: readonly [Dimension, string]; sign: 1 | -1 }[],
  parts: HourParts,
): Promise<number> {
  const counts = facets.map(({ facet: [dimension, value], sign }) => {
    const counted = sql`team_id = ${teamId} and dimension = ${dimension} and value = ${value}`
    const sum = sign === 1 ? sql`sum(traces)` : sql`-sum(traces)`
    const within = (range: Range) => sql`at >= ${new Date(range.fromMs)} and at < ${new Date(range.toMs)}`
    return sql`
      select ${sum} as traces from trace_facets where ${counted} and grain = 'day' and ${within(parts.days)}
      union all
      select ${sum} from trace_facets
      where ${counted} and grain = 'hour' and (${within(parts.hours[0]!)} or ${within(parts.hours[1]!)})
      union all
      select ${sum} from trace_facet_deltas where ${counted} and ${within(parts.whole)}`
  })
  const read = (range: Range) =>
    sql`(select count(*) from traces t where ${rowMatches(sql, { teamId, conditions }, [range])})`
  const [row] = await sql<{ total: number }[]>`
    select (coalesce(sum(traces), 0) + ${read(parts.added)} - ${read(parts.removed)})::double precision as total
    from (${counts.reduce((all, count) => sql`${all} union all ${count}`)}) counts`
  return row?.total ?? 0
}
