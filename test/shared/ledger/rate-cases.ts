import type { Test } from 'tap'
import { fixture, held, inShort, type Subject } from './subject.js'

/** Request and token windows, and what the configuration marker says. */
export function rateCases(t: Test, subject: Subject): void {
  t.test('with maxRpm 1 the allowed call leaves 0 and the next is told when to come back', async t => {
    const ledger = await subject.connect(t)
    const team = fixture()
    const first = await ledger.admit(team.call({ maxRpm: 1 }))
    t.match(first, { kind: 'admitted', remainingRequests: 0 })
    const second = await ledger.admit(team.call({ maxRpm: 1 }))
    t.match(second, { kind: 'rate_limited', window: 'requests' })
    const seconds = second.kind === 'rate_limited' ? second.retryAfterSeconds : 0
    t.ok(seconds >= 59 && seconds <= 60, `Retry-After is ${seconds}`)
  })

  t.test('without a limit there is no figure of what remains', async t => {
    const ledger = await subject.connect(t)
    t.match(await ledger.admit(fixture().call()), { kind: 'admitted', remainingRequests: null })
  })

  t.test('a refused call is not counted', async t => {
    const team = fixture()
    const now = subject.at({ clockOffsetMs: 0 })
    const soon = subject.at({ clockOffsetMs: 59_000 })
    const later = subject.at({ clockOffsetMs: 60_500 })
    await now.admit(team.call({ maxRpm: 1 }))
    t.match(await soon.admit(team.call({ maxRpm: 1 })), { kind: 'rate_limited', retryAfterSeconds: 1 })
    t.match(await later.admit(team.call({ maxRpm: 1 })), { kind: 'admitted', remainingRequests: 0 })
  })

  t.test(
    'a clock that is set back locks no key out, and lets none through twice when it is there again',
    async t => {
      const team = fixture()
      const call = () => team.call({ maxRpm: 3, maxTpm: 15 })
      for (const clockOffsetMs of [3_600_000, 0, 3_600_000]) {
        const ledger = subject.at({ clockOffsetMs })
        const verdicts = []
        for (let count = 0; count < 4; count++) verdicts.push(await ledger.admit(call()))
        t.match(
          verdicts.map(({ kind }) => kind),
          ['admitted', 'admitted', 'admitted', 'rate_limited'],
          `${clockOffsetMs} ms ahead`,
        )
      }
    },
  )

  t.test('Retry-After is when enough of the oldest calls have left the window', async t => {
    const team = fixture()
    for (const seconds of [0, 10, 20]) {
      await subject.at({ clockOffsetMs: seconds * 1000 }).admit(team.call({ maxTpm: 15 }))
    }
    const at30 = subject.at({ clockOffsetMs: 30_000 })
    const small = await at30.admit(team.call({ maxTpm: 15 }))
    const large = await at30.admit(team.call({ maxTpm: 15, estimateTokens: 10 }))
    const whole = await at30.admit(team.call({ maxTpm: 15, estimateTokens: 16 }))
    const seconds = [small, large, whole].map(verdict =>
      verdict.kind === 'rate_limited' ? verdict.retryAfterSeconds : 0,
    )
    t.same(seconds, [30, 40, 50])
  })

  t.test(
    'no 60 s ever hold more than maxRpm calls (I8), and a call is refused 1 s early at most',
    async t => {
      const team = fixture()
      const limit = 7
      const admittedAtMs: number[] = []
      const startMs = Date.now()
      let refusedEarly = 0
      // A clock of its own: 400 calls over about 200 s, at uneven steps.
      for (let i = 0, aheadMs = 0; i < 400; i++, aheadMs += (i * 7919) % 1000) {
        const verdict = await subject
          .at({ clockOffsetMs: startMs + aheadMs - Date.now() })
          .admit(team.call({ maxRpm: limit }))
        const atMs = startMs + aheadMs
        if (verdict.kind === 'admitted') admittedAtMs.push(verdict.hold.admittedAtMs)
        else if (admittedAtMs.filter(at => at > atMs - 60_000 - 1_100).length < limit) refusedEarly++
      }
      const crowded = admittedAtMs.filter((at, i) => {
        const nth = admittedAtMs[i + limit]
        return nth !== undefined && nth - at < 60_000
      })
      t.equal(crowded.length, 0)
      t.equal(refusedEarly, 0)
      t.ok(admittedAtMs.length >= 3 * limit, `${admittedAtMs.length} calls were admitted`)
    },
  )

  t.test('a settle corrects the token window to the real tokens', async t => {
    const ledger = await subject.connect(t)
    const team = fixture()
    const hold = await held(ledger, team.call({ maxTpm: 100, estimateTokens: 90 }))
    t.equal(
      inShort(await ledger.admit(team.call({ maxTpm: 100, estimateTokens: 20 })), team),
      'rate_limited tokens',
    )
    await ledger.settle(hold, { costNano: 0, tokens: 80 })
    const fits = await held(ledger, team.call({ maxTpm: 100, estimateTokens: 20 }))
    await ledger.settle(fits, { costNano: 0, tokens: 45 })
    await ledger.settle(fits, { costNano: 0, tokens: 0 })
    const full = await ledger.admit(team.call({ maxTpm: 126, estimateTokens: 2 }))
    t.equal(inShort(full, team), 'rate_limited tokens', '80 and 45 tokens are in the window')
    await held(ledger, team.call({ maxTpm: 127, estimateTokens: 2 }))
  })

  t.test('a settle corrects the bucket of admission, whenever it comes', async t => {
    const team = fixture()
    const call = { maxTpm: 100, estimateTokens: 90 }
    const hold = await held(subject.at({ clockOffsetMs: 0, holdTtlMs: 600_000 }), team.call(call))
    const at50 = subject.at({ clockOffsetMs: 50_000 })
    await at50.settle(hold, { costNano: 0, tokens: 99 })
    t.equal(inShort(await at50.admit(team.call({ ...call, estimateTokens: 2 })), team), 'rate_limited tokens')
    const at61 = subject.at({ clockOffsetMs: 61_000 })
    t.equal(inShort(await at61.admit(team.call({ ...call, estimateTokens: 100 })), team), 'admitted')
  })

  t.test('a settle after its bucket has left the window corrects nothing', async t => {
    const team = fixture()
    const hold = await held(
      subject.at({ holdTtlMs: 600_000 }),
      team.call({ maxTpm: 100, estimateTokens: 90 }),
    )
    const at90 = subject.at({ clockOffsetMs: 90_000 })
    await held(at90, team.call({ maxTpm: 100, estimateTokens: 60 }))
    await at90.settle(hold, { costNano: 0, tokens: 10 })
    const verdict = await at90.admit(team.call({ maxTpm: 100, estimateTokens: 50 }))
    t.equal(inShort(verdict, team), 'rate_limited tokens')
    await held(at90, team.call({ maxTpm: 100, estimateTokens: 40 }))
  })

  t.test('a release returns the tokens and keeps the request counted', async t => {
    const ledger = await subject.connect(t)
    const team = fixture()
    await ledger.release(await held(ledger, team.call({ maxRpm: 2, maxTpm: 10, estimateTokens: 10 })))
    const next = await ledger.admit(team.call({ maxRpm: 2, maxTpm: 10, estimateTokens: 10 }))
    t.match(next, { kind: 'admitted', remainingRequests: 0 })
  })

  t.test('a single call above maxTpm passes only when its window is empty', async t => {
    const ledger = await subject.connect(t)
    const team = fixture()
    await held(ledger, team.call({ maxTpm: 100, estimateTokens: 500 }))
    t.equal(
      inShort(await ledger.admit(team.call({ maxTpm: 100, estimateTokens: 1 })), team),
      'rate_limited tokens',
    )
    const other = fixture()
    await held(ledger, other.call({ maxTpm: 100, estimateTokens: 1 }))
    const large = await ledger.admit(other.call({ maxTpm: 100, estimateTokens: 500 }))
    t.equal(inShort(large, other), 'rate_limited tokens')
  })

  t.test('windows belong to a credential: another key of the team has its own', async t => {
    const ledger = await subject.connect(t)
    const team = fixture()
    await held(ledger, team.call({ maxRpm: 1 }))
    await held(ledger, team.call({ maxRpm: 1, credentialId: team.teamId }))
  })
}
