import { z } from 'zod'
import { id, role } from './common.js'
import { endpoint } from './endpoint.js'

/** Looser than RFC 5321 and tighter than a typo: `owner@localhost` is an address too. Compared in lower case. */
export const email = z
  .string()
  .trim()
  .toLowerCase()
  .max(254)
  .regex(/^[^\s@]+@[^\s@]+$/, 'Invalid email')

/** At most 1,024 characters, so that nobody buys hashing time with a long one. */
export const newPassword = z.string().min(10).max(1024)
export const personName = z.string().trim().min(1).max(200)
export const teamName = z.string().trim().min(1).max(200)

export const user = z.object({ id, email: z.string(), name: z.string().nullable() })
/** `role` is the caller's role in the team; null for a team-scoped key, which holds none. */
export const teamOfCaller = z.object({ id, name: z.string(), role: role.nullable() })

const userAndTeam = z.object({ user, team: teamOfCaller })

/** `user` is null for a team-scoped key. */
export const whoAmI = z.object({
  user: user.nullable(),
  team: teamOfCaller,
  teams: z.array(teamOfCaller),
  via: z.enum(['session', 'api_key', 'team_api_key']),
})

const group = 'identity'

export const signUp = endpoint({
  method: 'POST',
  path: '/auth/signup',
  summary: 'Create an account and a team, and sign in.',
  group,
  access: 'public',
  body: z.object({
    email,
    password: newPassword,
    name: personName.optional(),
    teamName: teamName.optional(),
  }),
  status: 201,
  response: userAndTeam,
})

export const signIn = endpoint({
  method: 'POST',
  path: '/auth/login',
  summary: 'Sign in: sets the session cookie.',
  group,
  access: 'public',
  body: z.object({ email: z.string(), password: z.string() }),
  response: z.object({ user, team: teamOfCaller, teams: z.array(teamOfCaller) }),
})

export const signOut = endpoint({
  method: 'POST',
  path: '/auth/logout',
  summary: 'Sign out: revokes the session.',
  group,
  access: 'session',
})

export const getMe = endpoint({
  method: 'GET',
  path: '/auth/me',
  summary: 'Who the credential is.',
  group,
  access: 'member',
  response: whoAmI,
})

export const switchTeam = endpoint({
  method: 'POST',
  path: '/auth/switch-team',
  summary: 'Make another of one’s teams the session’s active team.',
  group,
  access: 'session',
  body: z.object({ teamId: z.string() }),
  response: whoAmI,
})

export const acceptInvite = endpoint({
  method: 'POST',
  path: '/invites/:token/accept',
  summary:
    'Join a team: as a new user with a password, as the signed-in user, or with the account’s password.',
  group,
  access: 'public',
  params: z.object({ token: z.string() }),
  body: z.object({ name: personName.optional(), password: newPassword.optional() }),
  response: userAndTeam,
})
