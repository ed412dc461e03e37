import type { NotificationCategory } from '../../shared/contract/notifications.js'
import type { Sql } from '../db/sql.js'
import type { Subscription } from './unsubscribe-token.js'

/** The categories that a person has ever switched, in a team. */
export async function listPreferences(
  sql: Sql,
  { teamId, userId }: Pick<Subscription, 'teamId' | 'userId'>,
): Promise<{ category: NotificationCategory; enabled: boolean }[]> {
  return sql<{ category: NotificationCategory; enabled: boolean }[]>`
    select category, enabled from notification_preferences where team_id = ${teamId} and user_id = ${userId}`
}

/** Does nothing for somebody who is no member. */
export async function setPreference(
  sql: Sql,
  { teamId, userId, category }: Subscription,
  enabled: boolean,
  at: Date,
): Promise<void> {
  await sql`
    insert into notification_preferences (team_id, user_id, category, enabled, updated_at)
    select m.team_id, m.user_id, ${category}, ${enabled}, ${at} from members m
    where m.team_id = ${teamId} and m.user_id = ${userId}
    on conflict (team_id, user_id, category) do update
      set enabled = excluded.enabled, updated_at = excluded.updated_at`
}

export interface Recipient {
  userId: string
  email: string
}

/** Members who want mails of a category. @param only owners and admins, or one person. */
export async function listRecipients(
  sql: Sql,
  teamId: string,
  category: NotificationCategory,
  only: 'managers' | { userId: string },
): Promise<Recipient[]> {
  const who = only === 'managers' ? sql`m.role in ('owner', 'admin')` : sql`m.user_id = ${only.userId}`
  return sql<Recipient[]>`
    select m.user_id, u.email from members m
    join users u on u.id = m.user_id
    left join notification_preferences p
      on p.team_id = m.team_id and p.user_id = m.user_id and p.category = ${category}
    where m.team_id = ${teamId} and ${who} and coalesce(p.enabled, true)
    order by u.email`
}
