import type { BudgetCounter } from '../../shared/ledger/ledger.js'
import type { Deps } from '../deps.js'
import { findTeamBudgets, type TeamBudget } from './queries.js'
import { countersOf } from './truth.js'

/**
 * The ledger's clock decides which period a call falls into, and it may differ from ours: near a boundary the periods
 * on both sides are seeded.
 */
const CLOCK_TOLERANCE_MS = 120_000

/** Fills the counters of a team's budgets that the ledger does not hold. @returns how many were offered. */
export async function seedTeam(deps: Pick<Deps, 'sql' | 'ledger' | 'now'>, teamId: string): Promise<number> {
  return seedBudgets(deps, teamId, await findTeamBudgets(deps.sql, teamId))
}

export async function seedBudgets(
  deps: Pick<Deps, 'sql' | 'ledger' | 'now'>,
  teamId: string,
  budgets: readonly TeamBudget[],
): Promise<number> {
  const counters = new Map<string, BudgetCounter>()
  // Oldest first: the ledger keeps the newest two periods that it was given.
  for (const shiftMs of [-CLOCK_TOLERANCE_MS, 0, CLOCK_TOLERANCE_MS]) {
    const missing = await countersOf(deps, budgets, deps.now() + shiftMs)
    for (const counter of missing) counters.set(`${counter.budgetId} ${counter.periodKey}`, counter)
  }
  await deps.ledger.seed(teamId, [...counters.values()])
  return counters.size
}
