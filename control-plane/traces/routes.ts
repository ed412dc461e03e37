import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../shared/contract/common.js'
import { traceOwner } from '../../shared/contract/internal.js'
import { listTraces, readTrace } from '../../shared/contract/traces.js'
import { notFound, validation } from '../../shared/errors/app-error.js'
import { inSnapshot, type Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { metadataPairs, receiptWindow, traceConditions } from './filter-queries.js'
import { jsonObject, spanOf, traceRowOf } from './present.js'
import { findTrace, findTraceOwner, listSpans, listTraceRows } from './queries.js'

export function registerTraces(app: FastifyInstance, deps: Deps): void {
  route(app, deps, listTraces, async ({ query, principal }) => {
    refuseUnbuiltFilters(query)
    const { page, limit } = query
    const conditions = [
      ...receiptWindow(deps.sql, query, deps.now()),
      ...traceConditions(deps.sql, query, metadataPairs(query)),
    ]
    const offset = (page - 1) * limit
    const { rows, total } = await listTraceRows(deps.sql, principal.teamId, conditions, { limit, offset })
    return { data: rows.map(traceRowOf), total, page, limit }
  })

  route(app, deps, readTrace, async ({ params, principal }) => {
    const { id } = params
    const found = isUuid(id) ? await inSnapshot(deps.sql, tx => readWhole(tx, principal.teamId, id)) : null
    if (found === null) throw notFound('Trace')
    const { trace, spans } = found
    return {
      trace: { ...traceRowOf(trace), metadata: jsonObject(trace.metadata) },
      spans: spans.map(spanOf),
      feedback: [],
    }
  })

  route(app, deps, traceOwner, async ({ body }) => ({ owner: await ownership(deps, body) }))
}

/** One snapshot: a span that arrives between the two reads would make `spanCount` a lie. */
async function readWhole(tx: Sql, teamId: string, traceId: string) {
  const trace = await findTrace(tx, teamId, traceId)
  return trace === null ? null : { trace, spans: await listSpans(tx, teamId, trace) }
}

type Ownership = 'own' | 'foreign' | 'unknown'

/** What is no UUID nobody can hold. */
async function ownership(deps: Deps, asked: { teamId: string; traceId: string }): Promise<Ownership> {
  const holder = isUuid(asked.traceId) ? await findTraceOwner(deps.sql, asked.traceId) : null
  if (holder === null) return 'unknown'
  return holder === asked.teamId ? 'own' : 'foreign'
}

/** Filters of spec 2 and 4 over what this service does not store yet: ignoring one would answer another question. */
const unbuilt = ['prompt_id', 'min_score', 'max_score', 'min_rating', 'max_rating']

function refuseUnbuiltFilters(query: Readonly<Record<string, unknown>>): void {
  const name = unbuilt.find(filter => query[filter] !== undefined)
  if (name !== undefined) throw validation(`Filter '${name}' is not available.`)
}
