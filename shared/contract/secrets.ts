import { z } from 'zod'
import { timestamp } from './common.js'
import { endpoint } from './endpoint.js'

/** A team secret as it is ever shown: without its value (spec 4, section 4). */
export const secret = z.object({ name: z.string(), updatedAt: timestamp })

const group = 'secrets'

export const setSecret = endpoint({
  method: 'PUT',
  path: '/secrets/:name',
  summary: 'Stores a secret for http executors, encrypted; its value is never returned.',
  group,
  access: 'manager',
  params: z.object({
    name: z.string().regex(/^[A-Z][A-Z0-9_]{0,63}$/, {
      message: 'A secret’s name must match ^[A-Z][A-Z0-9_]{0,63}$.',
    }),
  }),
  body: z.object({ value: z.string().min(1).max(16_384) }),
  response: secret,
})

export const listSecrets = endpoint({
  method: 'GET',
  path: '/secrets',
  summary: 'The names of the team’s secrets, in alphabetical order.',
  group,
  access: 'member',
  response: z.array(secret),
})

export const deleteSecret = endpoint({
  method: 'DELETE',
  path: '/secrets/:name',
  summary: 'Forgets a secret; tools that refer to it fail from then on.',
  group,
  access: 'manager',
  params: z.object({ name: z.string() }),
})
