import type { Sql } from '../db/sql.js'
import type { TeamBudget } from '../ledger/queries.js'

export type Threshold = 80 | 100

/** A budget with what a mail about it says. */
export interface AlertableBudget extends TeamBudget {
  teamName: string
  /** null: team-wide. */
  keyName: string | null
  /** USD with 4 decimals, as text. */
  limitUsd: string
}

/** @param teamIds null: all teams, in pages after (`teamId`, `id`). A cap of zero is no news to whoever set it. */
export async function listAlertableBudgets(
  sql: Sql,
  teamIds: readonly string[] | null,
  after: Pick<TeamBudget, 'teamId' | 'id'> | null,
  limit: number,
): Promise<AlertableBudget[]> {
  const nil = '00000000-0000-0000-0000-000000000000'
  const ofTeams = teamIds === null ? sql`` : sql`and b.team_id = any(${[...teamIds]}::uuid[])`
  return sql<AlertableBudget[]>`
    select b.team_id, b.id, b.virtual_key_id, b.period, b.created_at, b.limit_usd, t.name as team_name,
      k.name as key_name
    from budgets b
    join teams t on t.id = b.team_id
    left join virtual_keys k on k.team_id = b.team_id and k.id = b.virtual_key_id
    where (b.team_id, b.id) > (${after?.teamId ?? nil}::uuid, ${after?.id ?? nil}::uuid) and b.limit_usd > 0
      ${ofTeams}
    order by b.team_id, b.id limit ${limit}`
}

export interface Alert {
  teamId: string
  budgetId: string
  periodKey: string
  threshold: Threshold
}

/** Those among the alerts that nobody was told of yet. */
export async function untoldAlerts(sql: Sql, alerts: readonly Alert[]): Promise<Alert[]> {
  if (alerts.length === 0) return []
  return sql<Alert[]>`
    select w."teamId" as team_id, w."budgetId" as budget_id, w."periodKey" as period_key, w.threshold
    from json_to_recordset(${JSON.stringify(alerts)}::text::json)
      as w ("teamId" uuid, "budgetId" uuid, "periodKey" text, threshold smallint)
    where not exists (
      select from budget_alerts a where a.team_id = w."teamId" and a.budget_id = w."budgetId"
        and a.period_key = w."periodKey" and a.threshold = w.threshold)`
}

/** @returns false: somebody else told it first, or the budget is gone. */
export async function insertAlert(tx: Sql, alert: Alert, at: Date): Promise<boolean> {
  const result = await tx`
    insert into budget_alerts (team_id, budget_id, period_key, threshold, alerted_at)
    select b.team_id, b.id, ${alert.periodKey}, ${alert.threshold}, ${at} from budgets b
    where b.team_id = ${alert.teamId} and b.id = ${alert.budgetId} for key share
    on conflict do nothing`
  return result.count === 1
}
