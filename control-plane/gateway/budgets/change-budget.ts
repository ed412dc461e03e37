import { isUuid } from '../../../shared/contract/common.js'
import { AppError, notFound } from '../../../shared/errors/app-error.js'
import { LedgerUnavailable } from '../../../shared/ledger/ledger.js'
import type { Period } from '../../../shared/ledger/period.js'
import type { Principal } from '../../access/principal.js'
import type { Sql } from '../../db/sql.js'
import type { Deps } from '../../deps.js'
import { countersOf } from '../../ledger/truth.js'
import { isUniqueViolation } from '../constraints.js'
import { changeTeam } from '../publish.js'
import { lockActiveVirtualKey } from '../virtual-keys/queries.js'
import { type BudgetRow, deleteBudgetRow, insertBudget, updateBudgetRow } from './queries.js'

interface BudgetInput {
  id: string
  period: Period
  limitUsd: number
  virtualKeyId: string | null
}

/** @throws AppError NOT_FOUND `Virtual key not found.`, a revoked key included; BUDGET_EXISTS. */
export async function addBudget(
  deps: Deps,
  input: BudgetInput,
  creator: Pick<Principal, 'teamId' | 'userId'>,
): Promise<BudgetRow> {
  const { teamId } = creator
  const at = new Date(deps.now())
  return written(deps, teamId, async tx => {
    if (input.virtualKeyId !== null) await requireVirtualKey(tx, teamId, input.virtualKeyId)
    return insertBudget(tx, teamId, { ...input, createdBy: creator.userId, createdAt: at, updatedAt: at })
  })
}

/** @throws AppError NOT_FOUND; BUDGET_EXISTS when the scope has a budget of that period (spec 4, section 9). */
export async function changeBudget(
  deps: Deps,
  teamId: string,
  id: string,
  patch: { limitUsd?: number | undefined; period?: Period | undefined },
): Promise<BudgetRow> {
  if (!isUuid(id)) throw notFound('Budget')
  const change = { limitUsd: patch.limitUsd, period: patch.period, updatedAt: new Date(deps.now()) }
  return written(deps, teamId, async tx => {
    const row = await updateBudgetRow(tx, teamId, id, change)
    if (row === null) throw notFound('Budget')
    if (patch.period !== undefined) await raiseCounter(deps, tx, teamId, row)
    return row
  })
}

/**
 * A budget that comes back to a period which it had before finds the counter of that time, which calls have passed by
 * since: it is raised to the charges before the change holds. A counter that is absent is seeded by the next call.
 */
async function raiseCounter(deps: Deps, tx: Sql, teamId: string, row: BudgetRow): Promise<void> {
  const counters = await countersOf({ sql: tx }, [{ ...row, teamId }], deps.now())
  try {
    await deps.ledger.raise(teamId, counters)
  } catch (error) {
    // The reconciler raises it within a minute of the ledger's return.
    if (!(error instanceof LedgerUnavailable)) throw error
  }
}

/** @throws AppError NOT_FOUND. */
export async function removeBudget(deps: Deps, teamId: string, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound('Budget')
  await changeTeam(deps, teamId, async tx => {
    if (!(await deleteBudgetRow(tx, teamId, id))) throw notFound('Budget')
  })
}

async function requireVirtualKey(tx: Sql, teamId: string, id: string): Promise<void> {
  if (!isUuid(id) || (await lockActiveVirtualKey(tx, teamId, id)) === null) throw notFound('Virtual key')
}

async function written(
  deps: Deps,
  teamId: string,
  write: (tx: Sql) => Promise<BudgetRow>,
): Promise<BudgetRow> {
  try {
    return await changeTeam(deps, teamId, write)
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
    throw new AppError('BUDGET_EXISTS', 'A budget for this scope and period already exists.')
  }
}
