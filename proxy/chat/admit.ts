import { AppError, unauthorized } from '../../shared/errors/app-error.js'
import { type AdmitCall, type Hold, LedgerUnavailable, type Verdict } from '../../shared/ledger/ledger.js'
import type { Deps } from '../deps.js'
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

/** The configuration that the call was judged by is not the newest: load it and judge again. */
export interface Stale {
  stale: true
  announcedEpoch: number
}

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
  deps: Deps,
): Promise<Admission | Stale> {
  const { team, credential } = target.caller
  const estimate = estimateCall(target.call, target.model.prices, target.model.maxOutputTokens)
  const request: AdmitCall = {
    requestId,
    teamId: team.teamId,
    credentialId: credential.id,
    estimateNano: cacheHit ? 0 : estimate.costNano,
    estimateTokens: cacheHit ? 0 : estimate.promptTokens + estimate.outputTokens,
    budgets: cacheHit ? [] : team.budgetsFor(credential.kind === 'virtual_key' ? credential.id : null),
    maxRpm: credential.maxRpm,
    maxTpm: cacheHit ? null : credential.maxTpm,
  }
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    let verdict: Verdict
    try {
      verdict = await deps.ledger.admit(request)
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) throw error
      return withoutLedger(target, estimate, request, error, deps)
    }
    const missed = deps.live.ledgerFailed
    if (missed) {
      deps.live.ledgerFailed = false
      deps.directory.dropAll()
    }
    if (missed || verdict.epoch > team.epoch) return giveBack(verdict, deps)
    if (verdict.kind === 'unseeded' || verdict.epoch < team.epoch) {
      // The ledger lost its memory, or a budget's period has just begun.
      if (verdict.kind === 'admitted') void deps.ledger.release(verdict.hold).catch(() => {})
      await seed(team.teamId, deps)
      continue
    }
    return judge(verdict, target, estimate, deps)
  }
  throw ledgerUnavailable('the ledger could not be seeded')
}

function judge(verdict: Verdict, target: ScopedTarget, estimate: Estimate, deps: Deps): Admission {
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
    case 'unseeded':
      throw ledgerUnavailable('the ledger is not seeded')
  }
}

function giveBack(verdict: Verdict, deps: Deps): Stale {
  if (verdict.kind === 'admitted') void deps.ledger.release(verdict.hold).catch(() => {})
  return { stale: true, announcedEpoch: verdict.epoch }
}

async function seed(teamId: string, deps: Deps): Promise<void> {
  try {
    await deps.directory.seed(teamId)
  } catch (error) {
    throw ledgerUnavailable('the ledger could not be seeded', error)
  }
}

/** `LEDGER_DOWN`, spec 4, section 1: only calls that have a limit depend on the ledger. */
function withoutLedger(
  target: ScopedTarget,
  estimate: Estimate,
  request: AdmitCall,
  cause: LedgerUnavailable,
  deps: Deps,
): Admission {
  deps.live.ledgerFailed = true
  const { maxRpm, maxTpm } = target.caller.credential
  const limited = request.budgets.length > 0 || maxRpm !== null || maxTpm !== null
  if (limited && deps.config.ledgerDown === 'closed')
    throw ledgerUnavailable('the ledger does not answer', cause)
  return {
    target,
    estimate,
    hold: null,
    ledgerBypassed: limited,
    admittedAtMs: deps.now(),
    remainingRequests: null,
  }
}

const ledgerUnavailable = (detail: string, cause?: unknown) =>
  new AppError('LEDGER_UNAVAILABLE', `Budgets and limits cannot be checked: ${detail}.`, {
    cause,
    headers: { 'retry-after': '1' },
  })
