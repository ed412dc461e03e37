import type { Sql } from '../db/sql.js'

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

/** Frees the ids: a late span of such a trace starts a new one. */
export async function deleteTraceOwners(tx: Sql, ids: readonly string[]): Promise<void> {
  await tx`
    delete from trace_owners where id in (
      select id from trace_owners where id = any(${ids as string[]}::uuid[]) order by id for update)`
}

/** Deletes up to `limit` spans of some of a team's traces. @returns how many there were. */
export async function deleteSpansOf(
  tx: Sql,
  teamId: string,
  traces: readonly TraceKey[],
  limit: number,
): Promise<number> {
  const { ids, times, first, last } = bounds(traces)
  const deleted = await tx`
    delete from spans s using (
      select o.trace_received_at, o.trace_id, o.span_id
      from unnest(${ids}::uuid[], ${times}::text[]::timestamptz[]) as gone(id, received_at)
      join spans o on o.team_id = ${teamId} and o.trace_received_at = gone.received_at and o.trace_id = gone.id
      where o.trace_received_at between ${first} and ${last}
      limit ${limit}) d
    where s.team_id = ${teamId} and s.trace_received_at between ${first} and ${last}
      and s.trace_received_at = d.trace_received_at and s.trace_id = d.trace_id and s.span_id = d.span_id`
  return deleted.count
}

export async function deleteTraces(tx: Sql, teamId: string, traces: readonly TraceKey[]): Promise<void> {
  const { ids, times, first, last } = bounds(traces)
  await tx`
    delete from traces t using unnest(${ids}::uuid[], ${times}::text[]::timestamptz[]) as gone(id, received_at)
    where t.team_id = ${teamId} and t.received_at between ${first} and ${last}
      and t.received_at = gone.received_at and t.id = gone.id`
}

/** First and last name the partitions that a statement has to open; the pairs find the rows by key. */
function bounds(traces: readonly TraceKey[]) {
  const times = traces.map(trace => trace.receivedAt.toISOString())
  const sorted = times.toSorted()
  return {
    ids: traces.map(trace => trace.id),
    times,
    first: new Date(sorted[0] ?? 0),
    last: new Date(sorted.at(-1) ?? 0),
  }
}

/** Drops a week with all that is in it. */
export async function dropTraceWeek(tx: Sql, week: string): Promise<void> {
  await tx`drop table if exists ${tx(`spans_${week}`)}`
  await tx`drop table if exists ${tx(`traces_${week}`)}`
}
