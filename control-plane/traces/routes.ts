import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../shared/contract/common.js'
import { traceOwner } from '../../shared/contract/internal.js'
import {
  type Facet,
  listTraces,
  readFacets,
  readTrace,
  type TraceFilters,
} from '../../shared/contract/traces.js'
import { notFound } from '../../shared/errors/app-error.js'
import { withOwnPlans } from '../db/own-plans.js'
import { inSnapshot, type Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { feedbackOf } from '../feedback/feedback.js'
import { route } from '../http/route.js'
import { listFacets } from './facet-queries.js'
import { facetsOf, judgedTraces, metadataPairs, rowConditions } from './filter-queries.js'
import { hourParts } from './hour-parts.js'
import { countByFacets, countTraces, listTraceRows, listVersionIds } from './list-queries.js'
import { jsonObject, spanOf, traceRowOf } from './present.js'
import { findTrace, findTraceOwner, listSpans } from './queries.js'
import { textSearch } from './search-queries.js'
import { searchTraces } from './search-traces.js'
import type { Dimension } from './trace-facets.js'
import { windowBounds } from './window.js'

export function registerTraces(app: FastifyInstance, deps: Deps): void {
  route(app, deps, listTraces, async ({ query, principal }) => {
    const { page, limit } = query
    const { rows, total } = await pageOfTraces(deps, principal.teamId, query, { page, limit })
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

/** Two statements side by side: the page stops reading after its last row, the count cannot. */
async function pageOfTraces(
  { sql, now }: Pick<Deps, 'sql' | 'now'>,
  teamId: string,
  query: TraceFilters & Readonly<Record<string, unknown>>,
  { page, limit }: { page: number; limit: number },
) {
  const metadata = metadataPairs(query)
  const versionIds = query.prompt_id === undefined ? [] : await listVersionIds(sql, teamId, query.prompt_id)
  const bounds = windowBounds(query, now())
  const question = {
    teamId,
    bounds,
    conditions: rowConditions(sql, teamId, query, metadata, versionIds),
    search: textSearch(sql, query),
    among: judgedTraces(sql, teamId, query)[0] ?? null,
  }
  const offset = (page - 1) * limit
  if (question.search !== null) {
    return withOwnPlans(sql, tx => searchTraces(tx, question, { limit, offset }, now()))
  }
  const facets = facetsOf(query, metadata)
  const parts = hourParts(bounds.fromMs, bounds.toMs)
  const [rows, total] = await Promise.all([
    withOwnPlans(sql, tx => listTraceRows(tx, question, { limit, offset })),
    withOwnPlans(sql, tx =>
      facets === null ? countTraces(tx, question) : countByFacets(tx, question, facets, parts),
    ),
  ])
  return { rows, total }
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
