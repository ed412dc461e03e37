import { z } from 'zod'
import { id, idParams, instant, timestamp } from './common.js'
import { endpoint } from './endpoint.js'
import { errorType } from './traces.js'
import { versionNumber } from './versions.js'

/** What went wrong with an execution; `type` is an `error_type` of the traces (spec 2, GET /traces). */
export const executionError = z.object({
  type: errorType,
  /** The slug that the tool declared, the upstream's status, or what broke; null when the type says it all. */
  code: z.string().nullable(),
  message: z.string(),
})

const group = 'tools'

/** A caller's trace id need not be a UUID of any version: OpenTelemetry's have no version digit. */
const traceId = z.guid('Invalid uuid').transform(text => text.toLowerCase())
/** PostgreSQL's text takes no NUL. */
const text = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine(value => !/\0|\p{Surrogate}/u.test(value), { message: 'Text must be well-formed Unicode.' })
const parentSpanId = text(512)

export const executeTool = endpoint({
  method: 'POST',
  path: '/tools/:id/execute',
  summary: 'Calls a tool’s http executor with arguments and records the call as a span.',
  group,
  access: 'writer',
  params: idParams,
  body: z
    .object({
      arguments: z.record(z.string(), z.unknown()),
      /** Neither alias nor version: `production`. */
      alias: text(64).optional(),
      version: versionNumber.optional(),
      /** The trace that the span joins; an unknown id makes the trace. */
      trace: z.object({ traceId, parentSpanId: parentSpanId.nullish() }).nullish(),
    })
    .refine(body => body.alias === undefined || body.version === undefined, {
      message: 'Provide at most one of alias or version.',
    }),
  response: z.object({
    status: z.enum(['ok', 'error']),
    /** What the tool gave, transformed; null when there is nothing. It may stand beside an error. */
    result: z.unknown(),
    error: executionError.nullable(),
    /** Other checks that fired on the same response. */
    alsoDetected: z.array(executionError),
    warnings: z.array(z.string()),
    durationMs: z.number(),
    traceId: id,
    spanId: z.string(),
  }),
})

const percentiles = z.object({
  p50: z.number().nullable(),
  p95: z.number().nullable(),
  p99: z.number().nullable(),
})
const figures = { calls: z.number().int(), errorRate: z.number(), latencyMs: percentiles }

export const toolAnalytics = endpoint({
  method: 'GET',
  path: '/tools/:id/analytics',
  summary: 'How a tool’s executions went, in a window of their start times; 30 days unless told otherwise.',
  group,
  access: 'member',
  params: idParams,
  query: z.object({ from: instant.optional(), to: instant.optional() }),
  response: z.object({
    from: timestamp,
    to: timestamp,
    ...figures,
    /** Newest version first. */
    byVersion: z.array(z.object({ versionNumber: z.number().int(), ...figures })),
    /** Most frequent first. */
    byErrorType: z.array(z.object({ type: errorType, count: z.number().int() })),
    byErrorCode: z.array(z.object({ code: z.string(), count: z.number().int() })),
  }),
})
