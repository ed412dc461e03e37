import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { ingestTraces, MAX_SPANS, type TraceInput } from '../../shared/contract/trace-ingestion.js'
import { AppError, notFound, validation } from '../../shared/errors/app-error.js'
import { isAboutData, isTooMuch, retried } from '../db/failures.js'
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

/** What is tried in one transaction: a statement of it is well within its deadline, also on a slow disk. */
const TOGETHER_BYTES = 2 * 1024 * 1024

/** POST /traces (spec 2): whole-batch checks first, then the traces, in order. */
export function registerPostTraces(app: FastifyInstance, deps: Deps, gate: IngestGate): void {
  route(app, deps, ingestTraces, ({ body: { traces }, principal, request }) =>
    gate.work(async () => {
      const accepted = checkSize(traces)
      for (const trace of traces) checkDistinct(trace)
      await checkPromptVersions(deps.sql, principal.teamId, traces)
      const capture = await captureOf(deps, principal.teamId)
      const named = traces.map(trace => ({ ...trace, traceId: trace.traceId ?? randomUUID() }))
      await storeTraces(deps, named, capture, rawBody(request).length)
      return { accepted, traceIds: named.map(({ traceId }) => traceId) }
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

type NamedTrace = TraceInput & { traceId: string }

/**
 * Rules 1 and 2: each trace as a whole or not at all, up to the first that fails, which leaves those before it stored.
 * Nearly always none does: so they are tried in one transaction first, at a third of the cost of one each, and where
 * that is rolled back, in one each, which tells whose fault it was.
 */
async function storeTraces(
  deps: Deps,
  traces: readonly NamedTrace[],
  capture: Capture,
  bytes: number,
): Promise<void> {
  const writeOf = (trace: NamedTrace) => reportedSpans(trace, trace.traceId, capture, bytes)
  // Of two inputs for one trace the later one may have what the earlier one lacks, a parent say.
  const areDistinct = new Set(traces.map(({ traceId }) => traceId)).size === traces.length
  const isTried = traces.length > 1 && areDistinct && bytes <= TOGETHER_BYTES
  if (isTried && (await areStored(deps, traces.map(writeOf)))) return
  for (const trace of traces) await store(deps, [writeOf(trace)])
}

async function areStored(deps: Deps, traces: readonly SpanWrite[][]): Promise<boolean> {
  try {
    await store(deps, traces)
    return true
  } catch (error) {
    if (error instanceof AppError || isAboutData(error) || isTooMuch(error)) return false
    throw error
  }
}

/** In one transaction. */
async function store(deps: Deps, traces: readonly SpanWrite[][]): Promise<void> {
  await retried(() =>
    inTransaction(deps.sql, async tx => {
      const rules = { repeated: 'replace', foreign: 'refuse' } as const
      const { foreignTraceIds } = await writeSpans(tx, traces.flat(), deps.now(), rules)
      if (foreignTraceIds.size > 0) throw notFound('Trace')
      for (const spans of traces) await checkParents(tx, spans)
    }),
  )
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
