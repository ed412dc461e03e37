import type { Period } from '../../../shared/ledger/period.js'
import type { Sql } from '../../db/sql.js'

export interface BudgetRow {
  id: string
  virtualKeyId: string | null
  period: Period
  limitUsd: number
  createdBy: string | null
  createdAt: Date
  updatedAt: Date
}

/** `limit_usd` has 4 decimals and at most 8 digits before them: exact enough as a double to print back unchanged. */
type StoredRow = Omit<BudgetRow, 'limitUsd'> & { limitUsd: string }

const columns = (sql: Sql) => sql`id, virtual_key_id, period, limit_usd, created_by, created_at, updated_at`
const budgetRow = (row: StoredRow): BudgetRow => ({ ...row, limitUsd: Number(row.limitUsd) })

/** PostgreSQL rounds the limit to 4 decimals. @throws the driver's error when scope and period are taken (unique). */
export async function insertBudget(sql: Sql, teamId: string, row: BudgetRow): Promise<BudgetRow> {
  const [stored] = await sql<StoredRow[]>`
    insert into budgets (team_id, id, virtual_key_id, period, limit_usd, created_by, created_at, updated_at)
    values (${teamId}, ${row.id}, ${row.virtualKeyId}, ${row.period}, ${row.limitUsd}, ${row.createdBy},
      ${row.createdAt}, ${row.updatedAt})
    returning ${columns(sql)}`
  return budgetRow(stored as StoredRow)
}

/** Newest first. */
export async function listBudgetRows(sql: Sql, teamId: string): Promise<BudgetRow[]> {
  const rows = await sql<StoredRow[]>`
    select ${columns(sql)} from budgets where team_id = ${teamId} order by created_at desc, id desc`
  return rows.map(budgetRow)
}

/** The row stays as it is until the transaction ends. */
export async function lockBudget(sql: Sql, teamId: string, id: string): Promise<BudgetRow | null> {
  const [stored] = await sql<StoredRow[]>`
    select ${columns(sql)} from budgets where team_id = ${teamId} and id = ${id} for update`
  return stored === undefined ? null : budgetRow(stored)
}

/** @throws as insertBudget. */
export async function updateBudgetRow(
  sql: Sql,
  teamId: string,
  id: string,
  change: { limitUsd: number | undefined; period: Period | undefined; updatedAt: Date },
): Promise<BudgetRow> {
  const [stored] = await sql<StoredRow[]>`
    update budgets set limit_usd = coalesce(${change.limitUsd ?? null}::numeric, limit_usd),
      period = coalesce(${change.period ?? null}, period), updated_at = ${change.updatedAt}
    where team_id = ${teamId} and id = ${id}
    returning ${columns(sql)}`
  return budgetRow(stored as StoredRow)
}

/** @returns what was deleted; null: no such budget. */
export async function deleteBudgetRow(sql: Sql, teamId: string, id: string): Promise<BudgetRow | null> {
  const [stored] = await sql<StoredRow[]>`
    delete from budgets where team_id = ${teamId} and id = ${id} returning ${columns(sql)}`
  return stored === undefined ? null : budgetRow(stored)
}
