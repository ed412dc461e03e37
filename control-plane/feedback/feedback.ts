import { randomUUID } from 'node:crypto'
import { isUuid } from '../../shared/contract/common.js'
import type { FeedbackRow } from '../../shared/contract/feedback.js'
import { AppError, forbidden, notFound, validation } from '../../shared/errors/app-error.js'
import type { Principal } from '../access/principal.js'
import { inTransaction, type Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import {
  hasSpan,
  hasTrace,
  insertFeedback,
  listFeedbackOfTrace,
  lockFeedback,
  lockTrace,
  type StoredFeedback,
  updateFeedbackRow,
} from './queries.js'

/** Nobody reads more on one trace; a script that rates in a loop must not make its trace unreadable. */
const MAX_OF_TRACE = 1_000

type Given<T> = T | null | undefined

export interface FeedbackContent {
  rating?: Given<number>
  label?: Given<string>
  comment?: Given<string>
}

export interface NewFeedback extends FeedbackContent {
  spanId?: Given<string>
  source: FeedbackRow['source']
}

type Author = Pick<Principal, 'teamId' | 'userId'>

/**
 * Puts feedback on a trace or a span of it (spec 2, feedback endpoints).
 *
 * @throws AppError VALIDATION_ERROR with nothing in it, NOT_FOUND `Trace not found.`, INVALID_SPAN for a reference that
 *   no span of the trace has.
 */
export async function postFeedback(
  deps: Pick<Deps, 'sql' | 'now'>,
  author: Author,
  id: string,
  given: NewFeedback,
): Promise<FeedbackRow> {
  const content = merged({ rating: null, label: null, comment: null }, given)
  if (!isUuid(id)) throw notFound('Trace')
  const at = new Date(deps.now())
  const row: StoredFeedback = {
    ...content,
    id: randomUUID(),
    traceId: id.toLowerCase(),
    spanId: given.spanId ?? null,
    source: given.source,
    createdBy: author.userId,
    createdAt: at,
    updatedAt: at,
  }
  await inTransaction(deps.sql, async tx => {
    const { teamId } = author
    const traceReceivedAt = await lockTrace(tx, teamId, row.traceId)
    if (traceReceivedAt === null) throw notFound('Trace')
    const trace = { teamId, traceId: row.traceId, traceReceivedAt }
    if (row.spanId !== null && !(await hasSpan(tx, trace, row.spanId))) {
      throw new AppError('INVALID_SPAN', 'spanId does not belong to this trace.')
    }
    await insertFeedback(tx, trace, row)
  })
  return shown(row)
}

/**
 * Edits feedback: what is left out stays, null clears; `updatedAt` always moves on (spec 2, PATCH rules).
 *
 * @throws AppError NOT_FOUND `Feedback not found.`, also for a foreign trace; FORBIDDEN for all but the author, and for
 *   everybody where a team-scoped key posted it; VALIDATION_ERROR when nothing would be left of it.
 */
export async function editFeedback(
  deps: Pick<Deps, 'sql' | 'now'>,
  editor: Author,
  place: { id: string; feedbackId: string },
  given: FeedbackContent,
): Promise<FeedbackRow> {
  const { id, feedbackId } = place
  if (!isUuid(id) || !isUuid(feedbackId)) throw notFound('Feedback')
  return inTransaction(deps.sql, async tx => {
    const stored = await lockFeedback(tx, editor.teamId, id, feedbackId)
    if (stored === null) throw notFound('Feedback')
    if (stored.createdBy === null || stored.createdBy !== editor.userId) {
      throw forbidden('Only the original author can edit this feedback.')
    }
    // An edit within the millisecond of the last one, or after the clock was set back, is later all the same.
    const updatedAt = new Date(Math.max(deps.now(), stored.updatedAt.getTime() + 1))
    const edited = { ...stored, ...merged(stored, given), updatedAt }
    await updateFeedbackRow(tx, editor.teamId, edited)
    return shown(edited)
  })
}

/** Feedback on a trace and its spans, newest first, at most 1,000. */
export async function feedbackOf(sql: Sql, teamId: string, traceId: string): Promise<FeedbackRow[]> {
  const rows = await listFeedbackOfTrace(sql, teamId, traceId, MAX_OF_TRACE)
  return rows.map(shown)
}

/** The same for a caller who may have the id wrong. @throws AppError NOT_FOUND `Trace not found.` */
export async function feedbackOfKnown(sql: Sql, teamId: string, traceId: string): Promise<FeedbackRow[]> {
  if (!isUuid(traceId) || !(await hasTrace(sql, teamId, traceId))) throw notFound('Trace')
  return feedbackOf(sql, teamId, traceId)
}

export const shown = (row: StoredFeedback): FeedbackRow => ({
  ...row,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
})

type Content = Pick<StoredFeedback, 'rating' | 'label' | 'comment'>

/** What PostgreSQL would store of it: a comment that was cut inside an emoji must read back as it was answered. */
const wellFormed = (text: string) => text.replace(/\p{Surrogate}/gu, '\ufffd')

/** Blank text says nothing and is kept as none. @throws AppError VALIDATION_ERROR when nothing is left. */
function merged(stored: Content, given: FeedbackContent): Content {
  const text = (value: Given<string>, held: string | null) =>
    value === undefined ? held : value === null || value.trim() === '' ? null : wellFormed(value)
  const content = {
    rating: given.rating === undefined ? stored.rating : given.rating,
    label: text(given.label, stored.label),
    comment: text(given.comment, stored.comment),
  }
  if (Object.values(content).every(value => value === null)) {
    throw validation('Provide at least one of rating, label, or comment.')
  }
  return content
}
