import type { Hold } from '../../shared/ledger/ledger.js'
import type { TokenBuckets } from '../../shared/spool/record.js'
import type { Deps } from '../deps.js'
import { costNano, type Estimate, outputTokensOf } from './pricing.js'
import { callRecord, type Outcome, type Recorded } from './record.js'

const NONE: TokenBuckets = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }
/** The admission estimate takes 3 bytes a token, to be safe; what is charged without a count takes 4, to be fair. */
const FAIR_SHARE_OF_ESTIMATE = 0.75

/**
 * The end of every admitted call, however it ended: price, record on disk, settle or release, and only then the last
 * byte of the reply: what a client has seen complete is on disk, whatever is killed (design D6).
 *
 * @param reply called when the record is on disk, with what the call cost.
 */
export function settleCall(
  call: Recorded,
  outcome: Outcome,
  deps: Deps,
  reply: (costNano: number) => void = () => {},
): void {
  const { admission } = call
  const known = outcome.charged ? outcome.tokens : NONE
  const tokens = known ?? estimated(admission.estimate, outcome)
  const cost = costNano(tokens, admission.target.model.prices)
  const endedAtMs = deps.now()
  deps.metrics.callSeconds[endOf(outcome)].observe((endedAtMs - call.startedAtMs) / 1000)
  deps.spool.appendWithTurn(callRecord(call, outcome, tokens, cost, known === null, endedAtMs), error => {
    if (error !== null) reportLoss(call, cost, error, deps)
    settleHold(admission.hold, outcome.charged, cost, tokens, deps)
    reply(cost)
  })
}

function endOf({ status, errorCode }: Outcome): 'ok' | 'aborted' | 'failed' {
  if (status === 'ok') return 'ok'
  return errorCode === 'client_disconnected' ? 'aborted' : 'failed'
}

/**
 * The answer is there and its cost is counted in the ledger; only the row is missing. Refusing the answer now would
 * charge for nothing.
 */
function reportLoss({ requestId }: Recorded, costNano: number, error: unknown, deps: Deps): void {
  deps.log.error({ err: error, requestId, costNano }, 'spool: a call could not be recorded')
  deps.metrics.unrecordedCalls.inc()
}

/** Not awaited: a hold that is not settled expires, and the charge row corrects the counters. */
function settleHold(
  hold: Hold | null,
  charged: boolean,
  costNano: number,
  tokens: TokenBuckets,
  deps: Deps,
): void {
  if (hold === null) return
  deps.live.remove(hold)
  const spent = tokens.input + tokens.cacheRead + tokens.cacheWrite + tokens.output
  const settled = charged ? deps.ledger.settle(hold, { costNano, tokens: spent }) : deps.ledger.release(hold)
  settled.catch(() => deps.metrics.unsettledCalls.inc())
}

function estimated(estimate: Estimate, { inputTokens, outputBytes }: Outcome): TokenBuckets {
  const input = Math.ceil(estimate.promptTokens * FAIR_SHARE_OF_ESTIMATE)
  return { ...(inputTokens ?? { input, cacheRead: 0, cacheWrite: 0 }), output: outputTokensOf(outputBytes) }
}
