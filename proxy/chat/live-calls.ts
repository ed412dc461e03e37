import { HOLD_RENEW_MS, type Hold, type Ledger } from '../../shared/ledger/ledger.js'

/** The holds of calls in flight: renewed, so that a stream of minutes keeps its reservation and an orphan loses it. */
export interface LiveCalls {
  add(hold: Hold): void
  remove(hold: Hold): void
  readonly size: number
  /**
   * Whether the ledger failed since the last answer. Epochs announced meanwhile were missed, so the first answer
   * after an outage makes the proxy load its configuration anew.
   */
  ledgerFailed: boolean
  close(): void
}

export function createLiveCalls(ledger: Ledger): LiveCalls {
  const holds = new Set<Hold>()
  const timer = setInterval(() => {
    // A failed renewal is repeated by the next one: a hold lives for three of them.
    if (holds.size > 0) ledger.renew([...holds]).catch(() => {})
  }, HOLD_RENEW_MS).unref()
  return {
    add: hold => holds.add(hold),
    remove: hold => holds.delete(hold),
    get size() {
      return holds.size
    },
    ledgerFailed: false,
    close: () => clearInterval(timer),
  }
}
