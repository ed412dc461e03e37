import type { TokenBuckets } from '../../shared/spool/record.js'
import type { Deps } from '../deps.js'
import { costNano, type Estimate, outputTokensOf } from './pricing.js'
import { callRecord, type Outcome, type Recorded } from './record.js'

const NONE: TokenBuckets = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }
/** The admission estimate takes 3 bytes a token, to be safe; what is charged without a count takes 4, to be fair. */
const FAIR_SHARE_OF_ESTIMATE = 0.75

/**
 * The end of every admitted call, however it ended: price, record on disk, then settle or release. Call it before the
 * reply's last byte: what the client has seen complete is then on disk, whatever is killed (design D6).
 *
 * @returns what the call cost, for `x-gateway-cost-usd`.
 */
export function settleCall(call: Recorded, outcome: Outcome, deps: Deps): number {
  const { admission } = call
  const known = outcome.charged ? outcome.tokens : NONE
  const tokens = known ?? estimated(admission.estimate, outcome)
  const cost = costNano(tokens, admission.target.model.prices)

  try {
    deps.spool.append(callRecord(call, outcome, tokens, cost, known === null, deps.now()))
  } catch (error) {
    // The answer is there and its cost is counted in the ledger; only the row is missing. Refusing the answer now
    // would charge for nothing.
    deps.log.error(
      { err: error, requestId: call.requestId, costNano: cost },
      'spool: a call could not be recorded',
    )
    deps.metrics.unrecordedCalls.inc()
  }

  const { hold } = admission
  if (hold !== null) {
    deps.live.remove(hold)
    const spent = tokens.input + tokens.cacheRead + tokens.cacheWrite + tokens.output
    // Not awaited: a hold that is not settled expires, and the charge row corrects the counters.
    const settled = outcome.charged
      ? deps.ledger.settle(hold, { costNano: cost, tokens: spent })
      : deps.ledger.release(hold)
    settled.catch(() => deps.metrics.unsettledCalls.inc())
  }
  return cost
}

function estimated(estimate: Estimate, { inputTokens, outputBytes }: Outcome): TokenBuckets {
  const input = Math.ceil(estimate.promptTokens * FAIR_SHARE_OF_ESTIMATE)
  return { ...(inputTokens ?? { input, cacheRead: 0, cacheWrite: 0 }), output: outputTokensOf(outputBytes) }
}
