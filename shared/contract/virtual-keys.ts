import { z } from 'zod'
import { id, idParams, providerKind, timestamp } from './common.js'
import { endpoint } from './endpoint.js'

const limit = z.number().int().min(1).max(2_147_483_647)

const fields = {
  id,
  name: z.string(),
  keyLastFour: z.string(),
  /** Public names; null: every model, an empty list: none. */
  allowedModels: z.array(z.string()).nullable(),
  allowedProviders: z.array(providerKind).nullable(),
  maxRpm: limit.nullable(),
  maxTpm: limit.nullable(),
  cacheTtlSeconds: limit.nullable(),
  createdAt: timestamp,
}

/** Spec 3, virtual key. */
export const virtualKey = z.object({ ...fields, revokedAt: timestamp.nullable() })
/** The only answer that holds the key itself. */
export const createdVirtualKey = z.object({ ...fields, key: z.string() })

const name = z.string().trim().min(1).max(200)
const settings = {
  allowedModels: z.array(z.string().min(1).max(128)).max(1000).nullable().optional(),
  allowedProviders: z.array(providerKind).max(100).nullable().optional(),
  maxRpm: limit.nullable().optional(),
  maxTpm: limit.nullable().optional(),
  cacheTtlSeconds: limit.nullable().optional(),
}

const group = 'virtual keys'

export const createVirtualKey = endpoint({
  method: 'POST',
  path: '/gateway/keys',
  summary: 'Mints a virtual key; the key itself is in this answer only.',
  group,
  access: 'manager',
  body: z.object({ name, ...settings }),
  status: 201,
  response: createdVirtualKey,
})

export const listVirtualKeys = endpoint({
  method: 'GET',
  path: '/gateway/keys',
  summary: 'The team’s virtual keys, active and revoked, newest first.',
  group,
  access: 'member',
  response: z.array(virtualKey),
})

export const updateVirtualKey = endpoint({
  method: 'PATCH',
  path: '/gateway/keys/:id',
  summary: 'Changes a virtual key’s name, scope or limits; null clears.',
  group,
  access: 'manager',
  params: idParams,
  body: z
    .object({ name: name.optional(), ...settings })
    .refine(body => Object.values(body).some(value => value !== undefined), {
      message:
        'At least one of name, allowedModels, allowedProviders, maxRpm, maxTpm or cacheTtlSeconds must be provided.',
    }),
  response: virtualKey,
})

export const revokeVirtualKey = endpoint({
  method: 'DELETE',
  path: '/gateway/keys/:id',
  summary: 'Revokes a virtual key: it stops with the next call.',
  group,
  access: 'manager',
  params: idParams,
})
