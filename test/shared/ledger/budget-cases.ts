import type { Test } from 'tap'
import { periodKey } from '../../../shared/ledger/period.js'
import { amounts, fixture, held, inShort, type Subject, seeded } from './subject.js'

/** Reserving, settling, refusing: what happens to budgets one call at a time. */
export function budgetCases(t: Test, subject: Subject): void {
  t.test('an admitted call is held in every budget and settled in every budget', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 100, 1000, 1000)
    const hold = await held(ledger, team.call())
    t.equal(amounts(await team.spend(ledger)), '0+10 0+10 0+10')
    await ledger.settle(hold, { costNano: 7, tokens: 5 })
    t.equal(amounts(await team.spend(ledger)), '7+0 7+0 7+0')
  })

  t.test('a refusal by the second budget leaves the first as it was (I10)', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 100, 5, 100)
    const verdict = await ledger.admit(team.call({ maxRpm: 1, maxTpm: 5 }))
    t.equal(inShort(verdict, team), 'over_budget 2')
    t.equal(amounts(await team.spend(ledger)), '0+0 0+0 0+0')
    const other = team.call({ budgets: [], maxRpm: 1, maxTpm: 5 })
    t.equal(inShort(await ledger.admit(other), team), 'admitted', 'the windows were left as they were too')
  })

  t.test('a refusal by a rate window leaves budgets and the other window as they were', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 100)
    await held(ledger, team.call({ maxRpm: 3, maxTpm: 8 }))
    t.equal(inShort(await ledger.admit(team.call({ maxRpm: 3, maxTpm: 8 })), team), 'rate_limited tokens')
    t.equal(amounts(await team.spend(ledger)), '0+10')
    const next = await ledger.admit(team.call({ maxRpm: 3 }))
    t.match(next, { kind: 'admitted', remainingRequests: 1 })
  })

  t.test(
    'a call passes when spend plus holds is below the cap and its estimate does not exceed it',
    async t => {
      const ledger = await subject.connect(t)
      const team = await seeded(ledger, 30)
      await held(ledger, team.call({ estimateNano: 20 }))
      t.equal(
        inShort(await ledger.admit(team.call({ estimateNano: 11 })), team),
        'over_budget 1',
        'exceeds it',
      )
      await held(ledger, team.call({ estimateNano: 10 }))
      t.equal(amounts(await team.spend(ledger)), '0+30', 'reaching the cap exactly is allowed')
      const unpriced = team.call({ estimateNano: 0 })
      t.equal(inShort(await ledger.admit(unpriced), team), 'over_budget 1', 'an exhausted budget refuses all')
    },
  )

  t.test('a cap of 0 refuses every call, priced or not', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 0)
    t.equal(inShort(await ledger.admit(team.call({ estimateNano: 0 })), team), 'over_budget 1')
  })

  t.test('a cap of nine million dollars is exact to the nano-dollar', async t => {
    const ledger = await subject.connect(t)
    const cap = 9_000_000_000_000_000
    const team = await seeded(ledger, cap)
    const hold = await held(ledger, team.call({ estimateNano: cap - 1 }))
    t.equal(inShort(await ledger.admit(team.call({ estimateNano: 2 })), team), 'over_budget 1')
    await held(ledger, team.call({ estimateNano: 1 }))
    t.equal(amounts(await team.spend(ledger)), `0+${cap}`)
    await ledger.settle(hold, { costNano: cap - 3, tokens: 0 })
    t.equal(amounts(await team.spend(ledger)), `${cap - 3}+1`)
  })

  t.test('the first failing budget in the order given is the one reported, budgets before rates', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 100, 5, 5)
    await held(ledger, team.call({ budgets: [], maxRpm: 1 }))
    t.equal(inShort(await ledger.admit(team.call({ maxRpm: 1 })), team), 'over_budget 2')
    const turned = team.call({ budgets: [...team.budgets].reverse() })
    t.equal(inShort(await ledger.admit(turned), team), 'over_budget 3')
  })

  t.test('budgets without a counter are named, all of them, and nothing is reserved', async t => {
    const ledger = await subject.connect(t)
    const team = fixture(100, 100, 100)
    t.equal(inShort(await ledger.admit(team.call()), team), 'unseeded 1,2,3')
    const [, middle] = team.budgets
    const periodOf = periodKey(middle?.period ?? 'total', Date.now())
    await ledger.seed(team.teamId, [
      { budgetId: middle?.budgetId ?? '', periodKey: periodOf, settledNano: 4 },
    ])
    t.equal(inShort(await ledger.admit(team.call()), team), 'unseeded 1,3')
    t.equal(amounts(await team.spend(ledger)), '- 4+0 -')
  })

  t.test('a settle takes effect once, whoever repeats it', async t => {
    const [ledger, other] = [await subject.connect(t), await subject.connect(t)]
    const team = await seeded(ledger, 100)
    const hold = await held(ledger, team.call())
    await Promise.all([
      ledger.settle(hold, { costNano: 7, tokens: 5 }),
      ledger.settle(hold, { costNano: 7, tokens: 5 }),
      other.settle(hold, { costNano: 7, tokens: 5 }),
    ])
    await other.release(hold)
    t.equal(amounts(await team.spend(ledger)), '7+0')
  })

  t.test('a settle may cost more than the estimate', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 15)
    await ledger.settle(await held(ledger, team.call()), { costNano: 40, tokens: 5 })
    t.equal(amounts(await team.spend(ledger)), '40+0')
  })

  t.test('a release gives the money back', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 10)
    await ledger.release(await held(ledger, team.call()))
    t.equal(amounts(await team.spend(ledger)), '0+0')
    await held(ledger, team.call())
  })

  t.test(
    'a stream that outgrows its estimate raises its hold, past the cap too, and never lowers it',
    async t => {
      const ledger = await subject.connect(t)
      const team = await seeded(ledger, 50)
      const hold = await held(ledger, team.call())
      await ledger.extend(hold, 60)
      await ledger.extend(hold, 30)
      t.equal(amounts(await team.spend(ledger)), '0+60')
      t.equal(inShort(await ledger.admit(team.call()), team), 'over_budget 1')
      await ledger.settle(hold, { costNano: 44, tokens: 5 })
      t.equal(amounts(await team.spend(ledger)), '44+0', 'the whole raised hold is gone')
      await ledger.extend(hold, 90)
      t.equal(amounts(await team.spend(ledger)), '44+0', 'a settled call has nothing to extend')
    },
  )

  t.test(
    'a cache hit passes exhausted budgets and token limits, and counts against the request limit',
    async t => {
      const ledger = await subject.connect(t)
      const team = await seeded(ledger, 10)
      await held(ledger, team.call({ maxRpm: 3, maxTpm: 5 }))
      t.equal(inShort(await ledger.admit(team.call({ maxRpm: 3, maxTpm: 5 })), team), 'over_budget 1')
      const hit = { budgets: [], estimateNano: 0, estimateTokens: 0, maxRpm: 3, maxTpm: null }
      t.match(await ledger.admit(team.call(hit)), { kind: 'admitted', remainingRequests: 1 })
      const verdict = await ledger.admit(team.call(hit))
      t.match(verdict, { kind: 'admitted', remainingRequests: 0 })
      t.equal(inShort(await ledger.admit(team.call(hit)), team), 'rate_limited requests')
    },
  )

  t.test('seeding sets a counter only where there is none', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 100)
    await ledger.settle(await held(ledger, team.call()), { costNano: 10, tokens: 5 })
    const [budget] = team.budgets
    const counter = { budgetId: budget?.budgetId ?? '', periodKey: periodKey('total', Date.now()) }
    await ledger.seed(team.teamId, [{ ...counter, settledNano: 50 }])
    t.equal(amounts(await team.spend(ledger)), '10+0')
  })

  t.test('raising lifts a counter that is too low, lowers none and makes none', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 100)
    const [budget] = team.budgets
    const counter = { budgetId: budget?.budgetId ?? '', periodKey: periodKey('total', Date.now()) }
    const hold = await held(ledger, team.call())
    await ledger.raise(team.teamId, [{ ...counter, settledNano: 30 }])
    t.equal(amounts(await team.spend(ledger)), '30+10')
    await ledger.raise(team.teamId, [{ ...counter, settledNano: 20 }])
    await ledger.settle(hold, { costNano: 5, tokens: 5 })
    t.equal(amounts(await team.spend(ledger)), '35+0')
    const stranger = fixture(100)
    await ledger.raise(stranger.teamId, [
      { ...counter, budgetId: stranger.budgets[0]?.budgetId ?? '', settledNano: 9 },
    ])
    t.equal(amounts(await stranger.spend(ledger)), '-')
  })
}
