import { z } from 'zod'
import { ownObject, providerKind } from '../../shared/contract/common.js'
import type { CallRecord, ChargeRecord, SpanRecord } from '../../shared/spool/record.js'
import { MAX_REFERENCE } from '../traces/span-write.js'

/**
 * The form that a whole CallRecord must have to be inserted (shared/spool/record.ts). Fields that are not known pass: a
 * newer proxy may say more than this control plane understands.
 */

/** What a PostgreSQL `integer` holds. */
const tokenCount = z.number().int().min(0).max(2_147_483_647)
const nano = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
/** Up to the end of the year 9999. */
const instantMs = z.number().min(0).max(253_402_300_799_999).transform(Math.floor)
const uuid = z.guid().transform(text => text.toLowerCase())
const tokens = z.object({
  input: tokenCount,
  cacheRead: tokenCount,
  cacheWrite: tokenCount,
  output: tokenCount,
})

export const chargeRecord = z.object({
  requestId: uuid,
  teamId: uuid,
  virtualKeyId: uuid.nullable(),
  admittedAtMs: instantMs,
  provider: providerKind,
  model: z.string(),
  upstreamModel: z.string(),
  promptVersionId: uuid.nullable(),
  tokens,
  costNano: nano,
  priced: z.boolean(),
  estimated: z.boolean(),
  cached: z.boolean(),
}) satisfies z.ZodType<ChargeRecord>

export const spanRecord = z.object({
  teamId: uuid,
  trace: z.object({
    id: uuid,
    name: z.string().nullable(),
    nameIfUnset: z.string().nullable(),
    sessionId: z.string().nullable(),
    tags: z.array(z.string()).nullable(),
    metadata: ownObject.nullable(),
  }),
  spanId: z.string().min(1).max(MAX_REFERENCE),
  parentSpanId: z.string().nullable(),
  name: z.string(),
  status: z.enum(['ok', 'error']),
  startTimeMs: instantMs,
  endTimeMs: instantMs,
  provider: providerKind,
  model: z.string(),
  tokens: tokens.nullable(),
  costNano: nano.nullable(),
  promptVersionId: uuid.nullable(),
  errorType: z.literal('provider_error').nullable(),
  errorCode: z.string().nullable(),
  attributes: ownObject,
  payload: z.object({ input: z.unknown(), output: z.unknown(), variables: ownObject.nullable() }).nullable(),
}) satisfies z.ZodType<SpanRecord>

/** The span is checked apart: a charge survives a span that is unreadable. */
export const callRecord = z.object({ charge: chargeRecord, span: z.unknown() }) satisfies z.ZodType<
  Omit<CallRecord, 'span'>
>
