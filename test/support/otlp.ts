import { randomBytes } from 'node:crypto'
import generated from '@opentelemetry/otlp-transformer/build/src/generated/root.js'
import type { ControlPlane, Credential } from './control-plane.js'
import { headersOf } from './control-plane.js'

/** Requests of OpenTelemetry exporters, by hand: for what no exporter sends, and to say bytes exactly. */

export const START_MS = Date.parse('2026-11-21T12:00:00.000Z')
export const nanos = (ms: number): string => `${BigInt(ms) * 1_000_000n}`

/** An AnyValue of OTLP's JSON form. */
export type AnyValue = Record<string, unknown>

export function anyValue(value: unknown): AnyValue {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'bigint') return { intValue: String(value) }
  if (typeof value === 'number')
    return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } }
  if (value === null || value === undefined) return {}
  return { kvlistValue: { values: keyValues(value as object) } }
}

export const keyValues = (attributes: object) =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }))

export const newTraceId = () => randomBytes(16).toString('hex')
export const newSpanId = () => randomBytes(8).toString('hex')
export const uuidOf = (hex: string) =>
  hex.toLowerCase().replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

interface SpanParts {
  attributes?: object
  [field: string]: unknown
}

/** A span of OTLP's JSON form: 250 ms, ok, in a trace of its own. */
export function otlpSpan({ attributes = {}, ...fields }: SpanParts = {}) {
  return {
    traceId: newTraceId(),
    spanId: newSpanId(),
    name: 'step',
    kind: 1,
    startTimeUnixNano: nanos(START_MS),
    endTimeUnixNano: nanos(START_MS + 250),
    attributes: keyValues(attributes),
    status: { code: 1 },
    ...fields,
  }
}

export const exportRequest = (spans: readonly object[], resource: object = {}, scope: object = {}) => ({
  resourceSpans: [{ resource: { attributes: keyValues(resource) }, scopeSpans: [{ scope, spans }] }],
})

interface Message {
  encode(message: object): { finish(): Uint8Array }
  decode(bytes: Uint8Array): object
  fromObject(object: object): object
  toObject(message: object, options: object): Record<string, unknown>
}
interface Service {
  opentelemetry: { proto: { collector: { trace: { v1: Record<string, Message> } } } }
}
const { v1 } = (generated as unknown as Service).opentelemetry.proto.collector.trace

/** The protobuf form of a request of the JSON form. */
export function protobuf(request: { resourceSpans: readonly object[] }): Buffer {
  const bytesFor = (key: string, value: unknown) =>
    /^(traceId|spanId|parentSpanId)$/.test(key) && typeof value === 'string'
      ? Buffer.from(value, 'hex').toString('base64')
      : value
  const type = v1.ExportTraceServiceRequest!
  const message = type.fromObject(JSON.parse(JSON.stringify(request, bytesFor)))
  return Buffer.from(type.encode(message).finish())
}

/** An answer of the protobuf form. */
export function decodedResponse(bytes: Uint8Array): Record<string, unknown> {
  const type = v1.ExportTraceServiceResponse!
  return type.toObject(type.decode(bytes), { longs: Number })
}

export interface Exported {
  status: number
  headers: Record<string, unknown>
  bytes: Buffer
  /** Undefined for a protobuf answer. */
  json: { partialSuccess?: object; error?: { code: string; message: string } } | undefined
}

/** POST /traces/otlp. @param body an object goes as JSON, bytes as protobuf. */
export async function postOtlp(
  { app }: Pick<ControlPlane, 'app'>,
  as: Credential,
  body: object | Buffer | string,
  options: { path?: string; headers?: Record<string, string> } = {},
): Promise<Exported> {
  const isProtobuf = Buffer.isBuffer(body)
  const response = await app.inject({
    method: 'POST',
    url: options.path ?? '/api/v1/traces/otlp',
    headers: {
      'content-type': isProtobuf ? 'application/x-protobuf' : 'application/json',
      ...headersOf(as),
      ...options.headers,
    },
    payload: isProtobuf || typeof body === 'string' ? body : JSON.stringify(body),
  })
  const isJson = String(response.headers['content-type']).startsWith('application/json')
  return {
    status: response.statusCode,
    headers: response.headers,
    bytes: response.rawPayload,
    json: isJson ? JSON.parse(response.body) : undefined,
  }
}
