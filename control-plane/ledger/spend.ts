import { LedgerUnavailable } from '../../shared/ledger/ledger.js'
import type { Deps } from '../deps.js'
import type { BudgetScope } from './queries.js'
import { seedBudgets } from './seed.js'
import { countersOf } from './truth.js'

/**
 * Live spend of budgets in their current period, for GET budgets (spec 3, budgets). Exact to the nano-dollar.
 *
 * @returns budget id -> settled nano-dollars: from the ledger, which is seeded with what it lacks; while it is down,
 *   from the charge rows, which lag by what proxies have not shipped yet.
 */
export async function spendOf(
  deps: Pick<Deps, 'sql' | 'ledger' | 'now'>,
  teamId: string,
  budgets: readonly BudgetScope[],
): Promise<Map<string, number>> {
  const own = budgets.map(({ id, virtualKeyId, period, createdAt }) => ({
    teamId,
    id,
    virtualKeyId,
    period,
    createdAt,
  }))
  const spent = new Map<string, number>()
  let unknown = own
  try {
    const live = await deps.ledger.spend(
      teamId,
      own.map(({ id, period }) => ({ budgetId: id, period })),
    )
    unknown = own.filter((_budget, i) => live[i] == null)
    for (const [i, budget] of own.entries()) {
      const figures = live[i]
      if (figures != null) spent.set(budget.id, figures.settledNano)
    }
    if (unknown.length > 0) await seedBudgets(deps, teamId, unknown)
  } catch (error) {
    if (!(error instanceof LedgerUnavailable)) throw error
  }
  for (const counter of await countersOf(deps, unknown, deps.now()))
    spent.set(counter.budgetId, counter.settledNano)
  return spent
}
