import {
  type CallRecord,
  type ChargeRecord,
  defaultSpanName,
  type SpanRecord,
} from '../../shared/spool/record.js'
import { jsonString } from '../json-string.js'
import { remembered } from '../remembered.js'

/** Always the same string: to compare two that only have the same characters takes 1 thousand instructions. */
export const spanNameOf = remembered(defaultSpanName)

/**
 * A record as JSON, each fact once: what is null or false is left out, and so is what a span repeats of its charge.
 * `control-plane/calls/whole-record.ts` puts it back.
 *
 * Written by hand, because this is what costs most of a call after the sockets: 12 thousand instructions, where
 * JSON.stringify of the whole record takes 48 and of one without the repetitions 31. Texts are still JSON.stringify's;
 * alone the ids of the call and its trace, UUIDs made or checked here, and the names of attributes stand as they are.
 */
export function recordJson({ charge, span }: CallRecord): string {
  return `{"charge":${chargeJson(charge)}${span === null ? '' : `,"span":${spanJson(span, charge)}`}}`
}

function chargeJson(charge: ChargeRecord): string {
  const { input, cacheRead, cacheWrite, output } = charge.tokens
  return (
    `{"requestId":"${charge.requestId}","teamId":${jsonString(charge.teamId)}` +
    (charge.virtualKeyId === null ? '' : `,"virtualKeyId":${jsonString(charge.virtualKeyId)}`) +
    `,"admittedAtMs":${instant(charge.admittedAtMs)},"provider":${jsonString(charge.provider)}` +
    `,"model":${jsonString(charge.model)},"upstreamModel":${jsonString(charge.upstreamModel)}` +
    unless(null, 'promptVersionId', charge.promptVersionId) +
    `,"tokens":{"input":${input},"cacheRead":${cacheRead},"cacheWrite":${cacheWrite},"output":${output}}` +
    `,"costNano":${charge.costNano}` +
    (charge.priced ? ',"priced":true' : '') +
    (charge.estimated ? ',"estimated":true' : '') +
    (charge.cached ? ',"cached":true}' : '}')
  )
}

function spanJson(span: SpanRecord, charge: ChargeRecord): string {
  const { trace } = span
  const costNano = charge.priced || charge.cached ? charge.costNano : null
  return (
    `{"trace":{"id":"${trace.id}"` +
    unless(null, 'name', trace.name) +
    unless(null, 'nameIfUnset', trace.nameIfUnset) +
    unless(null, 'sessionId', trace.sessionId) +
    unless(null, 'tags', trace.tags) +
    unless(null, 'metadata', trace.metadata) +
    `},"startTimeMs":${instant(span.startTimeMs)},"endTimeMs":${instant(span.endTimeMs)}` +
    unless(charge.teamId, 'teamId', span.teamId) +
    unless(charge.requestId, 'spanId', span.spanId) +
    unless(null, 'parentSpanId', span.parentSpanId) +
    unless(spanNameOf(charge.model), 'name', span.name) +
    unless('ok', 'status', span.status) +
    unless(charge.provider, 'provider', span.provider) +
    unless(charge.upstreamModel, 'model', span.model) +
    unless(charge.tokens, 'tokens', span.tokens) +
    unless(costNano, 'costNano', span.costNano) +
    unless(charge.promptVersionId, 'promptVersionId', span.promptVersionId) +
    unless(null, 'errorType', span.errorType) +
    unless(null, 'errorCode', span.errorCode) +
    `,"attributes":${attributesJson(span.attributes)}` +
    unless(null, 'payload', span.payload) +
    '}'
  )
}

/** A member with a comma before it, unless it is what its absence says. */
function unless(implied: unknown, name: string, value: unknown): string {
  if (value === implied) return ''
  return `,"${name}":${JSON.stringify(value)}`
}

function attributesJson(attributes: SpanRecord['attributes']): string {
  let members = ''
  for (const name of Object.keys(attributes)) {
    const value = attributes[name]
    const json = typeof value === 'string' ? jsonString(value) : JSON.stringify(value)
    members += `${members === '' ? '' : ','}"${name}":${json}`
  }
  return `{${members}}`
}

const thousandths = Array.from({ length: 1000 }, (_, n) => String(n).padStart(3, '0'))
let knownSecond = 0
let knownSecondText = ''

/** Epoch ms in digits. V8 writes a number above 2^31 by way of floating point: 1 thousand instructions each. */
function instant(epochMs: number): string {
  if (!Number.isSafeInteger(epochMs) || epochMs < 1000) return String(epochMs)
  const second = Math.floor(epochMs / 1000)
  if (second !== knownSecond) {
    knownSecond = second
    knownSecondText = String(second)
  }
  return knownSecondText + thousandths[epochMs - second * 1000]
}
