import type { ProviderKind } from '../contract/common.js'

/** Exclusive token buckets: nothing is counted twice. Prompt tokens are the sum of the first three. */
export interface TokenBuckets {
  /** Input that no cache served. */
  input: number
  cacheRead: number
  cacheWrite: number
  output: number
}

/** One call's cost. Survives anything; inserted once per `requestId` (spec 3, budgets; reliability notes, section 3). */
export interface ChargeRecord {
  requestId: string
  teamId: string
  virtualKeyId: string | null
  /** The ledger's clock at admission: the charge belongs to the periods of this instant. */
  admittedAtMs: number
  provider: ProviderKind
  /** The team's publicName. */
  model: string
  upstreamModel: string
  promptVersionId: string | null
  tokens: TokenBuckets
  costNano: number
  /** false: the model has no configured price, so costNano is 0 and the cost is unknown. */
  priced: boolean
  /** The provider did not say; tokens were estimated from what was seen. */
  estimated: boolean
  cached: boolean
}

/** The trace that the span belongs to, with what this call says about it. */
export interface SpanTrace {
  id: string
  /** From x-trace-name: names or renames. */
  name: string | null
  /** From x-trace-name-if-unset: only if the trace has no name but its default. */
  nameIfUnset: string | null
  sessionId: string | null
  tags: string[] | null
  metadata: Record<string, unknown> | null
}

/** One llm span of a gateway call. May be dropped under pressure, its payload first. */
export interface SpanRecord {
  teamId: string
  trace: SpanTrace
  /** The caller-visible span reference; gateway spans use the request id. */
  spanId: string
  parentSpanId: string | null
  name: string
  status: 'ok' | 'error'
  startTimeMs: number
  endTimeMs: number
  provider: ProviderKind
  /** The provider's model id (spec 4, section 5). */
  model: string
  tokens: TokenBuckets | null
  /** null when the model has no price. */
  costNano: number | null
  promptVersionId: string | null
  errorType: 'provider_error' | null
  errorCode: string | null
  /**
   * tags, metadata, timeToFirstTokenMs, finishReason, retries, ledgerBypassed; ingestion adds what the charge says:
   * requestId, virtualKeyId, cached.
   */
  attributes: Record<string, unknown>
  /** Present when capture is on; redacted by ingestion. */
  payload: { input: unknown; output: unknown; variables: Record<string, unknown> | null } | null
}

/** Of a span that the caller gave no name. */
export const defaultSpanName = (model: string): string => `chat ${model}`

/**
 * What one call leaves behind. `span` is null only when it was dropped under disk pressure.
 *
 * On disk and on the way it is shorter: proxy/spool/record-json.ts writes it, control-plane/calls/whole-record.ts reads.
 */
export interface CallRecord {
  charge: ChargeRecord
  span: SpanRecord | null
}
