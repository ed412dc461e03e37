import type { Test } from 'tap'
import { type Period, periodKey, periods } from '../../../shared/ledger/period.js'
import { amounts, type Fixture, fixture, held, inShort, type Subject, seedAt, seeded } from './subject.js'

/** Expiry of holds and the roll of periods. */
export function timeCases(t: Test, subject: Subject): void {
  t.test('an orphaned hold stops blocking when it expires (I6)', async t => {
    const team = await seeded(subject.at({}), 10, 10)
    await held(subject.at({}), team.call())
    const at59 = subject.at({ clockOffsetMs: 59_000 })
    t.equal(inShort(await at59.admit(team.call()), team), 'over_budget 1')
    const at61 = subject.at({ clockOffsetMs: 61_000 })
    await held(at61, team.call())
    t.equal(amounts(await team.spend(at61)), '0+10 0+10')
  })

  t.test('the call of another key collects orphans of budgets that it does not have', async t => {
    const team = await seeded(subject.at({}), 10)
    await held(subject.at({}), team.call())
    await subject.at({ clockOffsetMs: 61_000 }).admit(team.call({ budgets: [], credentialId: team.teamId }))
    t.equal(amounts(await team.spend(subject.at({}))), '0+0')
  })

  t.test('one call collects some of a mass of orphans, never all of it at once', async t => {
    const now = subject.at({})
    const team = await seeded(now, 10_000)
    await Promise.all(Array.from({ length: 40 }, () => held(now, team.call())))
    const at61 = subject.at({ clockOffsetMs: 61_000 })
    const left: string[] = []
    for (let i = 0; i < 3; i++) {
      await at61.admit(team.call({ budgets: [] }))
      // A ledger whose clock stands still collects nothing when it is asked for figures.
      left.push(amounts(await team.spend(now)))
    }
    t.same(left, ['0+240', '0+80', '0+0'])
  })

  t.test('a settle that comes after its hold was collected changes nothing', async t => {
    const team = await seeded(subject.at({}), 10)
    const hold = await held(subject.at({ holdTtlMs: 100 }), team.call({ maxTpm: 8 }))
    const later = subject.at({ clockOffsetMs: 30_000 })
    await later.admit(team.call({ budgets: [] }))
    await later.settle(hold, { costNano: 9, tokens: 0 })
    await later.extend(hold, 50)
    await later.renew([hold])
    t.equal(amounts(await team.spend(later)), '0+0', 'the reconciler takes it from the charge')
    t.equal(inShort(await later.admit(team.call({ maxTpm: 8 })), team), 'rate_limited tokens')
  })

  t.test('a renewed hold outlives its first time to live', async t => {
    const team = await seeded(subject.at({}), 10)
    const hold = await held(subject.at({}), team.call())
    for (const seconds of [50, 100]) await subject.at({ clockOffsetMs: seconds * 1000 }).renew([hold])
    const at150 = subject.at({ clockOffsetMs: 150_000 })
    t.equal(inShort(await at150.admit(team.call()), team), 'over_budget 1')
    await at150.settle(hold, { costNano: 3, tokens: 5 })
    t.equal(amounts(await team.spend(at150)), '3+0')
  })

  t.test('a call that ends after midnight counts to the day on which it began only (I9)', async t => {
    const midnightMs = (Math.floor(Date.now() / 86_400_000) + 1) * 86_400_000
    const before = subject.at({ clockOffsetMs: midnightMs - 5_000 - Date.now() })
    const after = subject.at({ clockOffsetMs: midnightMs + 5_000 - Date.now() })
    const team = daily(100)
    await seedAt(before, team, midnightMs - 5_000)
    const hold = await held(before, team.call())
    t.ok(hold.admittedAtMs < midnightMs)
    t.equal(inShort(await after.admit(team.call()), team), 'unseeded 1', 'a new day begins by itself')
    await seedAt(after, team, midnightMs + 5_000)
    const next = await held(after, team.call())
    await after.settle(hold, { costNano: 8, tokens: 5 })
    await after.settle(next, { costNano: 6, tokens: 5 })
    t.equal(amounts(await team.spend(before)), '8+0')
    t.equal(amounts(await team.spend(after)), '6+0')
  })

  t.test('the store computes the periods of shared/ledger/period.ts', async t => {
    const instants = [
      '2026-11-22T23:59:59Z',
      '2026-11-23T00:00:05Z',
      '2026-12-31T23:59:55Z',
      '2027-01-01T00:00:05Z',
      '2028-02-28T23:59:55Z',
      '2028-02-29T12:00:00Z',
      '2028-03-01T00:00:05Z',
      '2100-02-28T23:59:55Z',
      '2100-03-01T00:00:05Z',
    ].map(text => Date.parse(text))
    for (let month = 0; month < 24; month++) instants.push(Date.UTC(2027, month, 1 + month, 7))
    for (const atMs of instants) {
      const ledger = subject.at({ clockOffsetMs: atMs - Date.now() })
      const team = fixture(100, 100, 100, 100)
      const budgets = team.budgets.map((budget, i) => ({ ...budget, period: periods[i] as Period }))
      await seedAt(ledger, { ...team, budgets }, atMs)
      const figures = await ledger.spend(team.teamId, budgets)
      t.equal(amounts(figures), '0+0 0+0 0+0 0+0', new Date(atMs).toISOString())
    }
  })

  t.test('a budget that changes its period starts from the charges, not from an old counter', async t => {
    const noonMs = Math.floor(Date.now() / 86_400_000) * 86_400_000 + 43_200_000
    const ledger = subject.at({ clockOffsetMs: noonMs - Date.now() })
    const team = daily(100)
    const budgetId = team.budgets[0]?.budgetId ?? ''
    await seedAt(ledger, team, noonMs)
    await ledger.settle(await held(ledger, team.call()), { costNano: 10, tokens: 5 })
    await ledger.seed(team.teamId, [{ budgetId, periodKey: periodKey('week', noonMs), settledNano: 15 }])
    t.equal(amounts(await ledger.spend(team.teamId, [{ budgetId, period: 'week' }])), '15+0')
    t.equal(amounts(await team.spend(ledger)), '-', 'no call would have kept the day up to date')
  })
}

/** A team with one budget of a day. */
function daily(cap: number): Fixture {
  const team = fixture(cap)
  const budgets = team.budgets.map(budget => ({ ...budget, period: 'day' as const }))
  return {
    ...team,
    budgets,
    call: change => team.call({ budgets, ...change }),
    spend: ledger => ledger.spend(team.teamId, budgets),
  }
}
