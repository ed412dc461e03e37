import { setTimeout as wait } from 'node:timers/promises'
import { type BudgetCounter, LedgerUnavailable } from '../../shared/ledger/ledger.js'
import type { Deps } from '../deps.js'
import { listAllBudgets, type TeamBudget } from './queries.js'
import { countersOf } from './truth.js'

/** Budgets of one statement: a few milliseconds. */
const PAGE = 200
/**
 * Between reading the charges and raising the counters. A call appends its charge and settles at once, within the
 * ledger's deadline of 250 ms; a charge that was read this long ago has therefore been settled, or its settle was lost.
 * Without the wait a charge could be counted by the raise and once more by its own settle.
 */
export const SETTLE_GRACE_MS = 3_000

/**
 * Raises every counter that is lower than the charge rows say: after a loss of the ledger's data, and for settles that
 * were lost or came after their hold had expired. Each minute; so the figures are exact within two minutes.
 *
 * A counter is never lowered here. One that is above the charge rows is usually right: the rows lag by what proxies
 * have not shipped, and only the proxies know how much that is.
 *
 * Failure stance: when the ledger is away there is nothing to raise; the next minute tries again.
 */
export async function reconcileLedger(
  deps: Pick<Deps, 'sql' | 'ledger' | 'now' | 'log'>,
  graceMs: number = SETTLE_GRACE_MS,
): Promise<void> {
  const truth = await readTruth(deps)
  await wait(graceMs)
  try {
    for (const [teamId, counters] of truth) await deps.ledger.raise(teamId, counters)
  } catch (error) {
    if (!(error instanceof LedgerUnavailable)) throw error
    deps.log.warn({ err: error }, 'the ledger could not be reconciled; the next minute tries again')
  }
}

async function readTruth(deps: Pick<Deps, 'sql' | 'now'>): Promise<Map<string, BudgetCounter[]>> {
  const truth = new Map<string, BudgetCounter[]>()
  let last: TeamBudget | null = null
  for (;;) {
    const page: TeamBudget[] = await listAllBudgets(deps.sql, last, PAGE)
    const counters = await countersOf(deps, page, deps.now())
    for (const [i, budget] of page.entries()) {
      const ofTeam = truth.get(budget.teamId) ?? []
      ofTeam.push(counters[i] as BudgetCounter)
      truth.set(budget.teamId, ofTeam)
    }
    if (page.length < PAGE) return truth
    last = page.at(-1) ?? null
  }
}
