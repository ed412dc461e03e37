import type { FastifyInstance } from 'fastify'
import {
  createFeedback,
  listFeedback,
  listTraceFeedback,
  summarizeFeedback,
  updateFeedback,
} from '../../shared/contract/feedback.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { createDayMemo } from '../traces/day-counts.js'
import { windowBounds } from '../traces/window.js'
import { pageOfFeedback } from './feed.js'
import { editFeedback, feedbackOfKnown, postFeedback, shown } from './feedback.js'
import { feedbackBuckets } from './summary.js'

/** Feedback on traces (spec 2, feedback endpoints). */
export function registerFeedback(app: FastifyInstance, deps: Deps): void {
  const memo = createDayMemo()

  route(app, deps, createFeedback, async ({ params, body, principal }) =>
    postFeedback(deps, principal, params.id, body),
  )

  route(app, deps, updateFeedback, async ({ params, body, principal }) =>
    editFeedback(deps, principal, params, body),
  )

  route(app, deps, listTraceFeedback, async ({ params, principal }) => ({
    data: await feedbackOfKnown(deps.sql, principal.teamId, params.id),
  }))

  route(app, deps, listFeedback, async ({ query, principal }) => {
    const { page, limit } = query
    const place = { limit, offset: (page - 1) * limit }
    const { rows, total } = await pageOfFeedback(deps.sql, memo, principal.teamId, query, place)
    return { data: rows.map(shown), total, page, limit }
  })

  route(app, deps, summarizeFeedback, async ({ query, principal }) => {
    const { fromMs, toMs } = windowBounds(query, deps.now())
    const window = { from: new Date(fromMs), to: new Date(toMs) }
    const buckets = await feedbackBuckets(deps.sql, principal.teamId, query.group_by, window)
    return { groupBy: query.group_by, buckets }
  })
}
