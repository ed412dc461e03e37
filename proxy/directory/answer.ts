import { z } from 'zod'
import { providerKind, role } from '../../shared/contract/common.js'
import type { DirectoryAnswer, ReferencesAnswer } from '../../shared/directory/records.js'
import { periods } from '../../shared/ledger/period.js'

/**
 * The form of `shared/directory/records.ts`. The control plane is agh too, but a broken answer that got into memory
 * would break every call of a team: it is refused here and the last good one goes on serving.
 */
const amount = z.number().nonnegative()

const credential = z.object({
  id: z.string(),
  teamId: z.string(),
  kind: z.enum(['virtual_key', 'api_key', 'team_api_key', 'session']),
  userId: z.string().nullable(),
  role: role.nullable(),
  allowedModels: z.array(z.string()).nullable(),
  allowedProviders: z.array(providerKind).nullable(),
  maxRpm: amount.nullable(),
  maxTpm: amount.nullable(),
  cacheTtlSeconds: amount.nullable(),
})

const connection = z.object({
  id: z.string(),
  provider: providerKind,
  baseUrl: z.string(),
  sealedKey: z.string(),
})

const model = z.object({
  id: z.string(),
  publicName: z.string(),
  connectionId: z.string(),
  upstreamModel: z.string(),
  pricing: z
    .object({
      inputPerMTok: amount,
      outputPerMTok: amount,
      cachedInputPerMTok: amount.nullable(),
      cacheWritePerMTok: amount.nullable(),
    })
    .nullable(),
  maxOutputTokens: amount.nullable(),
  contextWindow: amount.nullable(),
  createdAtMs: z.number(),
  updatedAtMs: z.number(),
})

const team = z.object({
  teamId: z.string(),
  epoch: z.number().int().nonnegative(),
  capturePayloads: z.boolean(),
  redactKeys: z.array(z.string()),
  connections: z.array(connection),
  models: z.array(model),
  budgets: z.array(
    z.object({
      id: z.string(),
      virtualKeyId: z.string().nullable(),
      period: z.enum(periods),
      capNano: z.number().int().nonnegative(),
    }),
  ),
})

export const directoryAnswer = z.object({
  credential: credential.nullable(),
  team: team.nullable(),
}) satisfies z.ZodType<DirectoryAnswer>

const missing = z.object({ missing: z.string() })

const toolDefinition = z.object({
  type: z.literal('function'),
  function: z.object({
    name: z.string(),
    description: z.string().optional(),
    parameters: z.record(z.string(), z.unknown()),
  }),
})

const prompt = z.object({
  promptId: z.string(),
  versionId: z.string(),
  versionNumber: z.number().int(),
  model: z.string().nullable(),
  messages: z.array(
    z.object({
      role: z.string(),
      content: z.string(),
      cache_control: z.object({ type: z.literal('ephemeral') }).optional(),
    }),
  ),
  tools: z.array(toolDefinition),
})

export const referencesAnswer = z.object({
  prompt: z.union([prompt, missing]).nullable(),
  tools: z.array(z.union([toolDefinition, missing])),
  promptVersionKnown: z.boolean().nullable(),
}) satisfies z.ZodType<ReferencesAnswer>
