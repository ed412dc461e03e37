import type { FastifyInstance } from 'fastify'
import * as contract from '../../shared/contract/notifications.js'
import type { Principal } from '../access/principal.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { listPreferences, setPreference } from './queries.js'
import { unsubscribePage, unsubscribePageHeaders } from './unsubscribe-page.js'
import { readUnsubscribeToken } from './unsubscribe-token.js'

/** Notification preferences and the unsubscribe link (spec 1, Notifications). */
export function registerNotifications(app: FastifyInstance, deps: Deps): void {
  route(app, deps, contract.getPreferences, ({ principal }) => effective(deps, principal))

  route(app, deps, contract.updatePreference, async ({ principal, body }) => {
    const subscription = { ...personOf(principal), category: body.category }
    await setPreference(deps.sql, subscription, body.enabled, new Date(deps.now()))
    return effective(deps, principal)
  })

  route(app, deps, contract.unsubscribe, async ({ query }) => {
    const subscription = readUnsubscribeToken(deps, query.token)
    // Of somebody who left the team nothing is stored either: `setPreference` looks for the membership.
    if (subscription !== null) await setPreference(deps.sql, subscription, false, new Date(deps.now()))
  })

  route(app, deps, contract.showUnsubscribe, ({ reply }) => {
    reply.headers(unsubscribePageHeaders).send(unsubscribePage)
  })
}

/** `person` endpoints have one. */
const personOf = ({ teamId, userId }: Principal) => ({ teamId, userId: userId ?? '' })

async function effective(deps: Deps, principal: Principal) {
  const stored = await listPreferences(deps.sql, personOf(principal))
  const enabled = new Map(stored.map(row => [row.category, row.enabled]))
  const isOn = (category: contract.NotificationCategory) => enabled.get(category) ?? true
  return {
    preferences: {
      budget_alerts: isOn('budget_alerts'),
      eval_runs: isOn('eval_runs'),
      membership: isOn('membership'),
      weekly_digest: isOn('weekly_digest'),
    },
  }
}
