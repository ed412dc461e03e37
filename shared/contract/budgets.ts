import { z } from 'zod'
import { periods } from '../ledger/period.js'
import { id, idParams, timestamp, usd } from './common.js'
import { endpoint } from './endpoint.js'

const period = z.enum(periods)
/** Kept with 4 decimals. The most that integer nano-dollars hold exactly; see money/nano.ts. */
const limitUsd = usd.min(0).max(9_000_000)

/** Spec 3, budget. */
export const budget = z.object({
  id,
  /** null: team-wide. */
  virtualKeyId: id.nullable(),
  period,
  limitUsd: usd,
  /** Live, exact to the nano-dollar. */
  spendUsd: usd,
  /** Start of the next period, UTC; null for `total`. */
  resetsAt: timestamp.nullable(),
  createdBy: id.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
})

const group = 'budgets'

export const createBudget = endpoint({
  method: 'POST',
  path: '/gateway/budgets',
  summary: 'Caps what the team or one virtual key may spend in a period.',
  group,
  access: 'manager',
  body: z.object({ period, limitUsd, virtualKeyId: z.string().nullable().default(null) }),
  status: 201,
  response: budget,
})

export const listBudgets = endpoint({
  method: 'GET',
  path: '/gateway/budgets',
  summary: 'The team’s budgets with live spend, newest first.',
  group,
  access: 'member',
  response: z.array(budget),
})

export const updateBudget = endpoint({
  method: 'PATCH',
  path: '/gateway/budgets/:id',
  summary: 'Changes a cap or its period; holds for the next call.',
  group,
  access: 'manager',
  params: idParams,
  body: z
    .object({ limitUsd: limitUsd.optional(), period: period.optional() })
    .refine(body => body.limitUsd !== undefined || body.period !== undefined, {
      message: 'At least one of limitUsd or period must be provided.',
    }),
  response: budget,
})

export const deleteBudget = endpoint({
  method: 'DELETE',
  path: '/gateway/budgets/:id',
  summary: 'Lifts a cap.',
  group,
  access: 'manager',
  params: idParams,
})
