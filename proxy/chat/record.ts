import type { CallRecord, SpanRecord, TokenBuckets } from '../../shared/spool/record.js'
import type { InputTokens } from '../providers/adapter.js'
import { spanNameOf } from '../spool/record-json.js'
import type { Admission } from './admit.js'
import type { TraceContext } from './trace-context.js'

/** How a call ended, from whichever of its ends. */
export interface Outcome {
  status: 'ok' | 'error'
  /** false: the provider did no work, so the hold is released and nothing is charged. */
  charged: boolean
  /** null: the provider did not say; then they are estimated from what was seen. */
  tokens: TokenBuckets | null
  /** Known before the answer, while `tokens` is not. */
  inputTokens: InputTokens | null
  outputBytes: number
  finishReason: string | null
  errorType: 'provider_error' | null
  errorCode: string | null
  firstByteAtMs: number | null
  retries: number
  cached: boolean
  /** The answer as an OpenAI completion, for payload capture; null when there is none. */
  completion: (() => Record<string, unknown>) | null
}

/** What a call that ended without an answer has to say. */
export const NOTHING: Outcome = {
  status: 'error',
  charged: false,
  tokens: null,
  inputTokens: null,
  outputBytes: 0,
  finishReason: null,
  errorType: null,
  errorCode: null,
  firstByteAtMs: null,
  retries: 0,
  cached: false,
  completion: null,
}

/** One call's identity through its life. */
export interface Recorded {
  admission: Admission
  context: TraceContext
  traceId: string
  requestId: string
  startedAtMs: number
  captures: boolean
}

/** What goes to the spool (spec 4, section 5, span of a call). */
export function callRecord(
  call: Recorded,
  outcome: Outcome,
  tokens: TokenBuckets,
  costNano: number,
  estimated: boolean,
  endedAtMs: number,
): CallRecord {
  const { target } = call.admission
  const { credential } = target.caller
  const virtualKeyId = credential.kind === 'virtual_key' ? credential.id : null
  return {
    charge: {
      requestId: call.requestId,
      teamId: credential.teamId,
      virtualKeyId,
      admittedAtMs: call.admission.admittedAtMs,
      provider: target.connection.provider,
      model: target.model.publicName,
      upstreamModel: target.model.upstreamModel,
      promptVersionId: target.call.lineage?.promptVersionId ?? null,
      tokens,
      costNano,
      priced: target.model.prices !== null,
      estimated,
      cached: outcome.cached,
    },
    span: spanRecord(call, outcome, tokens, costNano, endedAtMs),
  }
}

function spanRecord(
  call: Recorded,
  outcome: Outcome,
  tokens: TokenBuckets,
  costNano: number,
  endedAtMs: number,
): SpanRecord {
  const { context } = call
  const { target } = call.admission
  const priced = target.model.prices !== null
  return {
    teamId: target.caller.credential.teamId,
    trace: {
      id: call.traceId,
      name: context.name,
      nameIfUnset: context.nameIfUnset,
      sessionId: context.sessionId,
      tags: context.tags,
      metadata: context.metadata,
    },
    spanId: call.requestId,
    parentSpanId: context.parentSpanId,
    name: context.spanName ?? spanNameOf(target.model.publicName),
    status: outcome.status,
    startTimeMs: call.startedAtMs,
    endTimeMs: endedAtMs,
    provider: target.connection.provider,
    model: target.model.upstreamModel,
    tokens: outcome.charged || outcome.cached ? tokens : null,
    costNano: priced || outcome.cached ? costNano : null,
    promptVersionId: target.call.lineage?.promptVersionId ?? null,
    errorType: outcome.errorType,
    errorCode: outcome.errorCode,
    attributes: attributes(call, outcome),
    payload: call.captures ? payload(call, outcome) : null,
  }
}

/** Only what is so: an absent attribute reads as "no" (spec 4, section 9 Gateway, names). */
function attributes(call: Recorded, outcome: Outcome): Record<string, unknown> {
  const { context, admission } = call
  const found: Record<string, unknown> = {}
  if (outcome.finishReason !== null) found.finishReason = outcome.finishReason
  if (outcome.firstByteAtMs !== null) found.timeToFirstTokenMs = outcome.firstByteAtMs - call.startedAtMs
  if (outcome.retries > 0) found.retries = outcome.retries
  if (admission.ledgerBypassed) found.ledgerBypassed = true
  if (context.spanTags !== null) found.tags = context.spanTags
  if (context.spanMetadata !== null) found.metadata = context.spanMetadata
  return found
}

/** The messages as they were sent, and the assistant's message; of several choices, all messages. */
function payload(call: Recorded, outcome: Outcome): SpanRecord['payload'] {
  const completion = outcome.completion?.()
  const choices = Array.isArray(completion?.choices) ? completion.choices : []
  const messages = choices.map((choice: { message?: unknown }) => choice?.message ?? null)
  const output = messages.length > 1 ? messages : (messages[0] ?? null)
  const { request, lineage } = call.admission.target.call
  return { input: request.messages, output, variables: lineage?.variables ?? null }
}
