import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { AdmitCall } from '../../../shared/ledger/ledger.js'
import { amounts, type Fixture, fixture, held, inShort, type Subject, seeded } from './subject.js'

/** Epochs and revocations; batches; what callers may get wrong. */
export function configurationCases(t: Test, subject: Subject): void {
  t.test('a revocation and an epoch hold for the very next call of another connection', async t => {
    const [controlPlane, proxy] = [await subject.connect(t), await subject.connect(t)]
    const team = await seeded(proxy, 100)
    t.match(await proxy.admit(team.call()), { kind: 'admitted', epoch: 0 })
    await controlPlane.publish(team.teamId, { epoch: 7, revokedIds: [team.credentialId, randomUUID()] })
    t.same(await proxy.admit(team.call()), { kind: 'revoked', epoch: 7 })
    t.same(await proxy.look(team.teamId, team.credentialId), { epoch: 7, revoked: true })
    const other = team.call({ credentialId: randomUUID() })
    t.match(await proxy.admit(other), { kind: 'admitted', epoch: 7 })
  })

  t.test('revoked wins over an exhausted budget, a full window and a missing counter', async t => {
    const ledger = await subject.connect(t)
    const team = fixture(0)
    await ledger.publish(team.teamId, { epoch: 1, revokedIds: [team.credentialId] })
    t.equal(inShort(await ledger.admit(team.call({ maxRpm: 0 })), team), 'revoked')
  })

  t.test('the epoch never goes back, and every verdict carries it', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 5)
    await ledger.publish(team.teamId, { epoch: 9 })
    await ledger.publish(team.teamId, { epoch: 3 })
    t.match(await ledger.admit(team.call()), { kind: 'over_budget', epoch: 9 })
    t.match(await ledger.admit(fixtureOf(team, 4).call()), { kind: 'unseeded', epoch: 9 })
    t.match(await ledger.admit(team.call({ budgets: [], maxRpm: 0 })), { kind: 'rate_limited', epoch: 9 })
  })

  t.test('a call that was judged by another epoch counts nowhere, so that it can come again', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 100)
    await ledger.publish(team.teamId, { epoch: 3 })
    const limits = { maxRpm: 1, maxTpm: 5 }
    const [behind, ahead, current, next] = await Promise.all(
      [2, 4, 3, 3].map(knownEpoch => ledger.admit(team.call({ ...limits, knownEpoch }))),
    )
    t.same([behind, ahead], Array(2).fill({ kind: 'outdated', epoch: 3 }))
    t.match(current, { kind: 'admitted', remainingRequests: 0 })
    t.match(next, { kind: 'rate_limited', window: 'requests' })
    t.equal(amounts(await team.spend(ledger)), '0+10')
    const revoked = team.call({ credentialId: randomUUID(), knownEpoch: 3 })
    await ledger.publish(team.teamId, { epoch: 4, revokedIds: [revoked.credentialId] })
    t.same(await ledger.admit(revoked), { kind: 'revoked', epoch: 4 })
  })

  t.test('an announced epoch is taken back only while nobody has announced a later one', async t => {
    const ledger = await subject.connect(t)
    const { teamId, credentialId } = fixture()
    await ledger.publish(teamId, { epoch: 4 })
    await ledger.publish(teamId, { epoch: 5 })
    await ledger.retract(teamId, 5, 4)
    t.match(await ledger.look(teamId, credentialId), { epoch: 4, revoked: false })
    await ledger.publish(teamId, { epoch: 6 })
    await ledger.retract(teamId, 5, 4)
    t.match(await ledger.look(teamId, credentialId), { epoch: 6 })
  })

  t.test('an unknown team is at epoch 0, so that proxies reload after a loss of data', async t => {
    const ledger = await subject.connect(t)
    t.same(await ledger.look(randomUUID(), randomUUID()), { epoch: 0, revoked: false })
  })

  t.test('many calls in one event-loop turn get what the same calls get one by one', async t => {
    const ledger = await subject.connect(t)
    const [alone, together] = [await seeded(ledger, 420, 520), await seeded(ledger, 420, 520)]
    const one: string[] = []
    for (const call of mixedCalls(alone)) one.push(inShort(await ledger.admit(call), alone))
    const all = await Promise.all(mixedCalls(together).map(call => ledger.admit(call)))
    t.same(
      all.map(verdict => inShort(verdict, together)),
      one,
    )
    t.ok(new Set(one).size >= 4, `the calls met ${[...new Set(one)].join(', ')}`)
    t.equal(amounts(await together.spend(ledger)), amounts(await alone.spend(ledger)))
  })

  t.test('more calls in one turn than a batch holds are all answered', async t => {
    const ledger = await subject.connect(t)
    const team = await seeded(ledger, 3000)
    const verdicts = await Promise.all(Array.from({ length: 500 }, () => ledger.admit(team.call())))
    const holds = verdicts.flatMap(verdict => (verdict.kind === 'admitted' ? [verdict.hold] : []))
    t.equal(holds.length, 300)
    await ledger.renew(holds)
    await Promise.all(holds.map(hold => ledger.extend(hold, 11)))
    t.equal(amounts(await team.spend(ledger)), '0+3300')
    await Promise.all(holds.map(hold => ledger.settle(hold, { costNano: 1, tokens: 1 })))
    t.equal(amounts(await team.spend(ledger)), '300+0')
  })

  t.test(
    'an amount that is not a whole number is refused without harm to other calls of the turn',
    async t => {
      const ledger = await subject.connect(t)
      const team = await seeded(ledger, 100)
      const good = ledger.admit(team.call())
      await t.rejects(ledger.admit(team.call({ estimateNano: 0.5 })), RangeError)
      await t.rejects(ledger.admit(team.call({ estimateTokens: -1 })), RangeError)
      t.match(await good, { kind: 'admitted' })
      const hold = await held(ledger, team.call())
      await t.rejects(ledger.settle(hold, { costNano: Number.NaN, tokens: 0 }), RangeError)
      t.equal(amounts(await team.spend(ledger)), '0+20')
    },
  )

  t.test('the store answers a ping', async t => {
    const ledger = await subject.connect(t)
    await t.resolves(ledger.ping())
  })
}

/** Two keys, several limits, estimates of different sizes: enough for every kind of verdict. */
function mixedCalls(team: Fixture): AdmitCall[] {
  const otherKey = randomUUID()
  return Array.from({ length: 60 }, (_, i) =>
    team.call({
      credentialId: i % 3 === 0 ? otherKey : team.credentialId,
      estimateNano: (i * 13) % 37,
      estimateTokens: (i * 7) % 11,
      budgets: i % 4 === 0 ? team.budgets.slice(1) : team.budgets,
      maxRpm: i % 3 === 0 ? 9 : null,
      maxTpm: i % 5 === 0 ? 40 : null,
    }),
  )
}

/** The same team with another budget. */
const fixtureOf = (team: Fixture, cap: number): Fixture => {
  const other = fixture(cap)
  return { ...other, call: change => team.call({ budgets: other.budgets, ...change }) }
}
