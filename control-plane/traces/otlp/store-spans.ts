import { isAboutData, isTooMuch, refusal, retried } from '../../db/failures.js'
import { inTransaction } from '../../db/sql.js'
import type { Deps } from '../../deps.js'
import type { Capture } from '../capture.js'
import { writeSpans } from '../ingest.js'
import { spanWrite } from './map-span.js'
import type { OtlpSpan } from './otlp-span.js'

/** Spec 2, OTLP rule 7. */
const CHUNK_SPANS = 200
/** Of the decoded request: what a statement stores well within its deadline, also on a slow disk. */
const CHUNK_BYTES = 2 * 1024 * 1024

export interface Stored {
  /** Spans of traces that another team holds. */
  foreign: number
  /** Spans that PostgreSQL will not take, and what it said. */
  refused: number
  reason: string
}

/**
 * Stores the spans of one request, a transaction per chunk. A span that is stored already is replaced, so a client that
 * sends a request again after a failure in its middle doubles nothing (rules 7 and 8).
 *
 * @param bytes of the request, inflated.
 */
export async function storeSpans(
  deps: Deps,
  spans: readonly OtlpSpan[],
  capture: Capture,
  bytes: number,
): Promise<Stored> {
  const stored: Stored = { foreign: 0, refused: 0, reason: '' }
  const size = chunkSize(spans.length, bytes)
  for (const chunk of chunksOf(spans, size)) await storeChunk(deps, chunk, capture, stored)
  return stored
}

const chunkSize = (count: number, bytes: number): number =>
  Math.max(1, Math.min(CHUNK_SPANS, Math.floor((CHUNK_BYTES / Math.max(1, bytes)) * count)))

/**
 * Whole traces, as many as fit: one that the chunk before began would have to be read, compared and merged, in four
 * statements that a chunk of new traces has no need of. A trace that fits into no chunk is cut. Stable: of two spans with
 * one id the later one is written last.
 */
function chunksOf(spans: readonly OtlpSpan[], size: number): OtlpSpan[][] {
  const chunks: OtlpSpan[][] = []
  let open: OtlpSpan[] = []
  for (const own of byTrace(spans)) {
    if (open.length + own.length > size) {
      chunks.push(open)
      open = []
    }
    for (const span of own) {
      if (open.length === size) {
        chunks.push(open)
        open = []
      }
      open.push(span)
    }
  }
  return [...chunks, open].filter(chunk => chunk.length > 0)
}

function byTrace(spans: readonly OtlpSpan[]): Iterable<OtlpSpan[]> {
  const traces = new Map<string, OtlpSpan[]>()
  for (const span of spans) {
    const siblings = traces.get(span.traceId)
    if (siblings === undefined) traces.set(span.traceId, [span])
    else siblings.push(span)
  }
  return traces.values()
}

/** When PostgreSQL refuses a value, the chunk is halved until the span at fault stands alone; the rest is stored. */
async function storeChunk(
  deps: Deps,
  spans: readonly OtlpSpan[],
  capture: Capture,
  stored: Stored,
): Promise<void> {
  try {
    const writes = spans.map(span => spanWrite(span, capture))
    const rules = { repeated: 'replace', foreign: 'refuse' } as const
    const { foreignTraceIds } = await retried(() =>
      inTransaction(deps.sql, tx => writeSpans(tx, writes, deps.now(), rules)),
    )
    stored.foreign += writes.filter(write => foreignTraceIds.has(write.trace.id)).length
  } catch (error) {
    const isDivisible = spans.length > 1 && (isAboutData(error) || isTooMuch(error))
    if (!isDivisible) {
      if (!isAboutData(error)) throw error
      stored.refused++
      stored.reason = refusal(error)
      return
    }
    const half = Math.ceil(spans.length / 2)
    await storeChunk(deps, spans.slice(0, half), capture, stored)
    await storeChunk(deps, spans.slice(half), capture, stored)
  }
}
