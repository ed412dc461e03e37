import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { ingestTraces, MAX_SPANS, type TraceInput } from '../../shared/contract/trace-ingestion.js'
import { AppError, notFound, validation } from '../../shared/errors/app-error.js'
import { retried } from '../db/failures.js'
import { inTransaction, type Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { rawBody, route } from '../http/route.js'
import { foreignVersionIds } from '../prompts/resolve.js'
import { type Capture, captureOf } from './capture.js'
import { writeSpans } from './ingest.js'
import type { IngestGate } from './ingest-gate.js'
import { listStoredSpanIds } from './reported-queries.js'
import { reportedSpans } from './reported-span.js'
import type { SpanWrite } from './span-write.js'

/** POST /traces (spec 2): whole-batch checks first, then each trace in a transaction of its own, in order. */
export function registerPostTraces(app: FastifyInstance, deps: Deps, gate: IngestGate): void {
  route(app, deps, ingestTraces, ({ body: { traces }, principal, request }) =>
    gate.work(async () => {
      const accepted = checkSize(traces)
      for (const trace of traces) checkDistinct(trace)
      await checkPromptVersions(deps.sql, principal.teamId, traces)
      const capture = await captureOf(deps, principal.teamId)
      const bytes = rawBody(request).length
      const traceIds: string[] = []
      for (const trace of traces) traceIds.push(await storeTrace(deps, trace, capture, bytes))
      return { accepted, traceIds }
    }),
  )
}

/** Rule 4: over the whole request. */
function checkSize(traces: readonly TraceInput[]): number {
  const count = traces.reduce((total, trace) => total + trace.spans.length, 0)
  if (count <= MAX_SPANS) return count
  throw new AppError('PAYLOAD_TOO_LARGE', `Batch has ${count} spans; the per-request limit is ${MAX_SPANS}.`)
}

function checkDistinct({ spans }: TraceInput): void {
  const seen = new Set<string>()
  for (const { spanId } of spans) {
    if (seen.has(spanId)) throw validation(`Duplicate spanId "${spanId}" within a trace.`)
    seen.add(spanId)
  }
}

/** Rule 3: before anything is written. */
async function checkPromptVersions(sql: Sql, teamId: string, traces: readonly TraceInput[]): Promise<void> {
  const versionIds = traces.flatMap(trace => trace.spans.flatMap(span => span.promptVersionId ?? []))
  if (versionIds.length === 0) return
  if ((await foreignVersionIds(sql, teamId, versionIds)).length > 0) throw notFound('Prompt version')
}

/** Rules 1 and 2. @returns the trace's id. */
async function storeTrace(deps: Deps, trace: TraceInput, capture: Capture, bytes: number): Promise<string> {
  const traceId = trace.traceId ?? randomUUID()
  const spans = reportedSpans(trace, traceId, capture, bytes)
  await retried(() =>
    inTransaction(deps.sql, async tx => {
      const rules = { repeated: 'replace', foreign: 'refuse' } as const
      const { foreignTraceIds } = await writeSpans(tx, spans, deps.now(), rules)
      if (foreignTraceIds.size > 0) throw notFound('Trace')
      await checkParents(tx, spans)
    }),
  )
  return traceId
}

/**
 * A parent is a span of the same trace, in this input or stored (spec 2, span). After the write, whose lock on the trace
 * keeps the answer true; a refusal rolls it back.
 */
async function checkParents(tx: Sql, spans: readonly SpanWrite[]): Promise<void> {
  const own = new Set(spans.map(span => span.spanId))
  const elsewhere = spans.filter(({ parentSpanId }) => parentSpanId !== null && !own.has(parentSpanId))
  const [first] = elsewhere
  if (first !== undefined) {
    const wanted = elsewhere.map(span => span.parentSpanId!)
    const stored = new Set(await listStoredSpanIds(tx, first.teamId, first.trace.id, wanted))
    const orphan = elsewhere.find(span => !stored.has(span.parentSpanId!))
    if (orphan !== undefined) throw unknownParent(orphan)
  }
  const ownParent = spans.find(span => span.parentSpanId === span.spanId)
  if (ownParent !== undefined) throw unknownParent(ownParent)
}

const unknownParent = ({ spanId, parentSpanId }: SpanWrite) =>
  new AppError(
    'INVALID_SPAN_PARENT',
    spanId === parentSpanId
      ? `Span "${spanId}" cannot be its own parent.`
      : `parentSpanId "${parentSpanId}" of span "${spanId}" does not reference a known span in the trace.`,
  )
