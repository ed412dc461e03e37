import { z } from 'zod'
import { instant, timestamp, usd } from './common.js'
import { endpoint } from './endpoint.js'
import { spanKind } from './traces.js'

export const analyticsGroups = ['day', 'model', 'session', 'prompt_version'] as const
export type AnalyticsGroup = (typeof analyticsGroups)[number]

/** Spec 2, analytics envelope: the metrics object. */
const metrics = z.object({
  /** Spans. */
  requests: z.number().int(),
  /** Spans with status `error`, divided by all; 0 without any. */
  errorRate: z.number(),
  promptTokens: z.number().int(),
  completionTokens: z.number().int(),
  totalTokens: z.number().int(),
  costUsd: usd,
  /**
   * Of the spans that have ended; null when none has. Within 5 % of the exact percentile by nearest rank, and exact
   * where the spans around it took equally long.
   */
  latencyMs: z.object({
    p50: z.number().nullable(),
    p95: z.number().nullable(),
    p99: z.number().nullable(),
  }),
})
export type Metrics = z.infer<typeof metrics>

export const readAnalytics = endpoint({
  method: 'GET',
  path: '/traces/analytics',
  summary: 'Spans, errors, tokens, cost and latency of a window, by day, model, session or prompt version.',
  group: 'traces',
  access: 'member',
  query: z.object({
    /** Both compare a span's start and are inclusive. Default: the last 30 days. */
    from: instant.optional(),
    to: instant.optional(),
    group_by: z.enum(analyticsGroups).default('day'),
    kind: spanKind.optional(),
    /** Exact; blank means no filter. */
    model: z.string().optional(),
  }),
  response: z.object({
    from: timestamp,
    to: timestamp,
    groupBy: z.enum(analyticsGroups),
    totals: metrics,
    /** Days in their order, everything else by most requests first. `key` of a day is its date, YYYY-MM-DD. */
    buckets: z.array(metrics.extend({ key: z.string() })),
  }),
})
