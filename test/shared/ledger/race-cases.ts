import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { AdmitCall } from '../../../shared/ledger/ledger.js'
import type { RaceOrder, RaceResult } from './race-worker.js'
import { amounts, fixture, type Reach, type Subject, seeded } from './subject.js'

const PROCESSES = 4

/** Four processes at once, as four proxies would be. */
export function raceCases(t: Test, subject: Subject): void {
  t.test(
    '1,000 parallel calls of four processes never pass a cap, and leave nothing held (I1, I2)',
    async t => {
      const ledger = await subject.connect(t)
      // Estimates of 10,000: the budgets have room for some hundred calls; the second is the tightest.
      const caps = [1_000_000, 700_000, 900_000]
      const team = await seeded(ledger, ...caps)
      let isOver = false
      let polls = 0
      const highest = caps.map(() => 0)
      const poll = async () => {
        while (!isOver) {
          const figures = await team.spend(ledger)
          polls++
          for (const [i, figure] of figures.entries()) {
            const used = (figure?.settledNano ?? 0) + (figure?.heldNano ?? 0)
            highest[i] = Math.max(highest[i] ?? 0, used)
          }
        }
      }
      const polling = poll()
      const total = await raceOf(subject.reach, team.call({ estimateNano: 10_000 }), 250, 7)
      isOver = true
      await polling
      t.equal(total.admitted + total.refused, 1000)
      t.ok(total.refused > 0, `${total.refused} calls were refused`)
      t.ok(
        highest.every((used, i) => used <= (caps[i] ?? 0)),
        `${polls} polls saw at most ${highest.join(', ')}`,
      )
      t.ok((highest[1] ?? 0) > 600_000, 'the tightest budget was used up')
      const drained = amounts(await team.spend(ledger))
      t.equal(drained, caps.map(() => `${total.spentNano}+0`).join(' '), 'each counter is what was spent')
    },
  )

  t.test('four processes share one request limit to the call (I8)', async t => {
    const team = fixture()
    const total = await raceOf(subject.reach, team.call({ maxRpm: 50 }), 60, 0)
    t.equal(total.admitted, 50)
  })

  t.test('four processes share one token limit to the token', async t => {
    const team = fixture()
    const call = team.call({ maxTpm: 1000, estimateTokens: 9 })
    const total = await raceOf(subject.reach, call, 60, 3)
    t.equal(total.admitted, 111)
  })
}

async function raceOf(
  reach: Reach,
  call: AdmitCall,
  calls: number,
  settleTwiceEvery: number,
): Promise<RaceResult> {
  const order: RaceOrder = { reach, call, calls, settleTwiceEvery }
  const results = await Promise.all(Array.from({ length: PROCESSES }, () => worker(order)))
  return results.reduce((sum, one) => ({
    admitted: sum.admitted + one.admitted,
    refused: sum.refused + one.refused,
    spentNano: sum.spentNano + one.spentNano,
  }))
}

function worker(order: RaceOrder): Promise<RaceResult> {
  const child = fork(fileURLToPath(new URL('./race-worker.js', import.meta.url)), { execArgv: [] })
  return new Promise((resolve, reject) => {
    child.once('message', result => resolve(result as RaceResult))
    child.once('exit', code => {
      if (code !== 0) reject(new Error(`A worker ended with code ${code}.`))
    })
    child.send(order)
  })
}
