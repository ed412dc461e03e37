import type { Sql } from '../db/sql.js'

/** Of the given references those that name a stored span of the trace. */
export async function listStoredSpanIds(
  sql: Sql,
  teamId: string,
  traceId: string,
  spanIds: readonly string[],
): Promise<string[]> {
  const rows = await sql<{ spanId: string }[]>`
    select s.span_id
    from trace_owners o
    join spans s on s.team_id = o.team_id and s.trace_received_at = o.received_at and s.trace_id = o.id
    where o.id = ${traceId} and o.team_id = ${teamId} and s.span_id = any(${spanIds as string[]}::text[])`
  return rows.map(row => row.spanId)
}
