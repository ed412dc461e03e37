import type { Sql } from '../db/sql.js'
import type { Range } from './hour-parts.js'
import { recordsOf, type TraceKey } from './partition-queries.js'
import type { Fragment } from './queries.js'
import { CHANGE } from './trace-facets.js'

/**
 * Tells of writes to traces that change no row of theirs, in the statement that does them.
 *
 * @param touched rows (team_id, trace_received_at), one for each trace or more.
 */
export const insertChanges = (tx: Sql, touched: Fragment): Fragment => tx`
  insert into trace_facet_deltas (team_id, at, dimension, value, traces)
  select team_id, date_trunc('hour', trace_received_at, 'UTC'), ${CHANGE}, '', count(*) from (${touched}) touched
  group by 1, 2`

/** The same in the transaction that does them. */
export async function tellChanges(tx: Sql, traces: readonly TraceKey[]): Promise<void> {
  const touched = tx`
    select r."teamId" as team_id, r."receivedAt" as trace_received_at from ${recordsOf(tx, traces)}`
  await tx`${insertChanges(tx, touched)}`
}

/** A UTC day that traces were received on. As long as its version is the same, so is everything about these traces. */
export interface DayVersion {
  dayMs: number
  version: string
}

/** Of a team's traces; newest first. The count of traces tells of new ones that a process of before `CHANGE` wrote. */
export async function listDayVersions(sql: Sql, teamId: string, days: Range): Promise<DayVersion[]> {
  const counted = sql`team_id = ${teamId} and dimension in ('all', ${CHANGE}) and value = ''
    and at >= ${new Date(days.fromMs)} and at < ${new Date(days.toMs)}`
  return sql<DayVersion[]>`
    select (extract(epoch from day) * 1000)::double precision as day_ms,
      concat(sum(traces) filter (where dimension = 'all'), ' ', sum(traces) filter (where dimension <> 'all')) as version
    from (
      select at as day, dimension, traces from trace_facets where ${counted} and grain = 'day'
      union all
      select date_trunc('day', at, 'UTC'), dimension, traces from trace_facet_deltas where ${counted}
    ) changes
    group by day order by day desc`
}
