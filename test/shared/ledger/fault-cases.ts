import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { BREAKER_FAILURES } from '../../../shared/ledger/breaker.js'
import { type Ledger, LedgerUnavailable } from '../../../shared/ledger/ledger.js'
import type { OwnServer } from './own-servers.js'
import { amounts, connected, type Fixture, fixture, held, seeded } from './subject.js'

/** Stalls of a busy machine, on top of a deadline. */
const SLACK_MS = 750
const RECOVERY_MS = 2_000

/** A store that is frozen, gone, or back again. */
export function faultCases(t: Test, makeServer: (t: Test) => Promise<OwnServer>, deadlineMs: number): void {
  t.test(
    'a frozen store costs a few calls the deadline and the rest nothing, and is found again',
    async t => {
      const server = await makeServer(t)
      const ledger = await connected(t, server.reach)
      const team = await seeded(ledger, 1_000_000)
      const before = await held(ledger, team.call())
      server.freeze()
      const waits: number[] = []
      for (let i = 0; i < BREAKER_FAILURES; i++) waits.push(await refusal(t, ledger, team))
      t.ok(
        waits.every(ms => ms >= deadlineMs - 50 && ms <= deadlineMs + SLACK_MS),
        `${waits.map(Math.round)} ms`,
      )
      const quick: number[] = []
      for (let i = 0; i < 20; i++) quick.push(await refusal(t, ledger, team))
      const asked = quick.filter(ms => ms > deadlineMs / 2)
      t.ok(asked.length <= 1, `open: ${median(quick).toFixed(1)} ms, one probe at most`)
      await t.rejects(ledger.settle(before, { costNano: 1, tokens: 1 }), LedgerUnavailable)
      await t.rejects(ledger.ping(), LedgerUnavailable)
      await wait(1_200)
      await refusal(t, ledger, team)
      server.thaw()
      const backMs = await recovery(ledger, team)
      t.ok(backMs <= RECOVERY_MS, `back after ${Math.round(backMs)} ms`)
      await wait(100)
      // The one from before the frost, and those that `recovery` made; not those whose answer came too late.
      const live = Number(/\+(\d+)$/.exec(amounts(await team.spend(ledger)))?.[1])
      t.ok(live <= 20, `${live} held: what was admitted during the frost has been given back`)
    },
  )

  t.test('a killed store refuses at once, and is found again when it is back', async t => {
    const server = await makeServer(t)
    const ledger = await connected(t, server.reach)
    const team = await seeded(ledger, 1_000_000)
    await held(ledger, team.call())
    await server.kill()
    await wait(50)
    const waits: number[] = []
    for (let i = 0; i < 20; i++) waits.push(await refusal(t, ledger, team))
    const slow = waits.filter(ms => ms > deadlineMs / 2)
    t.ok(slow.length <= BREAKER_FAILURES, `gone: ${median(waits).toFixed(1)} ms, ${slow.length} of 20 slow`)
    await t.rejects(ledger.ping(), LedgerUnavailable)
    await server.start()
    const backMs = await recovery(ledger, team)
    t.ok(backMs <= RECOVERY_MS, `back after ${Math.round(backMs)} ms`)
    await t.resolves(ledger.ping())
  })

  t.test('a process starts while its store is away, and works once it is there', async t => {
    const server = await makeServer(t)
    await server.kill()
    const startedAt = performance.now()
    const ledger = await connected(t, server.reach)
    t.ok(performance.now() - startedAt < 5_000)
    await t.rejects(ledger.ping(), LedgerUnavailable)
    await server.start()
    t.ok((await recovery(ledger, fixture(100))) <= RECOVERY_MS)
  })
}

/** @returns how long the ledger took to say that it cannot be reached. */
async function refusal(t: Test, ledger: Ledger, team: Fixture): Promise<number> {
  const askedAt = performance.now()
  await t.rejects(ledger.admit(team.call()), LedgerUnavailable)
  return performance.now() - askedAt
}

/** @returns after how many milliseconds a call is answered again, trying each 20 ms as traffic would. */
async function recovery(ledger: Ledger, team: Fixture): Promise<number> {
  const backAt = performance.now()
  for (;;) {
    try {
      await ledger.admit(team.call())
      return performance.now() - backAt
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) throw error
    }
    await wait(20)
  }
}

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
