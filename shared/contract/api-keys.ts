import { z } from 'zod'
import { id, idParams, timestamp } from './common.js'
import { endpoint } from './endpoint.js'

const group = 'api keys'

export const createApiKey = endpoint({
  method: 'POST',
  path: '/api-keys',
  summary: 'Create an API key; the full key is in this answer alone. A team-scoped one needs owner or admin.',
  group,
  access: 'person',
  body: z.object({ name: z.string().trim().min(1).max(200), teamScoped: z.boolean().optional() }),
  status: 201,
  response: z.object({
    id,
    key: z.string(),
    name: z.string(),
    createdAt: timestamp,
    teamScoped: z.boolean(),
  }),
})

export const listApiKeys = endpoint({
  method: 'GET',
  path: '/api-keys',
  summary:
    'The active keys, newest first; a member who is neither owner nor admin sees the own personal ones.',
  group,
  access: 'member',
  response: z.array(
    z.object({ id, name: z.string(), lastFour: z.string(), createdAt: timestamp, teamScoped: z.boolean() }),
  ),
})

export const revokeApiKey = endpoint({
  method: 'DELETE',
  path: '/api-keys/:id',
  summary: 'Revoke a key: it stops authenticating at once.',
  group,
  access: 'person',
  params: idParams,
})
