import { createHmac, timingSafeEqual } from 'node:crypto'
import { isUuid } from '../../shared/contract/common.js'
import { type NotificationCategory, notificationCategory } from '../../shared/contract/notifications.js'
import { deriveSecret } from '../../shared/secrets/derive.js'
import type { Deps } from '../deps.js'

/** The one thing that a token allows: switching off one category for one person in one team. It never expires. */
export interface Subscription {
  userId: string
  teamId: string
  category: NotificationCategory
}

/** The link of a mail, also for its `List-Unsubscribe` header. */
export function unsubscribeUrl({ config }: Pick<Deps, 'config'>, subscription: Subscription): string {
  const { userId, teamId, category } = subscription
  const signature = sign(config.AGH_SECRET, subscription).toString('base64url')
  return `${config.appUrl}/api/v1/email/unsubscribe?token=${userId}.${teamId}.${category}.${signature}`
}

/** @returns null for anything that `unsubscribeUrl` did not write. */
export function readUnsubscribeToken({ config }: Pick<Deps, 'config'>, token: unknown): Subscription | null {
  if (typeof token !== 'string') return null
  const [userId = '', teamId = '', name, signature, ...rest] = token.split('.')
  const category = notificationCategory.safeParse(name)
  if (!isUuid(userId) || !isUuid(teamId) || !category.success || signature === undefined || rest.length > 0) {
    return null
  }
  const subscription = { userId, teamId, category: category.data }
  const given = Buffer.from(signature, 'base64url')
  const own = sign(config.AGH_SECRET, subscription)
  return given.length === own.length && timingSafeEqual(given, own) ? subscription : null
}

const sign = (aghSecret: string, { userId, teamId, category }: Subscription): Buffer =>
  createHmac('sha256', deriveSecret(aghSecret, 'unsubscribe'))
    .update(`unsub|${userId}|${teamId}|${category}|v1`)
    .digest()
