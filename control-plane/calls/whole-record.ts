import { isObject } from '../../shared/json/is-object.js'
import { defaultSpanName } from '../../shared/spool/record.js'

type Fields = Record<string, unknown>

/**
 * A shipped record with everything in it that its proxy left out (proxy/spool/record-json.ts): what is null or false,
 * and what the span shares with its charge. Whatever the record does say stands, so that one which says it all, as
 * spools of earlier versions hold them, comes out as it is.
 *
 * @param record not checked yet: what is no record comes out unchanged too.
 */
export function wholeRecord(record: unknown): unknown {
  if (!isObject(record) || !isObject(record.charge)) return record
  const charge = { ...CHARGE, ...record.charge }
  const { span } = record
  return { ...record, charge, span: isObject(span) ? wholeSpan(span, charge) : (span ?? null) }
}

const CHARGE: Fields = {
  virtualKeyId: null,
  promptVersionId: null,
  priced: false,
  estimated: false,
  cached: false,
}
const TRACE: Fields = { name: null, nameIfUnset: null, sessionId: null, tags: null, metadata: null }

function wholeSpan(span: Fields, charge: Fields): Fields {
  const { trace, attributes } = span
  const { requestId, virtualKeyId, cached } = charge
  const known = virtualKeyId === null ? { requestId, cached } : { requestId, cached, virtualKeyId }
  return {
    teamId: charge.teamId,
    spanId: requestId,
    parentSpanId: null,
    name: defaultSpanName(String(charge.model)),
    status: 'ok',
    provider: charge.provider,
    model: charge.upstreamModel,
    tokens: charge.tokens,
    costNano: charge.priced || cached ? charge.costNano : null,
    promptVersionId: charge.promptVersionId,
    errorType: null,
    errorCode: null,
    payload: null,
    ...span,
    trace: isObject(trace) ? { ...TRACE, ...trace } : trace,
    attributes: isObject(attributes) ? { ...known, ...attributes } : attributes,
  }
}
