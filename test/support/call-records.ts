import { randomUUID } from 'node:crypto'
import type { CallRecord, ChargeRecord, SpanRecord, SpanTrace } from '../../shared/spool/record.js'
import type { ControlPlane } from './control-plane.js'

interface Parts {
  charge?: Partial<ChargeRecord>
  span?: Partial<Omit<SpanRecord, 'trace'>>
  trace?: Partial<SpanTrace>
}

/** What one call of a team leaves behind: 12 tokens, 1,500 nano-dollars, 250 ms; each in a trace of its own. */
export function callRecord(
  teamId: string,
  { charge, span, trace }: Parts = {},
): CallRecord & { span: SpanRecord } {
  const requestId = charge?.requestId ?? randomUUID()
  const { virtualKeyId = null, cached = false } = charge ?? {}
  const startTimeMs = span?.startTimeMs ?? charge?.admittedAtMs ?? Date.now()
  const tokens = { input: 5, cacheRead: 2, cacheWrite: 1, output: 4 }
  return {
    charge: {
      requestId,
      teamId,
      virtualKeyId: null,
      admittedAtMs: startTimeMs,
      provider: 'openai',
      model: 'fast',
      upstreamModel: 'gpt-test',
      promptVersionId: null,
      tokens,
      costNano: 1500,
      priced: true,
      estimated: false,
      cached: false,
      ...charge,
    },
    span: {
      teamId,
      trace: {
        id: randomUUID(),
        name: null,
        nameIfUnset: null,
        sessionId: null,
        tags: null,
        metadata: null,
        ...trace,
      },
      spanId: requestId,
      parentSpanId: null,
      name: 'chat fast',
      status: 'ok',
      startTimeMs,
      endTimeMs: startTimeMs + 250,
      provider: 'openai',
      model: 'gpt-test',
      tokens,
      costNano: 1500,
      promptVersionId: null,
      errorType: null,
      errorCode: null,
      attributes: { requestId, cached, ...(virtualKeyId !== null && { virtualKeyId }), finishReason: 'stop' },
      payload: null,
      ...span,
    },
  }
}

export const ndjson = (records: readonly unknown[]): string =>
  records.map(record => `${typeof record === 'string' ? record : JSON.stringify(record)}\n`).join('')

/** Ships records as a proxy does. */
export async function ship(
  { app, deps }: ControlPlane,
  records: readonly unknown[],
): Promise<{ status: number; body: { accepted: number; rejected: number } }> {
  const response = await app.inject({
    method: 'POST',
    url: '/internal/calls',
    headers: { authorization: `Bearer ${deps.config.internalToken}`, 'content-type': 'application/x-ndjson' },
    payload: ndjson(records),
  })
  return { status: response.statusCode, body: JSON.parse(response.body) }
}
