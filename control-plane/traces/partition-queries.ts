import type { Sql } from '../db/sql.js'
import { rolledColumns } from './ingest-queries.js'
import type { Fragment } from './queries.js'
import type { RolledSpan, SpanChange } from './span-rollup.js'
import type { TraceState } from './trace-facets.js'
import { stateColumns } from './trace-row-queries.js'

/** Waiting for a lock on a partitioned table makes everybody behind wait too: better to come back. */
export async function limitLockWaits(tx: Sql): Promise<void> {
  await tx`set local lock_timeout = '500ms'`
}

/** @param monday YYYY-MM-DD. @returns whether the week was missing. */
export async function createTraceWeek(tx: Sql, monday: string): Promise<boolean> {
  const [row] = await tx<{ created: boolean }[]>`select create_trace_week(${monday}::text::date) as created`
  return row?.created ?? false
}

/** The weeks that have partitions, as YYYYMMDD of their Mondays, oldest first. */
export async function listTraceWeeks(sql: Sql): Promise<string[]> {
  const rows = await sql<{ week: string }[]>`
    select distinct substring(c.relname from '[0-9]{8}$') as week
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent in ('traces'::regclass, 'spans'::regclass) and c.relname ~ '^(traces|spans)_[0-9]{8}$'
    order by 1`
  return rows.map(row => row.week)
}

/** The longest of all teams; null without a team. */
export async function longestRetentionDays(sql: Sql): Promise<number | null> {
  const [row] = await sql<{ days: number | null }[]>`select max(retention_days) as days from teams`
  return row?.days ?? null
}

/** Teams that keep their traces for fewer days than that. */
export async function listTeamsKeepingLess(
  sql: Sql,
  days: number,
): Promise<{ id: string; retentionDays: number }[]> {
  return sql<{ id: string; retentionDays: number }[]>`
    select id, retention_days from teams where retention_days < ${days} order by id`
}

/** Where a scan of a partition's key goes on. */
export interface TraceKey {
  teamId: string
  receivedAt: Date
  id: string
}

/** Traces as records `r`. An id alone is not enough: a trace that began anew under it is another one. */
export function recordsOf(sql: Sql, traces: readonly TraceKey[]): Fragment {
  const keys = traces.map(({ teamId, receivedAt, id }) => ({ teamId, receivedAt, id }))
  return sql`
    json_to_recordset(${JSON.stringify(keys)}::text::json) as r("teamId" uuid, "receivedAt" timestamptz, id uuid)`
}

/** The next traces of a week after a key, in key order. */
export async function listTracesOfWeek(
  sql: Sql,
  week: string,
  after: TraceKey | null,
  limit: number,
): Promise<TraceKey[]> {
  const rest =
    after === null
      ? sql`true`
      : sql`(team_id, received_at, id) > (${after.teamId}, ${after.receivedAt}, ${after.id})`
  return sql<TraceKey[]>`
    select team_id, received_at, id from ${sql(`traces_${week}`)} where ${rest}
    order by team_id, received_at, id limit ${limit}`
}

/** The team's oldest traces that were received before an instant. */
export async function listExpiredTraces(
  sql: Sql,
  teamId: string,
  before: Date,
  limit: number,
): Promise<TraceKey[]> {
  return sql<TraceKey[]>`
    select team_id, received_at, id from traces where team_id = ${teamId} and received_at < ${before}
    order by received_at limit ${limit}`
}

/** Frees the ids: a late span of such a trace starts a new one, whose id stays when this is repeated. */
export async function deleteTraceOwners(tx: Sql, traces: readonly TraceKey[]): Promise<void> {
  await tx`
    delete from trace_owners where id in (
      select o.id from trace_owners o join ${recordsOf(tx, traces)} on o.id = r.id and o.received_at = r."receivedAt"
      order by o.id for update of o)`
}

/** Deletes up to `limit` spans of some of a team's traces. @returns them, as the sums know them. */
export async function deleteSpansOf(
  tx: Sql,
  teamId: string,
  traces: readonly TraceKey[],
  limit: number,
): Promise<SpanChange[]> {
  const { ids, first, last } = bounds(traces)
  // Found by place, which no missing statistics can turn into a join of everything with everything. A place is good
  // in its own partition only; in another one it is deleted if it is a span of these traces as well.
  const expired = tx`
    team_id = ${teamId} and trace_received_at between ${first} and ${last} and trace_id = any(${ids}::uuid[])`
  const deleted = await tx<(RolledSpan & { receivedAtMs: number })[]>`
    delete from spans s
    where ctid = any(array(select ctid from spans where ${expired} limit ${limit})) and ${expired}
    returning ${rolledColumns(tx)},
      (extract(epoch from s.trace_received_at) * 1000)::double precision as received_at_ms`
  return deleted.map(span => ({ span, sign: -1, receivedAtMs: span.receivedAtMs }))
}

/** With what belongs to them alone: signatures and scores. @returns their rows, as the sums know them. */
export async function deleteTraces(
  tx: Sql,
  teamId: string,
  traces: readonly TraceKey[],
): Promise<TraceState[]> {
  const { ids, first, last } = bounds(traces)
  await tx`
    delete from trace_signatures
    where team_id = ${teamId} and received_at between ${first} and ${last} and trace_id = any(${ids}::uuid[])`
  return tx<TraceState[]>`
    delete from traces t
    where t.team_id = ${teamId} and t.received_at between ${first} and ${last} and t.id = any(${ids}::uuid[])
    returning ${stateColumns(tx)}`
}

/** Scores go with their traces. */
export async function deleteScoresOf(tx: Sql, traces: readonly TraceKey[]): Promise<void> {
  await tx`
    delete from trace_scores c using ${recordsOf(tx, traces)}
    where c.team_id = r."teamId" and c.trace_id = r.id and c.trace_received_at = r."receivedAt"`
}

/** The times name the partitions that a statement has to open, and the part of the key that it has to read. */
function bounds(traces: readonly TraceKey[]) {
  const times = traces.map(trace => trace.receivedAt.getTime()).sort((a, b) => a - b)
  return {
    ids: traces.map(trace => trace.id),
    first: new Date(times[0] ?? 0),
    last: new Date(times.at(-1) ?? 0),
  }
}

/** Drops a week with all that is in it. */
export async function dropTraceWeek(tx: Sql, week: string): Promise<void> {
  await tx`drop table if exists ${tx(`trace_signatures_${week}`)}`
  await tx`drop table if exists ${tx(`spans_${week}`)}`
  await tx`drop table if exists ${tx(`traces_${week}`)}`
}
