import { z } from 'zod'
import { instant, pageOf, pageQuery, timestamp, usd } from './common.js'
import { endpoint } from './endpoint.js'
import { traceRow } from './traces.js'

/** Spec 2, session: the traces of a team that share a `sessionId`, summed up. */
export const sessionSummary = z.object({
  sessionId: z.string(),
  traceCount: z.number().int(),
  totalCostUsd: usd,
  totalTokens: z.number().int(),
  /** The earliest start of its traces. */
  firstAt: timestamp,
  /** The latest start of its traces. */
  lastAt: timestamp,
})
export type SessionSummary = z.infer<typeof sessionSummary>

export const listSessions = endpoint({
  method: 'GET',
  path: '/sessions',
  summary:
    'Sessions with a trace that started in the window, newest activity first; each with all of its traces.',
  group: 'sessions',
  access: 'member',
  query: pageQuery.extend({
    from: instant.optional(),
    to: instant.optional(),
    /** Part of the session id, whatever the letter case; blank means no filter. */
    q: z
      .string()
      .max(256)
      .refine(text => !text.includes('\0'), 'q must not contain the NUL character')
      .optional(),
  }),
  response: pageOf(sessionSummary),
})

export const readSession = endpoint({
  method: 'GET',
  path: '/sessions/:id',
  summary: 'A session and its newest 100 traces.',
  group: 'sessions',
  access: 'member',
  params: z.object({ id: z.string() }),
  response: z.object({ session: sessionSummary, traces: z.array(traceRow) }),
})
