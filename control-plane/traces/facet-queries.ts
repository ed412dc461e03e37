import type { Sql } from '../db/sql.js'
import type { HourParts, Range } from './hour-parts.js'
import type { Dimension } from './trace-facets.js'

export interface FacetCount {
  dimension: Dimension
  value: string
  count: number
}

/** Of each dimension the values that most traces of a window have, `most` of them at most; ties by value. */
export async function listFacets(
  sql: Sql,
  teamId: string,
  dimensions: readonly Dimension[],
  parts: HourParts,
  most: number,
): Promise<FacetCount[]> {
  const wanted = sql`team_id = ${teamId} and dimension = any(${dimensions as Dimension[]}::text[])`
  const within = (range: Range) => sql`at >= ${new Date(range.fromMs)} and at < ${new Date(range.toMs)}`
  const read = (range: Range, sign: 1 | -1) => sql`
    select f.dimension, f.value, ${sign}::bigint
    from traces t cross join lateral (
      select 'model' as dimension, unnest(t.models) as value
      union all select 'provider', unnest(t.providers)
      union all select 'tag', unnest(t.tags)
      union all select 'metadata_key', jsonb_object_keys(t.metadata)
      union all select 'error_type', unnest(t.error_types)
      union all select 'error_code', unnest(t.error_codes)
    ) f
    where t.team_id = ${teamId} and t.received_at >= ${new Date(range.fromMs)}
      and t.received_at < ${new Date(range.toMs)} and f.dimension = any(${dimensions as Dimension[]}::text[])`
  return sql<FacetCount[]>`
    select dimension, value, count::double precision from (
      select dimension, value, sum(traces) as count,
        row_number() over (partition by dimension order by sum(traces) desc, value collate "C") as place
      from (
        select dimension, value, traces from trace_facets where ${wanted} and grain = 'day' and ${within(parts.days)}
        union all
        select dimension, value, traces from trace_facets
        where ${wanted} and grain = 'hour' and (${within(parts.hours[0]!)} or ${within(parts.hours[1]!)})
        union all
        select dimension, value, traces from trace_facet_deltas where ${wanted} and ${within(parts.whole)}
        union all ${read(parts.added, 1)}
        union all ${read(parts.removed, -1)}
      ) counts
      group by dimension, value having sum(traces) > 0
    ) ranked
    where place <= ${most} order by dimension, place`
}
