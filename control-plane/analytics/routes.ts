import type { FastifyInstance } from 'fastify'
import { readAnalytics } from '../../shared/contract/analytics.js'
import { withOwnPlans } from '../db/own-plans.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { hourParts } from '../traces/hour-parts.js'
import { windowBounds } from '../traces/window.js'
import { bucketsOf, totalsOf } from './metrics.js'
import { type AnalyticsQuestion, sumSpans } from './queries.js'

export function registerAnalytics(app: FastifyInstance, deps: Deps): void {
  route(app, deps, readAnalytics, async ({ query, principal }) => {
    const { fromMs, toMs } = windowBounds({ from: query.from, to: query.to ?? deps.now() }, deps.now())
    const model = query.model?.trim() ?? ''
    const question = {
      teamId: principal.teamId,
      groupBy: query.group_by,
      kind: query.kind ?? null,
      model: model === '' ? null : model,
    }
    const parts = hourParts(fromMs, toMs)
    const sums = (asked: AnalyticsQuestion) => withOwnPlans(deps.sql, tx => sumSpans(tx, asked, parts))
    const [groups, all] = await Promise.all([
      sums(question),
      hasAll(question) ? null : sums({ ...question, groupBy: 'day' }),
    ])
    return {
      from: new Date(fromMs).toISOString(),
      to: new Date(toMs).toISOString(),
      groupBy: query.group_by,
      totals: totalsOf(all ?? groups),
      buckets: bucketsOf(groups, query.group_by),
    }
  })
}

/** Whether the groups hold every span; those of sessions lack the spans in none. */
const hasAll = ({ groupBy }: AnalyticsQuestion) => groupBy !== 'session'
