import type { FastifyInstance } from 'fastify'
import { listSessions, readSession, type SessionSummary } from '../../shared/contract/sessions.js'
import { notFound } from '../../shared/errors/app-error.js'
import { usdFromNano } from '../../shared/money/nano.js'
import { withOwnPlans } from '../db/own-plans.js'
import { inSnapshot } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { traceRowOf } from '../traces/present.js'
import { windowBounds } from '../traces/window.js'
import {
  countSessions,
  findSession,
  listSessionRows,
  listTracesOfSession,
  type StoredSession,
} from './queries.js'

/** Spec 2, session detail. */
const MAX_TRACES = 100

export function registerSessions(app: FastifyInstance, deps: Deps): void {
  route(app, deps, listSessions, async ({ query, principal }) => {
    const { page, limit } = query
    const q = query.q?.trim() ?? ''
    const bounds = windowBounds(query, deps.now())
    const question = { teamId: principal.teamId, bounds, q: q === '' ? null : q }
    // Side by side: the page stops reading after its last row, the count cannot.
    const [rows, total] = await Promise.all([
      withOwnPlans(deps.sql, tx => listSessionRows(tx, question, { limit, offset: (page - 1) * limit })),
      withOwnPlans(deps.sql, tx => countSessions(tx, question)),
    ])
    return { data: rows.map(summaryOf), total, page, limit }
  })

  route(app, deps, readSession, async ({ params, principal }) => {
    const { teamId } = principal
    // Text that PostgreSQL cannot hold can only name what is not there.
    if (params.id.includes('\0')) throw notFound('Session')
    return inSnapshot(deps.sql, async tx => {
      const session = await findSession(tx, teamId, params.id)
      if (session === null) throw notFound('Session')
      const traces = await listTracesOfSession(tx, teamId, params.id, MAX_TRACES)
      return { session: summaryOf(session), traces: traces.map(traceRowOf) }
    })
  })
}

const summaryOf = (session: StoredSession): SessionSummary => ({
  sessionId: session.sessionId,
  traceCount: session.traceCount,
  totalCostUsd: usdFromNano(session.totalCostNano),
  totalTokens: session.totalTokens,
  firstAt: session.firstAt.toISOString(),
  lastAt: session.lastAt.toISOString(),
})
