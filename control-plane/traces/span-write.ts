import type { ErrorType, SpanKind, TraceStatus } from '../../shared/contract/traces.js'

/** How a trace's name came; see `trace_name_wins` in the migration for which one stays. */
export type NameSource = 'explicit' | 'if_unset' | 'derived'

/** What a span says about its trace. Null means that it says nothing. */
export interface TraceClaim {
  /** UUID, lower case. */
  id: string
  /** When it was said, epoch milliseconds: of two that disagree the later stays. Left out: at the start of its span. */
  saidAtMs?: number
  name: string | null
  nameSource: NameSource | null
  /** The latest one that is not null stays. */
  sessionId: string | null
  /** United with the trace's own. */
  tags: readonly string[]
  /** Merged into the trace's own by top-level key; of two values of one key the later span's stays. */
  metadata: Record<string, unknown> | null
}

/**
 * A span from whichever door it came: a gateway call, POST /traces or OTLP. Texts hold no NUL, JSON values have been
 * through `storable`; amounts are nano-dollars, times epoch milliseconds.
 */
export interface SpanWrite {
  teamId: string
  trace: TraceClaim
  /** The caller's reference, unique in the trace; at most MAX_REFERENCE characters, it is part of the key. */
  spanId: string
  parentSpanId: string | null
  name: string
  kind: SpanKind
  status: TraceStatus
  startTimeMs: number
  endTimeMs: number | null
  model: string | null
  provider: string | null
  promptTokens: number | null
  completionTokens: number | null
  totalTokens: number | null
  costNano: number | null
  promptVersionId: string | null
  errorType: ErrorType | null
  errorCode: string | null
  hasWarning: boolean
  attributes: unknown
  input: unknown
  output: unknown
  variables: unknown
}

/** Span references and session ids are index keys; PostgreSQL takes up to 2,704 bytes, agh 512 UTF-16 units. */
export const MAX_REFERENCE = 512

/** Spec 4, section 9: the attribute `warnings` is a non-empty array, or `warning` is set. */
export function hasWarning(attributes: Readonly<Record<string, unknown>>): boolean {
  const { warning, warnings } = attributes
  if (Array.isArray(warnings) && warnings.length > 0) return true
  return warning !== undefined && warning !== null && warning !== false && warning !== ''
}
