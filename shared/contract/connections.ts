import { z } from 'zod'
import { id, idParams, providerKind, timestamp } from './common.js'
import { endpoint } from './endpoint.js'

/** Keys other than `base_url` are kept as sent. Spec 3, provider connection; spec 4, section 4. */
export const connectionConfig = z.looseObject({ base_url: z.string().optional() })
export type ConnectionConfig = z.output<typeof connectionConfig>

/** Masked for ever: the provider's key is never part of it. */
export const connection = z.object({
  id,
  provider: providerKind,
  label: z.string(),
  keyLastFour: z.string(),
  config: connectionConfig,
  createdBy: id.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
})

const label = z.string().trim().min(1).max(200)
/** Pasted keys come with white space around them; what is left goes into a header, so it is visible ASCII. */
const apiKey = z
  .string()
  .trim()
  .min(1)
  .max(4096)
  .regex(/^[\x21-\x7e]+$/)

const group = 'connections'

export const createConnection = endpoint({
  method: 'POST',
  path: '/gateway/connections',
  summary: 'Connects a provider account; its key is stored encrypted.',
  group,
  access: 'manager',
  body: z.object({ provider: providerKind, label, apiKey, config: connectionConfig.default({}) }),
  status: 201,
  response: connection,
})

export const listConnections = endpoint({
  method: 'GET',
  path: '/gateway/connections',
  summary: 'The team’s connections, newest first.',
  group,
  access: 'member',
  response: z.array(connection),
})

export const getConnection = endpoint({
  method: 'GET',
  path: '/gateway/connections/:id',
  summary: 'One connection, masked.',
  group,
  access: 'member',
  params: idParams,
  response: connection,
})

export const updateConnection = endpoint({
  method: 'PATCH',
  path: '/gateway/connections/:id',
  summary: 'Renames, reconfigures or rotates the key; another origin of base_url needs apiKey too.',
  group,
  access: 'manager',
  params: idParams,
  body: z
    .object({
      label: label.optional(),
      /** Replaces the stored config as a whole. */
      config: connectionConfig.optional(),
      apiKey: apiKey.optional(),
      /** Immutable: accepted only when it names the connection's own provider. */
      provider: providerKind.optional(),
    })
    .refine(body => body.label !== undefined || body.config !== undefined || body.apiKey !== undefined, {
      message: 'At least one of label, config or apiKey must be provided.',
    }),
  response: connection,
})

export const deleteConnection = endpoint({
  method: 'DELETE',
  path: '/gateway/connections/:id',
  summary: 'Deletes a connection that no model uses.',
  group,
  access: 'manager',
  params: idParams,
})
