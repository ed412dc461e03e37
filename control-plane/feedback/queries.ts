import type { FeedbackFilters, FeedbackRow } from '../../shared/contract/feedback.js'
import type { Sql } from '../db/sql.js'
import { insertChanges } from '../traces/change-queries.js'
import { countByDay } from '../traces/count-queries.js'
import type { DayCount } from '../traces/day-counts.js'
import { receivedWithin } from '../traces/filter-queries.js'
import type { Range } from '../traces/hour-parts.js'
import type { Page } from '../traces/list-queries.js'
import { recordsOf, type TraceKey } from '../traces/partition-queries.js'
import type { Fragment } from '../traces/queries.js'
import { insertFeedbackChanges } from './sum-queries.js'

export interface StoredFeedback {
  id: string
  traceId: string
  spanId: string | null
  rating: number | null
  label: string | null
  comment: string | null
  source: FeedbackRow['source']
  createdBy: string | null
  createdAt: Date
  updatedAt: Date
}

const columns = (sql: Sql): Fragment =>
  sql`f.id, f.trace_id, f.span_id, f.rating, f.label, f.comment, f.source, f.created_by, f.created_at, f.updated_at`

/** What the sums know feedback by. */
const summedColumns = (sql: Sql): Fragment => sql`team_id, trace_received_at, trace_id, created_at, rating`

/**
 * When the trace was received; it stays until the transaction ends, and so do its spans. Null: no such trace, or
 * another team's. Whoever writes feedback locks this first, and the feedback itself after it.
 */
export async function lockTrace(tx: Sql, teamId: string, traceId: string): Promise<Date | null> {
  const [row] = await tx<{ receivedAt: Date }[]>`
    select received_at from trace_owners where id = ${traceId} and team_id = ${teamId} for key share`
  return row?.receivedAt ?? null
}

/** The same without the lock. */
export async function hasTrace(sql: Sql, teamId: string, traceId: string): Promise<boolean> {
  const rows = await sql`select from trace_owners where id = ${traceId} and team_id = ${teamId}`
  return rows.length === 1
}

export interface TraceKeyOf {
  teamId: string
  traceId: string
  traceReceivedAt: Date
}

/** @param spanId the caller's own reference. */
export async function hasSpan(sql: Sql, trace: TraceKeyOf, spanId: string): Promise<boolean> {
  const rows = await sql`
    select from spans where team_id = ${trace.teamId} and trace_received_at = ${trace.traceReceivedAt}
      and trace_id = ${trace.traceId} and span_id = ${spanId}`
  return rows.length === 1
}

export async function insertFeedback(tx: Sql, trace: TraceKeyOf, row: StoredFeedback): Promise<void> {
  await tx`
    with written as (
      insert into feedback ${tx({ ...row, ...trace })} returning ${summedColumns(tx)}
    ), changed as (${insertChanges(tx, tx`select team_id, trace_received_at from written`)})
    ${insertFeedbackChanges(tx, tx`select *, 1 as sign from written`)}`
}

/** Stays as it is until the transaction ends, and so does its trace. Null: no such feedback of that trace and team. */
export async function lockFeedback(
  tx: Sql,
  teamId: string,
  traceId: string,
  id: string,
): Promise<StoredFeedback | null> {
  if ((await lockTrace(tx, teamId, traceId)) === null) return null
  const [row] = await tx<StoredFeedback[]>`
    select ${columns(tx)} from feedback f
    where team_id = ${teamId} and id = ${id} and trace_id = ${traceId} for update`
  return row ?? null
}

/** The caller holds the trace and the row. */
export async function updateFeedbackRow(tx: Sql, teamId: string, row: StoredFeedback): Promise<void> {
  const isThatRow = tx`team_id = ${teamId} and id = ${row.id}`
  await tx`
    with held as (
      select ${summedColumns(tx)} from feedback where ${isThatRow}
    ), written as (
      update feedback set rating = ${row.rating}, label = ${row.label}, comment = ${row.comment},
        updated_at = ${row.updatedAt}
      where ${isThatRow} returning ${summedColumns(tx)}
    ), changed as (${insertChanges(tx, tx`select team_id, trace_received_at from written`)})
    ${insertFeedbackChanges(tx, tx`select *, -1 as sign from held union all select *, 1 from written`)}`
}

/** Of one trace, its spans included, newest first. */
export async function listFeedbackOfTrace(
  sql: Sql,
  teamId: string,
  traceId: string,
  limit: number,
): Promise<StoredFeedback[]> {
  return sql<StoredFeedback[]>`
    select ${columns(sql)} from feedback f where team_id = ${teamId} and trace_id = ${traceId}
    order by created_at desc, id desc limit ${limit}`
}

/** The feed's filters on the feedback itself, as conditions on a row `f`; both ends of the window are inclusive. */
export function feedbackConditions(
  sql: Sql,
  filters: FeedbackFilters & { from?: number | undefined; to?: number | undefined },
): Fragment[] {
  const conditions: Fragment[] = []
  if (filters.from !== undefined) conditions.push(sql`f.created_at >= ${new Date(filters.from)}`)
  if (filters.to !== undefined) conditions.push(sql`f.created_at <= ${new Date(filters.to)}`)
  if (filters.rating === 'up') conditions.push(sql`f.rating > 0`)
  if (filters.rating === 'down') conditions.push(sql`f.rating < 0`)
  if (filters.rating === 'none') conditions.push(sql`f.rating is null`)
  if (filters.source !== undefined) conditions.push(sql`f.source = ${filters.source}`)
  if (filters.label !== undefined) conditions.push(sql`f.label = ${filters.label}`)
  if (filters.has_comment !== undefined) {
    conditions.push(filters.has_comment ? sql`f.comment is not null` : sql`f.comment is null`)
  }
  return conditions
}

/** What the feed is asked for. */
export interface FeedQuestion {
  teamId: string
  /** On a row `f` of `feedback`. */
  ofFeedback: readonly Fragment[]
  /** On its trace `t`; with none no trace is read at all. */
  ofTrace: readonly Fragment[]
}

function matchingFeedback(sql: Sql, { teamId, ofFeedback, ofTrace }: FeedQuestion): Fragment {
  const and = (conditions: readonly Fragment[]) =>
    conditions.reduce((all, condition) => sql`${all} and ${condition}`, sql``)
  // A trace's whole key: one look-up in the one partition that has it. `offset 0` keeps it a look-up: the planner does
  // not know that all other partitions are left out, and would rather read every trace of the team.
  const trace =
    ofTrace.length === 0
      ? sql``
      : sql`and exists (select from traces t where t.team_id = f.team_id and t.received_at = f.trace_received_at
          and t.id = f.trace_id ${and(ofTrace)} offset 0)`
  return sql`feedback f where f.team_id = ${teamId} ${and(ofFeedback)} ${trace}`
}

/** One page of it, newest first. @param ranges of the receipt of the traces that it is on. */
export async function listFeedbackRows(
  sql: Sql,
  question: FeedQuestion,
  ranges: readonly Range[],
  page: Page,
): Promise<StoredFeedback[]> {
  return sql<StoredFeedback[]>`
    select ${columns(sql)} from ${matchingFeedback(sql, question)}
      and ${receivedWithin(sql, sql`f.trace_received_at`, ranges)}
    order by f.created_at desc, f.id desc limit ${page.limit} offset ${page.offset}`
}

/** How much there is, by the day that the traces were received on. */
export async function countFeedbackByDay(
  sql: Sql,
  question: FeedQuestion,
  ranges: readonly Range[],
): Promise<DayCount[]> {
  const received = sql`
    select f.trace_received_at as received_at from ${matchingFeedback(sql, question)}
      and ${receivedWithin(sql, sql`f.trace_received_at`, ranges)}`
  return sql<DayCount[]>`${countByDay(sql, received)}`
}

/**
 * Retention: feedback goes with its traces. Their ids are freed before, so that none is added meanwhile and no span
 * comes; their spans go after it, so that the sums lose what it counted for.
 */
export async function deleteFeedbackOf(sql: Sql, traces: readonly TraceKey[]): Promise<void> {
  await sql`
    with deleted as (
      delete from feedback f using ${recordsOf(sql, traces)}
      where f.team_id = r."teamId" and f.trace_id = r.id and f.trace_received_at = r."receivedAt"
      returning ${summedColumns(sql)}
    ), changed as (${insertChanges(sql, sql`select team_id, trace_received_at from deleted`)})
    ${insertFeedbackChanges(sql, sql`select *, -1 as sign from deleted`)}`
}
