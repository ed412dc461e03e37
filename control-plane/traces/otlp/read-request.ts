import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  type Attributes,
  attributesOf,
  type Meter,
  type Raw,
  rawList,
  rawMessage,
  textOf,
} from './attribute-value.js'
import { malformed } from './malformed.js'
import type { OtlpEvent, OtlpLink, OtlpScope, OtlpSpan } from './otlp-span.js'
import { hexId, unixMs } from './wire-types.js'

/** What a request holds. */
export interface ReceivedSpans {
  spans: OtlpSpan[]
  /** Spans without a usable trace id or span id: there is nothing to store them under. */
  unidentified: number
}

/** Some milliseconds of work; then the event loop gets a turn. */
const SPANS_PER_TURN = 200

/**
 * The spans of a decoded ExportTraceServiceRequest, in order.
 *
 * @throws AppError VALIDATION_ERROR `Malformed OTLP request: <detail>` for a field of the wrong type.
 */
export async function readRequest(request: Raw): Promise<ReceivedSpans> {
  const received: ReceivedSpans = { spans: [], unidentified: 0 }
  let sinceTurn = 0
  for (const resourceSpans of rawList(request.resourceSpans, 'resourceSpans')) {
    const shared: Meter = { units: 0 }
    const resource = attributesOf(rawMessage(resourceSpans.resource, 'resource')?.attributes, shared)
    for (const scopeSpans of rawList(resourceSpans.scopeSpans, 'scopeSpans')) {
      const scope = scopeOf(rawMessage(scopeSpans.scope, 'scope'), shared)
      for (const raw of rawList(scopeSpans.spans, 'spans')) {
        const span = spanOf(raw, resource, scope, shared.units)
        if (span === null) received.unidentified++
        else received.spans.push(span)
        if (++sinceTurn >= SPANS_PER_TURN) {
          sinceTurn = 0
          await nextTurn()
        }
      }
    }
  }
  return received
}

function scopeOf(raw: Raw | null, meter: Meter): OtlpScope | null {
  if (raw === null) return null
  const [name, version] = [text(raw.name, 'scope.name', meter), text(raw.version, 'scope.version', meter)]
  const attributes = attributesOf(raw.attributes, meter)
  return name === '' && version === '' && isEmpty(attributes) ? null : { name, version, attributes }
}

/** Null: it has no identity. */
function spanOf(
  raw: Raw,
  resource: Attributes,
  scope: OtlpScope | null,
  sharedUnits: number,
): OtlpSpan | null {
  const traceId = hexId(raw.traceId, 16, 'traceId')
  const spanId = hexId(raw.spanId, 8, 'spanId')
  if (traceId === null || spanId === null) return null
  const meter = { units: sharedUnits }
  const status = rawMessage(raw.status, 'status')
  return {
    traceId,
    spanId,
    parentSpanId: hexId(raw.parentSpanId, 8, 'parentSpanId'),
    name: text(raw.name, 'name', meter),
    kind: enumOf(raw.kind, spanKinds),
    startTimeMs: unixMs(raw.startTimeUnixNano, 'startTimeUnixNano'),
    endTimeMs: unixMs(raw.endTimeUnixNano, 'endTimeUnixNano'),
    statusCode: enumOf(status?.code, statusCodes),
    statusMessage: text(status?.message, 'status.message', meter),
    traceState: text(raw.traceState, 'traceState', meter),
    attributes: attributesOf(raw.attributes, meter),
    events: rawList(raw.events, 'events').map(event => eventOf(event, meter)),
    links: rawList(raw.links, 'links').map(link => linkOf(link, meter)),
    dropped: droppedOf(raw),
    resource,
    scope,
    units: meter.units,
  }
}

function eventOf(raw: Raw, meter: Meter): OtlpEvent {
  const atMs = unixMs(raw.timeUnixNano, 'timeUnixNano')
  return {
    name: text(raw.name, 'event.name', meter),
    time: atMs === null ? null : new Date(atMs).toISOString(),
    attributes: attributesOf(raw.attributes, meter),
  }
}

function linkOf(raw: Raw, meter: Meter): OtlpLink {
  return {
    traceId: hexId(raw.traceId, 16, 'link.traceId') ?? '',
    spanId: hexId(raw.spanId, 8, 'link.spanId') ?? '',
    attributes: attributesOf(raw.attributes, meter),
  }
}

function droppedOf(raw: Raw): Attributes | null {
  const counts: Attributes = {}
  for (const name of ['droppedAttributesCount', 'droppedEventsCount', 'droppedLinksCount']) {
    const count = raw[name]
    if (typeof count === 'number' && count > 0) counts[name] = count
  }
  return isEmpty(counts) ? null : counts
}

const spanKinds = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'].map(
  name => `SPAN_KIND_${name}`,
)
const statusCodes = ['UNSET', 'OK', 'ERROR'].map(name => `STATUS_CODE_${name}`)

/** A number, or the name that protobuf's own JSON printers write. What is unknown is 0. */
function enumOf(value: unknown, names: readonly string[]): number {
  if (typeof value === 'number') return value
  return typeof value === 'string' ? Math.max(0, names.indexOf(value)) : 0
}

function text(value: unknown, name: string, meter: Meter): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw malformed(`${name} is not text`)
  return textOf(value, meter)
}

const isEmpty = (attributes: Attributes): boolean => {
  for (const _ in attributes) return false
  return true
}
