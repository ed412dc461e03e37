import type { FastifyInstance } from 'fastify'
import { readAnalytics } from '../../shared/contract/analytics.js'
import { withOwnPlans } from '../db/own-plans.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { windowBounds } from '../traces/filter-queries.js'
import { hourParts } from '../traces/hour-parts.js'
import { bucketsOf, totalsOf } from './metrics.js'
import { sumSpans } from './queries.js'

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
    const groups = await withOwnPlans(deps.sql, tx => sumSpans(tx, question, hourParts(fromMs, toMs)))
    return {
      from: new Date(fromMs).toISOString(),
      to: new Date(toMs).toISOString(),
      groupBy: query.group_by,
      totals: totalsOf(groups),
      buckets: bucketsOf(groups, query.group_by),
    }
  })
}
