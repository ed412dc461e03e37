import type { Period } from './period.js'

/**
 * The ledger decides, in one atomic round trip, whether a call may spend. It is a cache of the charge rows in
 * PostgreSQL, which are the truth; it is seeded from them when it is empty and reconciled with them every minute.
 *
 * Failure stance: an implementation never hangs (a deadline on every command) and never guesses: when it cannot
 * answer it throws LedgerUnavailable, and the caller applies `LEDGER_DOWN` (spec 4, section 1).
 *
 * Semantics and invariants: reliability notes, section 2. Amounts are integer nano-dollars and tokens.
 */
export interface Ledger {
  /**
   * Checks and reserves everything or nothing: the credential's revocation marker, the epoch, every budget in the order
   * given, the request window, the token window. A refusal writes nothing. Periods and windows follow the store's clock.
   */
  admit(call: AdmitCall): Promise<Verdict>
  /**
   * Replaces a hold by what the call cost, in the periods in which it was admitted, and corrects the token window.
   * Takes effect once per request id; a hold that has expired leaves the counters to the reconciler.
   */
  settle(hold: Hold, actual: { costNano: number; tokens: number }): Promise<void>
  /** Gives a hold back: the provider did no work. The request stays counted in the request window. */
  release(hold: Hold): Promise<void>
  /** A stream outgrew its estimate: raises the hold to `estimateNano`. Always succeeds while the hold lives. */
  extend(hold: Hold, estimateNano: number): Promise<void>
  /** Keeps the holds of live calls from expiring. */
  renew(holds: readonly Hold[]): Promise<void>

  /** Where the team's configuration stands, and whether the credential was revoked; spends nothing. */
  look(teamId: string, credentialId: string): Promise<{ epoch: number; revoked: boolean }>
  /**
   * Announces a change before its transaction commits: the epoch never goes back, revoked ids stay revoked.
   * See `control-plane/gateway/publish.ts` for why "before" is what makes a change hold for the next call.
   */
  publish(teamId: string, change: { epoch: number; revokedIds?: readonly string[] }): Promise<void>
  /** Sets the epoch back after a transaction that had announced it rolled back; only if it still is `from`. */
  retract(teamId: string, from: number, to: number): Promise<void>

  /** Live figures of budgets in the current period; null for one that is not seeded. */
  spend(teamId: string, budgets: readonly BudgetPeriod[]): Promise<(BudgetSpend | null)[]>
  /** Sets counters that are absent. `periodKey` as in period.ts. */
  seed(teamId: string, counters: readonly BudgetCounter[]): Promise<void>
  /** Raises counters that are lower than the charge rows say; never lowers one. */
  raise(teamId: string, counters: readonly BudgetCounter[]): Promise<void>

  /** Resolves when the store answers; throws LedgerUnavailable. For readiness. */
  ping(): Promise<void>
  close(): Promise<void>
}

export interface BudgetPeriod {
  budgetId: string
  period: Period
}

export interface BudgetLimit extends BudgetPeriod {
  capNano: number
}

export interface BudgetSpend {
  settledNano: number
  heldNano: number
}

export interface BudgetCounter {
  budgetId: string
  periodKey: string
  settledNano: number
}

export interface AdmitCall {
  /** Unique per call, without a line break; names the hold. */
  requestId: string
  teamId: string
  /** For the revocation marker: the virtual key's, API key's or session's id. */
  credentialId: string
  /**
   * The epoch of the configuration that the call was judged by. Where the store has another one the verdict is
   * `outdated` and nothing is counted: the call comes again, and must not count against its request window twice.
   * Left out: any.
   */
  knownEpoch?: number | undefined
  estimateNano: number
  /** Prompt and output tokens, for the token window. */
  estimateTokens: number
  /** Every budget that applies, team-wide first. Empty for a cache hit: it costs nothing and passes exhausted budgets. */
  budgets: readonly BudgetLimit[]
  /** null = no limit. A cache hit passes `maxTpm: null`. */
  maxRpm: number | null
  maxTpm: number | null
}

/** An admitted call's reservation. Plain data: it can be settled from any connection of any process. */
export interface Hold {
  requestId: string
  teamId: string
  /** Owner of the rate windows. */
  credentialId: string
  estimateNano: number
  estimateTokens: number
  /** The store's clock at admission; periods and window buckets derive from it. */
  admittedAtMs: number
  budgets: readonly BudgetPeriod[]
  hasTokenWindow: boolean
}

/**
 * `epoch`: as announced by `publish`; 0 for a team that the store knows nothing of. Lower than what a proxy has cached,
 * it means that the store has lost its data: check the cached configuration with the control plane.
 */
export type Verdict =
  | { kind: 'admitted'; epoch: number; hold: Hold; remainingRequests: number | null }
  | { kind: 'revoked'; epoch: number }
  | { kind: 'outdated'; epoch: number }
  | { kind: 'over_budget'; epoch: number; budgetId: string }
  | { kind: 'rate_limited'; epoch: number; window: 'requests' | 'tokens'; retryAfterSeconds: number }
  /** These budgets have no counter in the current period yet: seed them and ask again. */
  | { kind: 'unseeded'; epoch: number; budgetIds: string[] }

/** The store did not answer in time, or refused the connection. */
export class LedgerUnavailable extends Error {
  constructor(cause: unknown) {
    super('The ledger cannot be reached.', { cause })
    this.name = 'LedgerUnavailable'
  }
}

/** A hold lives this long unless renewed; the proxy renews every HOLD_RENEW_MS, so orphans die within 80 s. */
export const HOLD_TTL_MS = 60_000
export const HOLD_RENEW_MS = 20_000
