import type { Period } from '../../shared/ledger/period.js'
import type { Sql } from '../db/sql.js'

/** What decides which charges count against a budget. */
export interface BudgetScope {
  id: string
  /** null = team-wide. */
  virtualKeyId: string | null
  period: Period
  createdAt: Date
}

export interface TeamBudget extends BudgetScope {
  teamId: string
}

/** A stretch of charges of one budget's scope. Days are UTC dates, `YYYY-MM-DD`. */
export interface SpendRange {
  teamId: string
  /** null = every key. */
  virtualKeyId: string | null
  /** Whole days, from this one on. */
  fromDay: string
  /** The first day that no longer counts; null = no end. */
  untilDay: string | null
  /** Before `fromDay`, the charges admitted from this instant on; null = none. */
  since: Date | null
}

export async function findTeamBudgets(sql: Sql, teamId: string): Promise<TeamBudget[]> {
  return sql<TeamBudget[]>`
    select team_id, id, virtual_key_id, period, created_at from budgets where team_id = ${teamId} order by id`
}

/** Budgets of all teams, a page after (`teamId`, `id`) of the last one. */
export async function listAllBudgets(
  sql: Sql,
  after: Pick<TeamBudget, 'teamId' | 'id'> | null,
  limit: number,
): Promise<TeamBudget[]> {
  const nil = '00000000-0000-0000-0000-000000000000'
  return sql<TeamBudget[]>`
    select team_id, id, virtual_key_id, period, created_at from budgets
    where (team_id, id) > (${after?.teamId ?? nil}::uuid, ${after?.id ?? nil}::uuid)
    order by team_id, id limit ${limit}`
}

/**
 * Nano-dollars that each range has cost, in the order given. Days come from the daily sums that ingestion keeps; the
 * charges themselves are read for one partial day at most.
 */
export async function sumCharges(sql: Sql, ranges: readonly SpendRange[]): Promise<number[]> {
  const rows = await sql<{ nano: string }[]>`
    select
      coalesce((
        select sum(s.cost_nano) from spend_by_day s
        where s.team_id = r."teamId" and s.day >= r."fromDay" and s.day < coalesce(r."untilDay", 'infinity')
          and (r."virtualKeyId" is null or s.virtual_key_id = r."virtualKeyId")
      ), 0) + case when r.since is null then 0 else coalesce((
        select sum(c.cost_nano) from charges c
        where c.team_id = r."teamId" and c.admitted_at >= r.since
          and c.admitted_at < r."fromDay"::timestamp at time zone 'UTC'
          and (r."virtualKeyId" is null or c.virtual_key_id = r."virtualKeyId")
      ), 0) end as nano
    from rows from (json_to_recordset(${JSON.stringify(ranges)}::text::json) as (
      "teamId" uuid, "virtualKeyId" uuid, "fromDay" date, "untilDay" date, since timestamptz
    )) with ordinality as r ("teamId", "virtualKeyId", "fromDay", "untilDay", since, at)
    order by r.at`
  return rows.map(row => Number(row.nano))
}
