import { z } from 'zod'
import type { DirectoryAnswer, ReferencesAnswer } from '../directory/records.js'
import { endpoint, MEGABYTE } from './endpoint.js'

/**
 * What the two programs say to each other. These paths are outside /api/v1, want the internal token as bearer, and the
 * proxy never forwards to them. The shapes are `shared/directory/records.ts` and `shared/spool/record.ts`; both ends
 * are agh, so the bodies are checked for form and trusted for content.
 */

export const lookUpDirectory = endpoint({
  method: 'POST',
  path: '/internal/directory',
  summary: 'A credential and its team, for a proxy.',
  group: 'internal',
  access: 'internal',
  body: z.object({
    /** Virtual and API keys by hash; a session by the hash of its cookie; null to ask for a team alone. */
    credential: z.object({ kind: z.enum(['key', 'session']), hash: z.string() }).nullable(),
    /** Only with `credential: null`. */
    teamId: z.string().optional(),
    /** The epoch of the team's record that the proxy holds; the team is left out of the answer when it is current. */
    knownEpoch: z.number().int().optional(),
    /** Whose record that is: a session may have moved to another team since. */
    knownTeamId: z.string().optional(),
    /** The epoch that the ledger announced; the answer waits for a writer that is about to commit it. */
    announcedEpoch: z.number().int().optional(),
  }),
  response: z.object({
    credential: z.custom<DirectoryAnswer['credential']>(),
    team: z.custom<DirectoryAnswer['team']>(),
  }),
})

export const lookUpReferences = endpoint({
  method: 'POST',
  path: '/internal/references',
  summary: 'The stored prompt, tools and prompt version that a call names, for a proxy.',
  group: 'internal',
  access: 'internal',
  body: z.object({
    teamId: z.string(),
    prompt: z.object({ name: z.string(), alias: z.string() }).nullable(),
    tools: z.array(
      z.object({ name: z.string(), alias: z.string().nullable(), version: z.number().int().nullable() }),
    ),
    promptVersionId: z.string().nullable(),
  }),
  response: z.object({
    prompt: z.custom<ReferencesAnswer['prompt']>(),
    tools: z.array(z.custom<ReferencesAnswer['tools'][number]>()),
    promptVersionKnown: z.boolean().nullable(),
  }),
})

export const traceOwner = endpoint({
  method: 'POST',
  path: '/internal/traces/owner',
  summary: 'Whether a trace id is free, the team’s own or another team’s.',
  group: 'internal',
  access: 'internal',
  body: z.object({ teamId: z.string(), traceId: z.string() }),
  response: z.object({ owner: z.enum(['own', 'foreign', 'unknown']) }),
})

/** The body is newline-delimited JSON, one CallRecord a line; the answer comes after the commit. */
export const shipCalls = endpoint({
  method: 'POST',
  path: '/internal/calls',
  summary: 'Charges and spans of finished calls; inserted once, whatever is sent twice.',
  group: 'internal',
  access: 'internal',
  /** `rejected`: unreadable records, kept in the dead-letter table with their reason. */
  response: z.object({ accepted: z.number().int(), rejected: z.number().int() }),
  bodyLimit: 64 * MEGABYTE,
})

export const seedLedger = endpoint({
  method: 'POST',
  path: '/internal/ledger/seed',
  summary: 'Fills the counters of a team’s budgets that the ledger does not hold.',
  group: 'internal',
  access: 'internal',
  body: z.object({ teamId: z.string() }),
  response: z.object({ seeded: z.number().int() }),
})
