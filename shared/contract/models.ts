import { z } from 'zod'
import { id, idParams, providerKind, timestamp, usd } from './common.js'
import { endpoint } from './endpoint.js'

const price = usd.min(0).max(1_000_000)

/** USD per million tokens. Without a cache price, cached tokens cost what input costs. */
export const modelPricing = z.object({
  inputPerMTok: price,
  outputPerMTok: price,
  cachedInputPerMTok: price.nullable(),
  cacheWritePerMTok: price.nullable(),
})
export type ModelPricing = z.output<typeof modelPricing>

/** The same everywhere; the shape that OpenAI clients expect and the registry's own fields (spec 4, section 9). */
export const gatewayModel = z.object({
  /** The publicName. */
  id: z.string(),
  modelId: id,
  publicName: z.string(),
  object: z.literal('model'),
  /** Epoch seconds. */
  created: z.number().int(),
  owned_by: providerKind,
  connectionId: id,
  provider: providerKind,
  upstreamModel: z.string(),
  pricing: modelPricing.nullable(),
  maxOutputTokens: z.number().int().nullable(),
  contextWindow: z.number().int().nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
})

const publicName = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:/-]*$/)
const upstreamModel = z.string().trim().min(1).max(256)
const pricingInput = modelPricing.extend({
  cachedInputPerMTok: price.nullable().default(null),
  cacheWritePerMTok: price.nullable().default(null),
})
const tokenCount = z.number().int().min(1).max(2_147_483_647)

/** A price and limits left out are filled from the built-in table; null says that there are none. */
const described = {
  pricing: pricingInput.nullable().optional(),
  maxOutputTokens: tokenCount.nullable().optional(),
  contextWindow: tokenCount.nullable().optional(),
}

/** The uuid or the percent-encoded publicName. */
const modelParams = idParams
const group = 'models'

export const createModel = endpoint({
  method: 'POST',
  path: '/gateway/models',
  summary: 'Registers a model: a public name for a provider’s model on one connection.',
  group,
  access: 'manager',
  body: z.object({ publicName, connectionId: z.string(), upstreamModel, ...described }),
  status: 201,
  response: gatewayModel,
})

export const listModels = endpoint({
  method: 'GET',
  path: '/gateway/models',
  summary: 'The team’s models; a virtual key sees what it may call.',
  group,
  access: 'model-list',
  response: z.object({ object: z.literal('list'), data: z.array(gatewayModel) }),
})

export const getModel = endpoint({
  method: 'GET',
  path: '/gateway/models/:id',
  summary: 'One model, by uuid or percent-encoded publicName.',
  group,
  access: 'member',
  params: modelParams,
  response: gatewayModel,
})

export const updateModel = endpoint({
  method: 'PATCH',
  path: '/gateway/models/:id',
  summary: 'Changes a model; null clears its price or limits.',
  group,
  access: 'manager',
  params: modelParams,
  body: z
    .object({
      publicName: publicName.optional(),
      connectionId: z.string().optional(),
      upstreamModel: upstreamModel.optional(),
      ...described,
    })
    .refine(body => Object.values(body).some(value => value !== undefined), {
      message:
        'At least one of publicName, connectionId, upstreamModel, pricing, maxOutputTokens or contextWindow must be provided.',
    }),
  response: gatewayModel,
})

export const deleteModel = endpoint({
  method: 'DELETE',
  path: '/gateway/models/:id',
  summary: 'Takes a model out of the registry.',
  group,
  access: 'manager',
  params: modelParams,
})
