import type { BudgetCounter } from '../../shared/ledger/ledger.js'
import { periodEndMs, periodKey, periodStartMs } from '../../shared/ledger/period.js'
import type { Deps } from '../deps.js'
import { type SpendRange, sumCharges, type TeamBudget } from './queries.js'

const DAY_MS = 86_400_000
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

/**
 * What the charge rows say about budgets, each in its period at `atMs`: the truth that the ledger caches. A new budget
 * counts what its scope has already spent in the current day, week or month; `total` counts from the budget's creation
 * (spec 4, section 9). A charge belongs to the periods of its admission, whenever it arrived.
 */
export async function countersOf(
  deps: Pick<Deps, 'sql'>,
  budgets: readonly TeamBudget[],
  atMs: number,
): Promise<BudgetCounter[]> {
  if (budgets.length === 0) return []
  const sums = await sumCharges(
    deps.sql,
    budgets.map(budget => rangeOf(budget, atMs)),
  )
  return budgets.map((budget, i) => ({
    budgetId: budget.id,
    periodKey: periodKey(budget.period, atMs),
    settledNano: sums[i] ?? 0,
  }))
}

function rangeOf(budget: TeamBudget, atMs: number): SpendRange {
  const { teamId, virtualKeyId, period, createdAt } = budget
  const startMs = periodStartMs(period, atMs)
  const endMs = periodEndMs(period, atMs)
  if (startMs === null || endMs === null)
    return {
      teamId,
      virtualKeyId,
      fromDay: dayOf(createdAt.getTime() + DAY_MS),
      untilDay: null,
      since: createdAt,
    }
  return { teamId, virtualKeyId, fromDay: dayOf(startMs), untilDay: dayOf(endMs), since: null }
}
