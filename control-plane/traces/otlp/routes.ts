import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ingestOtlp, ingestOtlpTraces } from '../../../shared/contract/trace-ingestion.js'
import type { Deps } from '../../deps.js'
import { type RouteInput, rawBody, route } from '../../http/route.js'
import { captureOf } from '../capture.js'
import type { IngestGate } from '../ingest-gate.js'
import { answerExport } from './answer.js'
import { decodeRequest, type Encoding, encodingOf, type PartialSuccess } from './decode.js'
import { readRequest } from './read-request.js'
import { type Stored, storeSpans } from './store-spans.js'

/** OTLP over HTTP (spec 2, POST /traces/otlp): decode, map, store in chunks, answer in the request's own form. */
export function registerOtlp(app: FastifyInstance, deps: Deps, gate: IngestGate): void {
  const receive = ({ request, reply, principal }: RouteInput<typeof ingestOtlp>) =>
    gate.work(async () => {
      const encoding = encodingOf(request.headers['content-type'])
      const { spans, unidentified, bytes } = await spansOf(request, encoding)
      const capture = await captureOf(deps, principal.teamId)
      const stored = await storeSpans(deps, spans, capture, bytes)
      if (stored.refused > 0) deps.log.error({ ...stored, teamId: principal.teamId }, 'spans were refused')
      return answerExport(reply, encoding, rejectedOf(stored, unidentified))
    })
  route(app, deps, ingestOtlp, receive)
  route(app, deps, ingestOtlpTraces, receive)
}

/**
 * A function of its own, so that nothing holds the decoded messages while their spans are stored: collecting garbage
 * around them was 5 to 10 % of this process's time.
 */
async function spansOf(request: FastifyRequest, encoding: Encoding) {
  const decoded = await decodeRequest(rawBody(request), encoding, request.headers['content-encoding'])
  return { ...(await readRequest(decoded.request)), bytes: decoded.bytes }
}

/** What was not stored, and why; exporters log it and do not send it again. */
function rejectedOf(stored: Stored, unidentified: number): PartialSuccess | null {
  const reasons: [number, string][] = [
    [stored.foreign, 'Trace not found.'],
    [unidentified, 'A span needs a trace id and a span id.'],
    [stored.refused, stored.reason],
  ]
  const given = reasons.filter(([count]) => count > 0)
  if (given.length === 0) return null
  return {
    rejectedSpans: given.reduce((total, [count]) => total + count, 0),
    errorMessage: given.map(([count, reason]) => `${count} rejected: ${reason}`).join(' '),
  }
}
