import { periodKey } from '../../shared/ledger/period.js'
import { nanoFromUsd, usdFromNano } from '../../shared/money/nano.js'
import { inTransaction } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { countersOf } from '../ledger/truth.js'
import {
  type Alert,
  type AlertableBudget,
  insertAlert,
  listAlertableBudgets,
  type Threshold,
  untoldAlerts,
} from './budget-queries.js'
import { type Notice, usdWords } from './compose.js'
import { notify } from './notify.js'

type AlertDeps = Pick<Deps, 'sql' | 'config' | 'jobs' | 'now'>

/** Budgets of one statement: a few milliseconds. */
const PAGE = 200
/** Charges arrive after their calls: shortly after midnight, yesterday's budgets are looked at once more. */
const LATE_MS = 600_000
const THRESHOLDS: readonly Threshold[] = [80, 100]

/**
 * Mails owners and admins when a budget has used 80 percent of its cap, and when it is exhausted; each once per budget
 * and period, however often and by however many processes it is asked (spec 1, Events).
 *
 * What counts is the charge rows, not the ledger: a threshold is told when the spend behind it is safe on disk.
 *
 * @param teamIds null: every team.
 */
export async function alertBudgets(deps: AlertDeps, teamIds: readonly string[] | null): Promise<void> {
  let last: AlertableBudget | null = null
  for (;;) {
    const page: AlertableBudget[] = await listAlertableBudgets(deps.sql, teamIds, last, PAGE)
    const nowMs = deps.now()
    const ending = page.filter(budget => hasEnded(budget, nowMs - LATE_MS, nowMs))
    const crossed = [
      ...(await crossings(deps, ending, nowMs - LATE_MS)),
      ...(await crossings(deps, page, nowMs)),
    ]
    const alerts = crossed.map(({ alert }) => alert)
    const untold = new Set((await untoldAlerts(deps.sql, alerts)).map(nameOf))
    for (const crossing of crossed) if (untold.has(nameOf(crossing.alert))) await tell(deps, crossing)
    if (page.length < PAGE) return
    last = page.at(-1) ?? null
  }
}

/**
 * As `alertBudgets`, for teams whose charges were stored just now. A failure is logged and no more: the charges are
 * stored, and the job of each minute looks again.
 */
export async function alertAfterCharges(
  deps: AlertDeps & Pick<Deps, 'log'>,
  teamIds: readonly string[],
): Promise<void> {
  if (teamIds.length === 0) return
  try {
    await alertBudgets(deps, teamIds)
  } catch (error) {
    deps.log.warn({ err: error }, 'budget alerts could not be checked; the next minute tries again')
  }
}

/** Whether a period of the budget ended between two instants, the first of which it has seen. */
const hasEnded = ({ period, createdAt }: AlertableBudget, fromMs: number, untilMs: number): boolean =>
  createdAt.getTime() <= fromMs && periodKey(period, fromMs) !== periodKey(period, untilMs)

interface Crossing {
  alert: Alert
  budget: AlertableBudget
  spentNano: number
}

const nameOf = ({ budgetId, periodKey, threshold }: Alert) => `${budgetId} ${periodKey} ${threshold}`

async function crossings(
  deps: AlertDeps,
  budgets: readonly AlertableBudget[],
  atMs: number,
): Promise<Crossing[]> {
  const counters = await countersOf(deps, budgets, atMs)
  return budgets.flatMap((budget, i) => {
    const { periodKey: key = '', settledNano = 0 } = counters[i] ?? {}
    // A limit has 4 decimals, so a hundredth of it is whole nano-dollars.
    const hundredth = nanoFromUsd(Number(budget.limitUsd)) / 100
    return THRESHOLDS.filter(threshold => settledNano >= hundredth * threshold).map(threshold => ({
      alert: { teamId: budget.teamId, budgetId: budget.id, periodKey: key, threshold },
      budget,
      spentNano: settledNano,
    }))
  })
}

async function tell(deps: AlertDeps, { alert, budget, spentNano }: Crossing): Promise<void> {
  await inTransaction(deps.sql, async tx => {
    if (!(await insertAlert(tx, alert, new Date(deps.now())))) return
    const notice = noticeOf(budget, alert.threshold, spentNano)
    await notify(deps, tx, budget.teamId, 'budget_alerts', 'managers', notice)
  })
}

const periodNames = { day: 'daily', week: 'weekly', month: 'monthly', total: 'total' }

function noticeOf(budget: AlertableBudget, threshold: Threshold, spentNano: number): Notice {
  const { teamName, keyName } = budget
  const scope = keyName === null ? 'of the team' : `of the virtual key "${keyName}"`
  const name = `${periodNames[budget.period]} budget ${scope}`
  const facts: Notice['facts'] = [
    ['Spent', usdWords(usdFromNano(spentNano))],
    ['Limit', usdWords(Number(budget.limitUsd))],
  ]
  if (threshold === 80) {
    return {
      subject: `Budget alert: 80% used in ${teamName} on agh`,
      paragraphs: [`The ${name} in "${teamName}" has used 80 percent of its limit.`],
      facts,
    }
  }
  return {
    subject: `Budget exhausted in ${teamName} on agh`,
    paragraphs: [
      `The ${name} in "${teamName}" is exhausted.`,
      `Calls that it covers are refused until ${budget.period === 'total' ? 'it is raised' : 'it is raised or its period ends'}.`,
    ],
    facts,
  }
}
