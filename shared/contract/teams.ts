import { z } from 'zod'
import { email, teamName } from './auth.js'
import { id, idParams, role, timestamp } from './common.js'
import { endpoint } from './endpoint.js'

export const team = z.object({ id, name: z.string(), createdAt: timestamp })

export const member = z.object({
  userId: id,
  email: z.string(),
  name: z.string().nullable(),
  role,
  joinedAt: timestamp,
})

/** A pending invite. The link is in the answer of the create call alone: only its hash is stored. */
export const invite = z.object({ id, email: z.string(), role, createdAt: timestamp, expiresAt: timestamp })

const memberParams = z.object({ id: z.string(), userId: z.string() })
const group = 'teams'

export const getTeam = endpoint({
  method: 'GET',
  path: '/teams/:id',
  summary: 'The caller’s team.',
  group,
  access: 'member',
  params: idParams,
  response: team,
})

export const updateTeam = endpoint({
  method: 'PATCH',
  path: '/teams/:id',
  summary: 'Rename the team.',
  group,
  access: 'manager',
  params: idParams,
  body: z.object({ name: teamName }),
  response: team,
})

export const listMembers = endpoint({
  method: 'GET',
  path: '/teams/:id/members',
  summary: 'The members of the team, earliest first.',
  group,
  access: 'member',
  params: idParams,
  response: z.object({ data: z.array(member) }),
})

export const updateMember = endpoint({
  method: 'PATCH',
  path: '/teams/:id/members/:userId',
  summary: 'Change a member’s role; an admin may set editor and viewer.',
  group,
  access: 'manager',
  params: memberParams,
  body: z.object({ role }),
  response: member,
})

export const removeMember = endpoint({
  method: 'DELETE',
  path: '/teams/:id/members/:userId',
  summary: 'Remove a member, or leave.',
  group,
  access: 'person',
  params: memberParams,
})

export const createInvite = endpoint({
  method: 'POST',
  path: '/teams/:id/invites',
  summary: 'Invite a person by email.',
  group,
  access: 'manager',
  params: idParams,
  body: z.object({ email, role }),
  status: 201,
  response: z.object({ id, email: z.string(), role, url: z.string(), expiresAt: timestamp }),
})

export const listInvites = endpoint({
  method: 'GET',
  path: '/teams/:id/invites',
  summary: 'Pending invites, newest first.',
  group,
  access: 'manager',
  params: idParams,
  response: z.array(invite),
})

export const deleteInvite = endpoint({
  method: 'DELETE',
  path: '/teams/:id/invites/:inviteId',
  summary: 'Withdraw an invite.',
  group,
  access: 'manager',
  params: z.object({ id: z.string(), inviteId: z.string() }),
})
