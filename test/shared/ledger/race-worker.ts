/** A process of its own for race-cases.ts: many calls at once on one team, then it tells what it spent. */
import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { connectLedger } from '../../../shared/ledger/connect.js'
import type { AdmitCall } from '../../../shared/ledger/ledger.js'
import { type Reach, silent } from './subject.js'

export interface RaceOrder {
  reach: Reach
  /** The request id is replaced. */
  call: AdmitCall
  calls: number
  /** Every n-th call settles a second time; 0 = none. */
  settleTwiceEvery: number
}

export interface RaceResult {
  admitted: number
  refused: number
  spentNano: number
}

async function race({ reach, call, calls, settleTwiceEvery }: RaceOrder): Promise<RaceResult> {
  const ledger = await connectLedger({ ...reach, log: silent })
  const result: RaceResult = { admitted: 0, refused: 0, spentNano: 0 }
  const one = async (i: number) => {
    await wait(Math.random() * 20)
    const verdict = await ledger.admit({ ...call, requestId: randomUUID() })
    if (verdict.kind !== 'admitted') {
      result.refused++
      return
    }
    result.admitted++
    await wait(Math.random() * 20)
    const costNano = Math.floor(call.estimateNano * (0.2 + Math.random() * 0.8))
    result.spentNano += costNano
    await ledger.settle(verdict.hold, { costNano, tokens: call.estimateTokens })
    if (settleTwiceEvery > 0 && i % settleTwiceEvery === 0)
      await ledger.settle(verdict.hold, { costNano, tokens: call.estimateTokens })
  }
  await Promise.all(Array.from({ length: calls }, (_, i) => one(i)))
  await ledger.close()
  return result
}

process.once('message', (order: RaceOrder) => {
  race(order).then(
    result => process.send?.(result, () => process.disconnect()),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})
