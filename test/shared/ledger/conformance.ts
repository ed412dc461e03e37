import type { Test } from 'tap'
import { budgetCases } from './budget-cases.js'
import { configurationCases } from './configuration-cases.js'
import { raceCases } from './race-cases.js'
import { rateCases } from './rate-cases.js'
import type { Subject } from './subject.js'
import { timeCases } from './time-cases.js'

/** What every ledger must do. Both implementations run it; I1 to I10 are the invariants of the reliability notes. */
export function ledgerConformance(t: Test, subject: Subject): void {
  budgetCases(t, subject)
  timeCases(t, subject)
  rateCases(t, subject)
  configurationCases(t, subject)
  raceCases(t, subject)
}
