import type { FeedbackFilters } from '../../shared/contract/feedback.js'
import type { TraceFilters } from '../../shared/contract/traces.js'
import { withOwnPlansInSnapshot } from '../db/own-plans.js'
import type { Sql } from '../db/sql.js'
import { countDays, type DayMemo, fewRanges, rangesOf, sumOf } from '../traces/day-counts.js'
import { metadataPairs, questionName, traceConditions } from '../traces/filter-queries.js'
import type { Range } from '../traces/hour-parts.js'
import { listVersionIds, type Page } from '../traces/list-queries.js'
import { ALL_TIME } from '../traces/window.js'
import { countFeedbackByDay, feedbackConditions, listFeedbackRows, type StoredFeedback } from './queries.js'

type Query = FeedbackFilters & TraceFilters & Readonly<Record<string, unknown>>

/**
 * One page of a team's feedback, newest first, and how much there is in all (spec 2, feedback endpoints). Counted by the
 * day of the traces that it is on: then it changes with that day's version, whether a trace or feedback on it is written.
 *
 * @param memo of the process.
 */
export async function pageOfFeedback(
  sql: Sql,
  memo: DayMemo,
  teamId: string,
  query: Query,
  page: Page,
): Promise<{ rows: StoredFeedback[]; total: number }> {
  const metadata = metadataPairs(query)
  const versionIds = query.prompt_id === undefined ? [] : await listVersionIds(sql, teamId, query.prompt_id)
  const question = {
    teamId,
    ofFeedback: feedbackConditions(sql, query),
    ofTrace: traceConditions(sql, teamId, query, metadata, versionIds),
  }
  const { from, to, rating, source, label, has_comment } = query
  const feedback = { from, to, rating, source, label, has_comment }
  const name = questionName(teamId, query, { metadata, versionIds, feedback })
  return withOwnPlansInSnapshot(sql, async tx => {
    const count = (ranges: readonly Range[]) => countFeedbackByDay(tx, question, ranges)
    const counts = await countDays(tx, memo, { teamId, name, pieces: [ALL_TIME], count })
    const ranges = fewRanges(rangesOf(counts, ALL_TIME))
    const rows = ranges.length === 0 ? [] : await listFeedbackRows(tx, question, ranges, page)
    return { rows, total: sumOf(counts) }
  })
}
