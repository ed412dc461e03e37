import { setTimeout as wait } from 'node:timers/promises'
import { isUuid } from '../../../shared/contract/common.js'
import { AppError, notFound } from '../../../shared/errors/app-error.js'
import { LedgerUnavailable } from '../../../shared/ledger/ledger.js'
import type { Period } from '../../../shared/ledger/period.js'
import { changedFields } from '../../audit/changed-fields.js'
import { type Actor, record } from '../../audit/record.js'
import type { Sql } from '../../db/sql.js'
import type { Deps } from '../../deps.js'
import { countersOf } from '../../ledger/truth.js'
import { isUniqueViolation } from '../constraints.js'
import { changeTeam } from '../publish.js'
import { lockActiveVirtualKey } from '../virtual-keys/queries.js'
import { type BudgetRow, deleteBudgetRow, insertBudget, lockBudget, updateBudgetRow } from './queries.js'

/**
 * A proxy ships the charge of an answered call within 200 ms, and its way into the rows takes some 20. A budget whose
 * period began before it is counted from those rows: without this pause every other one that followed a call at once
 * left that call out, until the reconciler's next minute.
 */
const ARRIVAL_MS = 500

const chargesOnTheirWay = async (period: Period | undefined): Promise<void> => {
  if (period !== undefined && period !== 'total') await wait(ARRIVAL_MS)
}

interface BudgetInput {
  id: string
  period: Period
  limitUsd: number
  virtualKeyId: string | null
}

/** @throws AppError NOT_FOUND `Virtual key not found.`, a revoked key included; BUDGET_EXISTS. */
export async function addBudget(deps: Deps, input: BudgetInput, actor: Actor): Promise<BudgetRow> {
  const { teamId } = actor
  await chargesOnTheirWay(input.period)
  const at = new Date(deps.now())
  return written(deps, teamId, async tx => {
    if (input.virtualKeyId !== null) await requireVirtualKey(tx, teamId, input.virtualKeyId)
    const row = await insertBudget(tx, teamId, {
      ...input,
      createdBy: actor.userId,
      createdAt: at,
      updatedAt: at,
    })
    await record(tx, actor, at.getTime(), 'budget_created', described(row))
    return row
  })
}

/** @throws AppError NOT_FOUND; BUDGET_EXISTS when the scope has a budget of that period (spec 4, section 9). */
export async function changeBudget(
  deps: Deps,
  actor: Actor,
  id: string,
  patch: { limitUsd?: number | undefined; period?: Period | undefined },
): Promise<BudgetRow> {
  if (!isUuid(id)) throw notFound('Budget')
  const { teamId } = actor
  await chargesOnTheirWay(patch.period)
  const at = new Date(deps.now())
  const change = { limitUsd: patch.limitUsd, period: patch.period, updatedAt: at }
  return written(deps, teamId, async tx => {
    const stored = await lockBudget(tx, teamId, id)
    if (stored === null) throw notFound('Budget')
    const row = await updateBudgetRow(tx, teamId, id, change)
    const changed = changedFields(stored, row, ['limitUsd', 'period'])
    const updated = { ...described(row), changed }
    if (changed.length > 0) await record(tx, actor, at.getTime(), 'budget_updated', updated)
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
export async function removeBudget(deps: Deps, actor: Actor, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound('Budget')
  const { teamId } = actor
  await changeTeam(deps, teamId, async tx => {
    const row = await deleteBudgetRow(tx, teamId, id)
    if (row === null) throw notFound('Budget')
    await record(tx, actor, deps.now(), 'budget_deleted', described(row))
  })
}

const described = ({ id, virtualKeyId, period, limitUsd }: BudgetRow) => ({
  budgetId: id,
  virtualKeyId,
  period,
  limitUsd,
})

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
