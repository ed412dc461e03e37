import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import type { Test } from 'tap'
import { connectLedger, type LedgerOptions } from '../../../shared/ledger/connect.js'
import type {
  AdmitCall,
  BudgetLimit,
  BudgetSpend,
  Hold,
  Ledger,
  Verdict,
} from '../../../shared/ledger/ledger.js'
import { periodKey } from '../../../shared/ledger/period.js'
import type { LedgerTuning } from '../../../shared/ledger/redis-ledger.js'

export const silent = pino({ level: 'silent' })

/** How to reach a store; plain data, so that worker processes can be given it. */
export type Reach = Pick<LedgerOptions, 'redisUrl' | 'databaseUrl' | 'keyPrefix' | 'deadlineMs'>

/** The suite is about answers, not about speed: on a machine that runs other tests too an answer may take a while. */
export const PATIENT_MS = 10_000

/** The ledger under test. */
export interface Subject {
  reach: Reach
  /** On a connection of its own, closed at the end of the test. */
  connect(t: Test, tuning?: LedgerTuning): Promise<Ledger>
  /** On a connection that all of them share: cheap, for moving the clock in many steps. */
  at(tuning: LedgerTuning): Ledger
}

export async function connected(t: Test, reach: Reach, tuning: LedgerTuning = {}): Promise<Ledger> {
  const ledger = await connectLedger({ ...reach, ...tuning, log: silent })
  t.teardown(() => ledger.close())
  return ledger
}

/** A team of the test's own with one credential and the given caps, one budget for each. */
export interface Fixture {
  teamId: string
  credentialId: string
  budgets: BudgetLimit[]
  /** A call that costs 10 and 5 tokens at most, unless told otherwise. */
  call(change?: Partial<AdmitCall>): AdmitCall
  spend(ledger: Ledger): Promise<(BudgetSpend | null)[]>
}

/** Longest first: a test that runs over midnight should not see it. */
const periodsInTurn = ['total', 'month', 'week', 'day'] as const

export function fixture(...caps: number[]): Fixture {
  const teamId = randomUUID()
  const credentialId = randomUUID()
  const budgets = caps.map((capNano, i) => ({
    budgetId: randomUUID(),
    period: periodsInTurn[i % 4] ?? 'total',
    capNano,
  }))
  return {
    teamId,
    credentialId,
    budgets,
    call: change => ({
      requestId: randomUUID(),
      teamId,
      credentialId,
      estimateNano: 10,
      estimateTokens: 5,
      budgets,
      maxRpm: null,
      maxTpm: null,
      ...change,
    }),
    spend: ledger => ledger.spend(teamId, budgets),
  }
}

/** A fixture whose counters stand at 0 in the current periods. */
export async function seeded(ledger: Ledger, ...caps: number[]): Promise<Fixture> {
  const made = fixture(...caps)
  await seedAt(ledger, made, Date.now())
  return made
}

export function seedAt(ledger: Ledger, { teamId, budgets }: Fixture, atMs: number): Promise<void> {
  return ledger.seed(
    teamId,
    budgets.map(({ budgetId, period }) => ({
      budgetId,
      periodKey: periodKey(period, atMs),
      settledNano: 0,
    })),
  )
}

/** @throws unless the call was admitted. */
export async function held(ledger: Ledger, call: AdmitCall): Promise<Hold> {
  const verdict = await ledger.admit(call)
  if (verdict.kind !== 'admitted') throw new Error(`expected a hold, got ${JSON.stringify(verdict)}`)
  return verdict.hold
}

/** A verdict in a word or two: `admitted`, `over_budget 2`, `rate_limited tokens`, `unseeded 1,3`. */
export function inShort(verdict: Verdict, { budgets }: Fixture): string {
  const position = (id: string) => budgets.findIndex(budget => budget.budgetId === id) + 1
  switch (verdict.kind) {
    case 'over_budget':
      return `over_budget ${position(verdict.budgetId)}`
    case 'rate_limited':
      return `rate_limited ${verdict.window}`
    case 'unseeded':
      return `unseeded ${verdict.budgetIds.map(position)}`
    default:
      return verdict.kind
  }
}

export const amounts = (figures: (BudgetSpend | null)[]): string =>
  figures.map(figure => (figure === null ? '-' : `${figure.settledNano}+${figure.heldNano}`)).join(' ')
