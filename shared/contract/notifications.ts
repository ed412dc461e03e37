import { z } from 'zod'
import { endpoint } from './endpoint.js'

/** What a person can switch off per team; nothing stored means switched on (spec 1, Notification preference). */
export const notificationCategories = ['budget_alerts', 'eval_runs', 'membership', 'weekly_digest'] as const
export const notificationCategory = z.enum(notificationCategories)
export type NotificationCategory = z.infer<typeof notificationCategory>

/** Always all four. */
const preferences = z.object({ preferences: z.record(notificationCategory, z.boolean()) })

/** Whatever stands there is answered alike, so nothing is checked here. */
const tokenQuery = z.object({ token: z.union([z.string(), z.array(z.string())]).optional() })

const group = 'notifications'

export const getPreferences = endpoint({
  method: 'GET',
  path: '/notifications/preferences',
  summary: 'Which mails the caller gets about the active team.',
  group,
  access: 'person',
  response: preferences,
})

export const updatePreference = endpoint({
  method: 'PATCH',
  path: '/notifications/preferences',
  summary: 'Switches one category on or off for the caller in the active team.',
  group,
  access: 'person',
  body: z.object({ category: notificationCategory, enabled: z.boolean() }),
  response: preferences,
})

export const unsubscribe = endpoint({
  method: 'POST',
  path: '/email/unsubscribe',
  summary: 'Switches off the category that the link of a mail names; the answer is the same for every token.',
  group,
  access: 'public',
  query: tokenQuery,
})

export const showUnsubscribe = endpoint({
  method: 'GET',
  path: '/email/unsubscribe',
  summary: 'An HTML page with a button that unsubscribes; opening it changes nothing.',
  group,
  access: 'public',
  query: tokenQuery,
  status: 200,
})
