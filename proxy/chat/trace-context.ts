import { isUuid } from '../../shared/contract/common.js'
import { isObject } from '../../shared/json/is-object.js'
import type { RequestHeaders } from '../http/exchange.js'
import type { ChatCall } from './parse.js'

/** What a call says about its trace and span: headers over body (spec 3, completions). */
export interface TraceContext {
  traceId: string | null
  /** Where the trace id came from, to list it when it turns out to be another team's. */
  traceIdSource: 'x-trace-id' | 'trace.traceId'
  parentSpanId: string | null
  sessionId: string | null
  /** null: nothing said, the team's setting decides. */
  capturePayloads: boolean | null
  name: string | null
  nameIfUnset: string | null
  tags: string[] | null
  metadata: Record<string, unknown> | null
  spanName: string | null
  spanTags: string[] | null
  spanMetadata: Record<string, unknown> | null
  /** What was of the wrong type and dropped: dotted paths, or the header's name (spec 4, section 9). */
  ignored: string[]
}

/** Never throws: a field of the wrong type is dropped and listed, the call runs. */
export function readTraceContext(headers: RequestHeaders, call: ChatCall): TraceContext {
  const ignored: string[] = []
  const trace = section(call.trace, 'trace', ignored)
  const span = section(call.span, 'span', ignored)

  const idHeader = uuidHeader(headers, ignored)
  const capture = captureHeader(headers, ignored)
  const traceMetadata = jsonHeader(headers, 'x-trace-metadata', ignored)
  const spanMetadata = jsonHeader(headers, 'x-span-metadata', ignored)
  const bodyTraceId = uuidField(trace, ignored)
  const bodyCapture = field(trace, 'trace', 'capturePayloads', isBoolean, ignored)
  return {
    traceId: idHeader ?? bodyTraceId,
    traceIdSource: idHeader === null ? 'trace.traceId' : 'x-trace-id',
    parentSpanId: field(trace, 'trace', 'parentSpanId', isText, ignored),
    sessionId: textHeader(headers, 'x-session-id') ?? field(trace, 'trace', 'sessionId', isText, ignored),
    capturePayloads: capture ?? bodyCapture,
    name: nameHeader(headers, 'x-trace-name') ?? field(trace, 'trace', 'name', isText, ignored),
    nameIfUnset:
      nameHeader(headers, 'x-trace-name-if-unset') ?? field(trace, 'trace', 'nameIfUnset', isText, ignored),
    tags: field(trace, 'trace', 'tags', isTextList, ignored),
    metadata: traceMetadata ?? field(trace, 'trace', 'metadata', isObject, ignored),
    spanName: field(span, 'span', 'name', isText, ignored),
    spanTags: field(span, 'span', 'tags', isTextList, ignored),
    spanMetadata: spanMetadata ?? field(span, 'span', 'metadata', isObject, ignored),
    ignored,
  }
}

type Section = Record<string, unknown> | null

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean'
const isTextList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every(entry => typeof entry === 'string')

/** `trace` or `span` of the body; the whole object is listed when the object itself is wrong. */
function section(value: unknown, name: string, ignored: string[]): Section {
  if (value === undefined || value === null) return null
  if (isObject(value)) return value
  ignored.push(name)
  return null
}

function field<T>(
  from: Section,
  sectionName: string,
  name: string,
  accepts: (value: unknown) => value is T,
  ignored: string[],
): T | null {
  const value = from?.[name]
  if (value === undefined || value === null) return null
  if (accepts(value)) return value
  ignored.push(`${sectionName}.${name}`)
  return null
}

function uuidField(trace: Section, ignored: string[]): string | null {
  const value = field(trace, 'trace', 'traceId', isText, ignored)
  if (value === null) return null
  if (isUuid(value)) return value.toLowerCase()
  ignored.push('trace.traceId')
  return null
}

function uuidHeader(headers: RequestHeaders, ignored: string[]): string | null {
  const value = textHeader(headers, 'x-trace-id')
  if (value === null) return null
  if (isUuid(value)) return value.toLowerCase()
  ignored.push('x-trace-id')
  return null
}

function captureHeader(headers: RequestHeaders, ignored: string[]): boolean | null {
  const value = textHeader(headers, 'x-capture-payloads')?.toLowerCase()
  if (value === undefined) return null
  if (value === 'true' || value === 'false') return value === 'true'
  ignored.push('x-capture-payloads')
  return null
}

function jsonHeader(
  headers: RequestHeaders,
  name: string,
  ignored: string[],
): Record<string, unknown> | null {
  const text = textHeader(headers, name)
  if (text === null) return null
  for (const candidate of [text, decoded(text)]) {
    try {
      const value: unknown = JSON.parse(candidate)
      if (isObject(value)) return value
    } catch {
      // Not JSON as sent; the percent-decoded form may be.
    }
  }
  ignored.push(name)
  return null
}

/** Names are free text and should be percent-encoded; what does not decode is taken as it is (spec 3). */
function nameHeader(headers: RequestHeaders, name: string): string | null {
  const text = textHeader(headers, name)
  return text === null ? null : decoded(text)
}

function decoded(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function textHeader(headers: RequestHeaders, name: string): string | null {
  const value = headers.get(name)?.trim()
  return value === undefined || value === '' ? null : value
}
