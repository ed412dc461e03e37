import { inTransaction, type Sql } from '../db/sql.js'
import { deleteFeedbackOf } from '../feedback/queries.js'
import {
  listSessionsOfWeek,
  lockSessions,
  recomputeSessions,
  type SessionKey,
} from '../sessions/rollup-queries.js'
import { tellChanges } from './change-queries.js'
import {
  deleteScoresOf,
  deleteSpansOf,
  deleteTraceOwners,
  deleteTraces,
  dropTraceWeek,
  limitLockWaits,
  listExpiredTraces,
  listTeamsKeepingLess,
  listTracesOfWeek,
  listTraceWeeks,
  longestRetentionDays,
  type TraceKey,
} from './partition-queries.js'
import { patiently, WEEK_MS, weekEndMs } from './partitions.js'
import { deleteRollupsOfWeek } from './rollup-queries.js'
import { updateSums } from './sums.js'

const DAY_MS = 86_400_000
/** Rows per statement: some ten milliseconds, far from the statement deadline on a slow machine too. */
const TRACES_BATCH = 500
const ROWS_BATCH = 5_000

/**
 * Deletes traces that were received longer ago than their team keeps them (`retentionDays`, spec 4, section 4). Weeks
 * that no team keeps are dropped whole, which costs the same however much is in them; so the teams with the longest
 * retention keep a trace up to a week longer. What other teams no longer keep is deleted row by row, in small
 * statements. Ids are freed first: a span that arrives later starts its trace anew. Safe to kill and to repeat.
 *
 * @returns what was done, for the log.
 */
export async function deleteExpiredTraces(
  sql: Sql,
  nowMs: number,
): Promise<{ droppedWeeks: string[]; deletedTraces: number }> {
  const longest = await longestRetentionDays(sql)
  if (longest === null) return { droppedWeeks: [], deletedTraces: 0 }
  const keptFromMs = nowMs - longest * DAY_MS
  const droppedWeeks = (await listTraceWeeks(sql)).filter(week => weekEndMs(week) <= keptFromMs)
  for (const week of droppedWeeks) await dropWeek(sql, week)
  let deletedTraces = 0
  for (const team of await listTeamsKeepingLess(sql, longest)) {
    deletedTraces += await deleteBefore(sql, team.id, new Date(nowMs - team.retentionDays * DAY_MS))
  }
  return { droppedWeeks, deletedTraces }
}

async function dropWeek(sql: Sql, week: string): Promise<void> {
  let last: TraceKey | null = null
  do {
    const traces: TraceKey[] = await listTracesOfWeek(sql, week, last, ROWS_BATCH)
    if (traces.length > 0) await freeTraces(sql, traces)
    last = traces.at(-1) ?? null
  } while (last !== null)
  await forgetSessions(sql, week)
  await deleteRollupsOfWeek(sql, week)
  await patiently(() =>
    inTransaction(sql, async tx => {
      await limitLockWaits(tx)
      await dropTraceWeek(tx, week)
    }),
  )
}

async function deleteBefore(sql: Sql, teamId: string, before: Date): Promise<number> {
  for (let deleted = 0; ; ) {
    const traces = await listExpiredTraces(sql, teamId, before, TRACES_BATCH)
    if (traces.length === 0) return deleted
    await freeTraces(sql, traces)
    while ((await deleteSpans(sql, teamId, traces)) >= ROWS_BATCH);
    await inTransaction(sql, async tx => {
      const before = await deleteTraces(tx, teamId, traces)
      await updateSums(tx, { spans: [], before, after: [] })
    })
    deleted += traces.length
  }
}

async function deleteSpans(sql: Sql, teamId: string, traces: readonly TraceKey[]): Promise<number> {
  return inTransaction(sql, async tx => {
    const spans = await deleteSpansOf(tx, teamId, traces, ROWS_BATCH)
    await tellChanges(tx, traces)
    await updateSums(tx, { spans, before: [], after: [] })
    return spans.length
  })
}

/** Sums up the sessions of a week's traces without them. Nobody writes to those any more: their ids are free. */
async function forgetSessions(sql: Sql, week: string): Promise<void> {
  const leftOut = { fromMs: weekEndMs(week) - WEEK_MS, toMs: weekEndMs(week) }
  let last: SessionKey | null = null
  do {
    const sessions: SessionKey[] = await listSessionsOfWeek(sql, week, last, TRACES_BATCH)
    if (sessions.length > 0) {
      await inTransaction(sql, async tx => {
        await lockSessions(tx, sessions)
        await recomputeSessions(tx, sessions, leftOut)
      })
    }
    last = sessions.at(-1) ?? null
  } while (last !== null)
}

/** Once an id is free nobody can add feedback to its trace; what there is goes then, and so do scores. */
async function freeTraces(sql: Sql, traces: readonly TraceKey[]): Promise<void> {
  await deleteTraceOwners(sql, traces)
  await deleteFeedbackOf(sql, traces)
  await deleteScoresOf(sql, traces)
}
