import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { createBudget, deleteBudget, listBudgets, updateBudget } from '../../../shared/contract/budgets.js'
import { periodEndMs } from '../../../shared/ledger/period.js'
import { usdFromNano } from '../../../shared/money/nano.js'
import type { Deps } from '../../deps.js'
import { route } from '../../http/route.js'
import { spendOf } from '../../ledger/spend.js'
import { addBudget, changeBudget, removeBudget } from './change-budget.js'
import { type BudgetRow, listBudgetRows } from './queries.js'

/** Budgets (spec 3, budgets; spec 4, sections 5 and 9). */
export function registerBudgets(app: FastifyInstance, deps: Deps): void {
  route(app, deps, createBudget, async ({ body, principal }) => {
    const row = await addBudget(deps, { ...body, id: randomUUID() }, principal)
    return onlyOne(await shown(deps, principal.teamId, [row]))
  })

  route(app, deps, listBudgets, async ({ principal }) =>
    shown(deps, principal.teamId, await listBudgetRows(deps.sql, principal.teamId)),
  )

  route(app, deps, updateBudget, async ({ params, body, principal }) => {
    const row = await changeBudget(deps, principal, params.id, body)
    return onlyOne(await shown(deps, principal.teamId, [row]))
  })

  route(app, deps, deleteBudget, async ({ params, principal }) => {
    await removeBudget(deps, principal, params.id)
    return undefined
  })
}

/** Rows with what is live about them: spend and the next reset, which follow the clock, not the row. */
async function shown(deps: Deps, teamId: string, rows: BudgetRow[]) {
  const spend = await spendOf(deps, teamId, rows)
  const now = deps.now()
  return rows.map(row => {
    const resetsAtMs = periodEndMs(row.period, now)
    return {
      ...row,
      spendUsd: usdFromNano(spend.get(row.id) ?? 0),
      resetsAt: resetsAtMs === null ? null : new Date(resetsAtMs).toISOString(),
      createdAt: row.createdAt.toISOString(),
      updatedAt: row.updatedAt.toISOString(),
    }
  })
}

function onlyOne<T>(list: T[]): T {
  const [item] = list
  if (item === undefined) throw new Error('One row was written and none shown.')
  return item
}
