import type { StoredSpans } from '../traces/store-spans.js'

/** What feedback is summed up by, as the columns and values of `feedback_sums`. */
export type SumDimension = 'model' | 'prompt_version'

/** How many llm spans with a key a write brought a trace, less those that it took. */
export interface KeyShift {
  teamId: string
  receivedAtMs: number
  traceId: string
  dimension: SumDimension
  /** Model or prompt version id. */
  key: string
  /** Not 0. */
  spans: number
}

interface KeyedSpan {
  kind: string
  model: string | null
  promptVersionId: string | null
}

/**
 * By what a write may have moved feedback in the summary: none where spans were replaced by some of the same kind,
 * model and version.
 *
 * @param known the traces that were there before; a new one has no feedback.
 */
export function keyShifts({ created, changed }: StoredSpans, known: readonly { id: string }[]): KeyShift[] {
  if (known.length === 0) return []
  const knownIds = new Set(known.map(trace => trace.id))
  const shifts = new Map<string, KeyShift>()
  const count = (trace: TraceOfSpan, span: KeyedSpan, by: 1 | -1) => {
    if (span.kind !== 'llm' || !knownIds.has(trace.traceId)) return
    for (const [dimension, key] of keysOf(span)) {
      const place = `${trace.traceId} ${dimension} ${key}`
      const shift = shifts.get(place) ?? { ...trace, dimension, key, spans: 0 }
      shifts.set(place, shift)
      shift.spans += by
    }
  }
  for (const placed of [...created, ...changed]) count(traceOf(placed), placed.span, 1)
  for (const placed of changed) count(traceOf(placed), placed.before, -1)
  return [...shifts.values()].filter(shift => shift.spans !== 0)
}

type TraceOfSpan = Pick<KeyShift, 'teamId' | 'receivedAtMs' | 'traceId'>

const traceOf = ({ span, receivedAtMs }: StoredSpans['created'][number]): TraceOfSpan => ({
  teamId: span.teamId,
  receivedAtMs,
  traceId: span.trace.id,
})

function keysOf({ model, promptVersionId }: KeyedSpan): [SumDimension, string][] {
  return [
    ...(model === null ? [] : [['model', model] as [SumDimension, string]]),
    ...(promptVersionId === null ? [] : [['prompt_version', promptVersionId] as [SumDimension, string]]),
  ]
}
