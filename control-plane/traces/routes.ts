import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../shared/contract/common.js'
import { traceOwner } from '../../shared/contract/internal.js'
import { type Facet, listTraces, readFacets, readTrace } from '../../shared/contract/traces.js'
import { notFound } from '../../shared/errors/app-error.js'
import { withOwnPlans } from '../db/own-plans.js'
import { inSnapshot, type Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { feedbackOf } from '../feedback/feedback.js'
import { route } from '../http/route.js'
import { createDayMemo } from './day-counts.js'
import { listFacets } from './facet-queries.js'
import { hourParts } from './hour-parts.js'
import { pageOfTraces } from './page-of-traces.js'
import { jsonObject, spanOf, traceRowOf } from './present.js'
import { findTrace, findTraceOwner, listSpans } from './queries.js'
import type { Dimension } from './trace-facets.js'
import { windowBounds } from './window.js'

export function registerTraces(app: FastifyInstance, deps: Deps): void {
  const memo = createDayMemo()

  route(app, deps, listTraces, async ({ query, principal }) => {
    const { page, limit } = query
    const place = { limit, offset: (page - 1) * limit }
    const { rows, total } = await pageOfTraces(deps, memo, principal.teamId, query, place)
    return { data: rows.map(traceRowOf), total, page, limit }
  })

  route(app, deps, readFacets, async ({ query, principal }) => {
    const bounds = windowBounds(query, deps.now())
    const parts = hourParts(bounds.fromMs, bounds.toMs)
    const counts = await withOwnPlans(deps.sql, tx =>
      listFacets(tx, principal.teamId, Object.values(facetNames), parts, MAX_FACETS),
    )
    const valuesOf = (dimension: Dimension): Facet =>
      counts.filter(row => row.dimension === dimension).map(({ value, count }) => ({ value, count }))
    return {
      models: valuesOf(facetNames.models),
      providers: valuesOf(facetNames.providers),
      tags: valuesOf(facetNames.tags),
      metadataKeys: valuesOf(facetNames.metadataKeys),
      errorTypes: valuesOf(facetNames.errorTypes),
      errorCodes: valuesOf(facetNames.errorCodes),
    }
  })

  route(app, deps, readTrace, async ({ params, principal }) => {
    const { id } = params
    const found = isUuid(id) ? await inSnapshot(deps.sql, tx => readWhole(tx, principal.teamId, id)) : null
    if (found === null) throw notFound('Trace')
    const { trace, spans, feedback } = found
    return {
      trace: { ...traceRowOf(trace), metadata: jsonObject(trace.metadata) },
      spans: spans.map(spanOf),
      feedback,
    }
  })

  route(app, deps, traceOwner, async ({ body }) => ({ owner: await ownership(deps, body) }))
}

/** One snapshot: a span that arrives between the two reads would make `spanCount` a lie. */
async function readWhole(tx: Sql, teamId: string, traceId: string) {
  const trace = await findTrace(tx, teamId, traceId)
  if (trace === null) return null
  const [spans, feedback] = await Promise.all([
    listSpans(tx, teamId, trace),
    feedbackOf(tx, teamId, trace.id),
  ])
  return { trace, spans, feedback }
}

const MAX_FACETS = 100

const facetNames = {
  models: 'model',
  providers: 'provider',
  tags: 'tag',
  metadataKeys: 'metadata_key',
  errorTypes: 'error_type',
  errorCodes: 'error_code',
} as const satisfies Record<string, Dimension>

type Ownership = 'own' | 'foreign' | 'unknown'

/** What is no UUID nobody can hold. */
async function ownership(deps: Deps, asked: { teamId: string; traceId: string }): Promise<Ownership> {
  const holder = isUuid(asked.traceId) ? await findTraceOwner(deps.sql, asked.traceId) : null
  if (holder === null) return 'unknown'
  return holder === asked.teamId ? 'own' : 'foreign'
}
