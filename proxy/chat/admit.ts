import { AppError, unauthorized } from '../../shared/errors/app-error.js'
import { type AdmitCall, type Hold, LedgerUnavailable, type Verdict } from '../../shared/ledger/ledger.js'
import type { Deps } from '../deps.js'
import { EPOCH_UNKNOWN } from '../directory/lookup.js'
import { type Estimate, estimateCall } from './pricing.js'
import type { ScopedTarget } from './resolve.js'

/** A call that passed every check and may go to its provider. */
export interface Admission {
  target: ScopedTarget
  estimate: Estimate
  /** null: let through without the ledger. */
  hold: Hold | null
  /** The key or team has a limit that could not be asked, and LEDGER_DOWN is open. */
  ledgerBypassed: boolean
  admittedAtMs: number
  remainingRequests: number | null
}

/** The configuration that the call was judged by must be looked up again, and the call judged anew. */
export interface Stale {
  stale: true
  announcedEpoch: number
  ledger: LedgerState
}

/**
 * What is known of the ledger in this call: `forgetful`, it was flushed and its epoch is behind the configuration;
 * `away`, it does not answer. In both states the directory checks its copy with the control plane (at most once a
 * second), so that a revocation still takes effect.
 */
export type LedgerState = 'trusted' | 'forgetful' | 'away'

/** Seeding and asking again is done this often before the ledger counts as unusable. */
const MAX_ROUNDS = 3

/**
 * One atomic round trip: budgets, then rates, all or nothing (spec 3, budgets; design D4).
 *
 * @param cacheHit costs nothing: it counts against the request window alone and passes an exhausted budget.
 * @throws AppError BUDGET_EXCEEDED, RATE_LIMITED, UNAUTHORIZED for a revoked key, LEDGER_UNAVAILABLE.
 */
export async function admit(
  target: ScopedTarget,
  requestId: string,
  cacheHit: boolean,
  state: LedgerState,
  deps: Deps,
): Promise<Admission | Stale> {
  const { team } = target.caller
  const estimate = estimateCall(target.call, target.model.prices, target.model.maxOutputTokens)
  const request = admitCall(target, requestId, estimate, cacheHit, state)
  if (state === 'away') return withoutLedger(target, estimate, request, deps, 'the ledger does not answer')
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    let verdict: Verdict
    try {
      verdict = await deps.ledger.admit(request)
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) throw error
      return ledgerAway(deps)
    }
    if (deps.live.ledgerFailed) {
      deps.live.ledgerFailed = false
      deps.directory.dropAll()
      return giveBack(verdict, 'trusted', deps)
    }
    if (verdict.epoch < team.epoch && state === 'trusted') return giveBack(verdict, 'forgetful', deps)
    if (verdict.epoch > team.epoch || verdict.kind === 'outdated') return giveBack(verdict, 'trusted', deps)
    if (verdict.kind !== 'unseeded') return judge(verdict, target, estimate, deps)
    try {
      await deps.directory.seed(team.teamId)
    } catch (error) {
      return withoutLedger(target, estimate, request, deps, 'the ledger could not be seeded', error)
    }
  }
  return withoutLedger(target, estimate, request, deps, 'the ledger could not be seeded')
}

function admitCall(
  target: ScopedTarget,
  requestId: string,
  estimate: Estimate,
  cacheHit: boolean,
  state: LedgerState,
): AdmitCall {
  const { team, credential } = target.caller
  const isVirtual = credential.kind === 'virtual_key'
  return {
    requestId,
    teamId: team.teamId,
    credentialId: credential.id,
    knownEpoch: state === 'trusted' ? team.epoch : undefined,
    estimateNano: cacheHit ? 0 : estimate.costNano,
    estimateTokens: cacheHit ? 0 : estimate.promptTokens + estimate.outputTokens,
    budgets: cacheHit ? [] : team.budgetsFor(isVirtual ? credential.id : null),
    maxRpm: credential.maxRpm,
    maxTpm: cacheHit ? null : credential.maxTpm,
  }
}

function judge(
  verdict: Exclude<Verdict, { kind: 'unseeded' | 'outdated' }>,
  target: ScopedTarget,
  estimate: Estimate,
  deps: Deps,
): Admission {
  switch (verdict.kind) {
    case 'admitted':
      deps.live.add(verdict.hold)
      return {
        target,
        estimate,
        hold: verdict.hold,
        ledgerBypassed: false,
        admittedAtMs: verdict.hold.admittedAtMs,
        remainingRequests: verdict.remainingRequests,
      }
    case 'revoked':
      throw unauthorized()
    case 'over_budget': {
      const budget = target.caller.team.budgets.find(candidate => candidate.id === verdict.budgetId)
      const scope = budget?.virtualKeyId != null ? 'Virtual key' : 'Team-wide'
      throw new AppError('BUDGET_EXCEEDED', `${scope} budget exceeded.`)
    }
    case 'rate_limited':
      throw new AppError('RATE_LIMITED', `Rate limit exceeded: too many ${verdict.window} in 60 seconds.`, {
        headers: { 'retry-after': String(verdict.retryAfterSeconds) },
      })
  }
}

/**
 * Before the call is judged anew. Awaited, because the next admission has the same request id: were it to overtake the
 * release, which it does on a Redis that must be sent the release's script first, one reservation of the two would be
 * left without a record and never end. Without the release there is no second admission, and the first one expires.
 */
async function giveBack(verdict: Verdict, ledger: LedgerState, deps: Deps): Promise<Stale> {
  if (verdict.kind === 'admitted') {
    try {
      await deps.ledger.release(verdict.hold)
    } catch {
      return ledgerAway(deps)
    }
  }
  return { stale: true, announcedEpoch: verdict.epoch, ledger }
}

function ledgerAway(deps: Deps): Stale {
  deps.live.ledgerFailed = true
  return { stale: true, announcedEpoch: EPOCH_UNKNOWN, ledger: 'away' }
}

/**
 * `LEDGER_DOWN`, spec 4, section 1: only calls that have a limit depend on the ledger. One that is back empty and cannot
 * be filled knows no more of the budgets than one that is away.
 */
function withoutLedger(
  target: ScopedTarget,
  estimate: Estimate,
  request: AdmitCall,
  deps: Deps,
  why: string,
  cause?: unknown,
): Admission {
  const limited = request.budgets.length > 0 || request.maxRpm !== null || request.maxTpm !== null
  if (limited && deps.config.ledgerDown === 'closed') {
    throw new AppError('LEDGER_UNAVAILABLE', `Budgets and limits cannot be checked: ${why}.`, {
      cause,
      headers: { 'retry-after': '1' },
    })
  }
  if (limited) deps.metrics.ledgerBypassed.inc()
  return {
    target,
    estimate,
    hold: null,
    ledgerBypassed: limited,
    admittedAtMs: deps.now(),
    remainingRequests: null,
  }
}
