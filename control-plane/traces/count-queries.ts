import type { Sql } from '../db/sql.js'
import type { DayCount } from './day-counts.js'
import type { HourParts, Range } from './hour-parts.js'
import { latestFirst, matchingTraces, rowMatches, type TraceQuestion } from './list-queries.js'
import type { Fragment } from './queries.js'
import type { Dimension } from './trace-facets.js'

/** How many traces of some ranges match, by day. */
export async function countTracesByDay(
  sql: Sql,
  question: TraceQuestion,
  ranges: readonly Range[],
): Promise<DayCount[]> {
  const { source } = matchingTraces(sql, question, ranges)
  return sql<DayCount[]>`${countByDay(sql, sql`select t.received_at from ${source}`)}`
}

/** @param received rows (received_at). */
export const countByDay = (sql: Sql, received: Fragment): Fragment => sql`
  select (extract(epoch from day) * 1000)::double precision as day_ms, count::double precision from (
    select ${dayOf(sql)} as day, count(*) as count from (${received}) received group by 1
  ) days
  order by day desc`

const dayOf = (sql: Sql): Fragment => sql`date_bin('1 day', received_at, 'epoch')`

/** Of each day as many as a page mostly has. */
const NEWEST = 20

/** The same of a text search, with the newest of each day. @param most counting stops there, from the newest on. */
export async function searchTracesByDay(
  sql: Sql,
  question: TraceQuestion,
  ranges: readonly Range[],
  most: number,
): Promise<DayCount[]> {
  const { source } = matchingTraces(sql, question, ranges, sql`, ${latestFirst(sql)}`)
  const place = sql`row_number() over (partition by ${dayOf(sql)} order by received_at desc, ${latestFirst(sql)})`
  const milliseconds = (at: Fragment) => sql`(extract(epoch from ${at}) * 1000)::double precision`
  return sql<DayCount[]>`
    select ${milliseconds(sql`day`)} as day_ms, count(*)::double precision as count,
      json_agg(json_build_object('receivedAtMs', ${milliseconds(sql`received_at`)}, 'id', id) order by place)
        filter (where place <= ${NEWEST}) as newest
    from (
      select ${dayOf(sql)} as day, received_at, id, ${place} as place
      from (select t.received_at, t.started_at, t.id from ${source} limit ${most}) t
    ) found
    group by day order by day desc`
}

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
