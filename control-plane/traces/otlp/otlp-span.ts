import type { Attributes } from './attribute-value.js'

/** A span as it came, whichever form it came in: ids in lower-case hex, times in epoch milliseconds, values plain JSON. */
export interface OtlpSpan {
  /** 32 hex digits. */
  traceId: string
  /** 16 hex digits. */
  spanId: string
  parentSpanId: string | null
  name: string
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number
  /** null: the exporter did not say. */
  startTimeMs: number | null
  endTimeMs: number | null
  /** 0 unset, 1 ok, 2 error. */
  statusCode: number
  statusMessage: string
  traceState: string
  attributes: Attributes
  events: readonly OtlpEvent[]
  links: readonly OtlpLink[]
  /** Names and counts of what the exporter itself had to drop. */
  dropped: Attributes | null
  /** Shared by the spans of one resource and one scope. */
  resource: Attributes
  scope: OtlpScope | null
  /** Upper bound of its JSON text in UTF-16 units. */
  units: number
}

export interface OtlpEvent {
  name: string
  time: string | null
  attributes: Attributes
}

export interface OtlpLink {
  traceId: string
  spanId: string
  attributes: Attributes
}

export interface OtlpScope {
  name: string
  version: string
  attributes: Attributes
}
