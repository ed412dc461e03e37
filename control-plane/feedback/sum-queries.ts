import type { Sql } from '../db/sql.js'
import type { Fragment } from '../traces/queries.js'
import type { KeyShift } from './key-shifts.js'

/**
 * The sums behind the feedback summary: of every UTC day, by each distinct model and prompt version of the traces' llm
 * spans (spec 2, summary attribution). Kept in the transaction of whatever changes them: feedback that is posted,
 * edited or deleted, and spans that bring their trace a key or take one from it. Whoever does either holds the trace's
 * row of `trace_owners`, feedback beside other feedback, spans alone; so each knows what the other has done.
 */

/** Of rows of `feedback`. */
export const sumsOfFeedback = (sql: Sql): Fragment => sql`
  count(*) as count, count(rating) as rated, coalesce(sum(rating), 0) as rating_sum,
  count(*) filter (where rating < 0) as down`

/** What a trace's feedback counts for, once each: dimension and key. @param trace a row with the trace's whole key. */
export const keysOfTrace = (sql: Sql, trace: Fragment): Fragment => sql`
  select distinct d.dimension, d.key
  from spans s
  cross join lateral (values ('model', s.model), ('prompt_version', s.prompt_version_id::text)) as d(dimension, key)
  where s.team_id = ${trace}.team_id and s.trace_received_at = ${trace}.trace_received_at
    and s.trace_id = ${trace}.trace_id and s.kind = 'llm' and d.key is not null`

/**
 * Adds feedback to the sums and takes it away, in the statement that writes it.
 *
 * @param changes rows (team_id, trace_received_at, trace_id, created_at, rating, sign): feedback that came, sign 1, or
 *   went, -1. What cancels out costs nothing: only a change reads the trace's spans.
 */
export const insertFeedbackChanges = (tx: Sql, changes: Fragment): Fragment => tx`
  insert into feedback_sum_deltas (team_id, dimension, day, key, count, rated, rating_sum, down)
  select c.team_id, k.dimension, c.day, k.key, sum(c.count), sum(c.rated), sum(c.rating_sum), sum(c.down)
  from (
    select team_id, trace_received_at, trace_id, (created_at at time zone 'UTC')::date as day, sum(sign) as count,
      coalesce(sum(sign) filter (where rating is not null), 0) as rated, coalesce(sum(sign * rating), 0) as rating_sum,
      coalesce(sum(sign) filter (where rating < 0), 0) as down
    from (${changes}) change group by 1, 2, 3, 4
  ) c
  cross join lateral (${keysOfTrace(tx, tx`c`)}) k
  where (c.count, c.rated, c.rating_sum, c.down) <> (0, 0, 0, 0)
  group by 1, 2, 3, 4`

/**
 * Counts the feedback on traces for the keys that a write brought them, and no longer for those that it took; after the
 * spans are written. Of a trace without feedback nothing else is read. Otherwise one span more than came with the key
 * says that the trace had it before, and is found at once where the key is common.
 */
export const insertKeyShifts = (tx: Sql, shifts: readonly KeyShift[]): Fragment => tx`
  insert into feedback_sum_deltas (team_id, dimension, day, key, count, rated, rating_sum, down)
  select j.team_id, j.dimension, j.day, j.key, sum(k.sign * j.count), sum(k.sign * j.rated),
    sum(k.sign * j.rating_sum), sum(k.sign * j.down)
  from (
    select r."teamId" as team_id, to_timestamp(r."receivedAtMs" / 1000) as trace_received_at,
      r."traceId" as trace_id, r.dimension, r.key, r.spans, f.*
    from json_to_recordset(${JSON.stringify(shifts)}::text::json) as r(
      "teamId" uuid, "receivedAtMs" double precision, "traceId" uuid, dimension text, key text, spans integer)
    cross join lateral (
      select (created_at at time zone 'UTC')::date as day, ${sumsOfFeedback(tx)}
      from feedback
      where team_id = r."teamId" and trace_id = r."traceId"
        and trace_received_at = to_timestamp(r."receivedAtMs" / 1000)
      group by 1
    ) f
    offset 0
  ) j
  cross join lateral (
    select (count(*) > 0)::integer - (count(*) > j.spans)::integer as sign
    from (
      select from spans s
      where s.team_id = j.team_id and s.trace_received_at = j.trace_received_at and s.trace_id = j.trace_id
        and s.kind = 'llm' and case j.dimension when 'model' then s.model else s.prompt_version_id::text end = j.key
      limit greatest(j.spans, 0) + 1
    ) having_key
  ) k
  where k.sign <> 0
  group by 1, 2, 3, 4`

/**
 * Moves up to `limit` deltas into the sums. Two at once take different deltas, and the sums in one order.
 *
 * @returns how many there were.
 */
export async function foldFeedbackDeltas(tx: Sql, limit: number): Promise<number> {
  const [row] = await tx<{ taken: number; empty: string | null }[]>`
    with taken as (
      delete from feedback_sum_deltas
      where ctid = any(array(select ctid from feedback_sum_deltas limit ${limit} for update skip locked))
      returning *
    ), folded as (
      insert into feedback_sums as f (team_id, dimension, day, key, count, rated, rating_sum, down)
      select team_id, dimension, day, key, sum(count), sum(rated), sum(rating_sum), sum(down)
      from taken group by 1, 2, 3, 4 order by 1, 2, 3, 4
      on conflict (team_id, dimension, day, key) do update set
        count = f.count + excluded.count, rated = f.rated + excluded.rated,
        rating_sum = f.rating_sum + excluded.rating_sum, down = f.down + excluded.down
      returning *
    )
    select (select count(*)::int from taken) as taken,
      (select json_agg(e)::text from folded e where ${isEmpty(tx, tx`e`)}) as empty`
  if (row?.empty) await deleteEmptySums(tx, row.empty)
  return row?.taken ?? 0
}

/** What retention has taken whole. @param keys JSON; the caller holds the rows, so that they stay empty. */
async function deleteEmptySums(tx: Sql, keys: string): Promise<void> {
  await tx`
    delete from feedback_sums f
    using json_to_recordset(${keys}::text::json) as r(team_id uuid, dimension text, day date, key text)
    where f.team_id = r.team_id and f.dimension = r.dimension and f.day = r.day and f.key = r.key
      and ${isEmpty(tx, tx`f`)}`
}

const isEmpty = (sql: Sql, row: Fragment): Fragment =>
  sql`(${row}.count, ${row}.rated, ${row}.rating_sum, ${row}.down) = (0, 0, 0, 0)`
