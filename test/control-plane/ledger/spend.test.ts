import { randomUUID } from 'node:crypto'
import { type Test, test } from 'tap'
import { seedTeam } from '../../../control-plane/ledger/seed.js'
import { spendOf } from '../../../control-plane/ledger/spend.js'
import { seedLedger } from '../../../shared/contract/internal.js'
import { connectLedger } from '../../../shared/ledger/connect.js'
import type { Ledger } from '../../../shared/ledger/ledger.js'
import { periodStartMs } from '../../../shared/ledger/period.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { budget, charge, type StoredBudget, ship } from './charges.js'

const DAY_MS = 86_400_000

/** A Thursday in the middle of a month, at noon: nothing rolls while the test runs. */
const noonMs = Date.parse('2027-04-15T12:00:00.000Z')

async function start(t: Test, overrides: { ledger?: Ledger } = {}): Promise<ControlPlane> {
  return startControlPlane(t, { now: () => noonMs, ...overrides })
}

/** A ledger whose clock stands where the control plane's does. */
async function controlPlaneAtNoon(t: Test): Promise<ControlPlane> {
  const cp = await start(t)
  const ledger = await connectLedger({
    databaseUrl: cp.databaseUrl,
    clockOffsetMs: noonMs - Date.now(),
    deadlineMs: 10_000,
    log: cp.deps.log,
  })
  await cp.deps.ledger.close()
  cp.deps.ledger = ledger
  return cp
}

async function spent(cp: ControlPlane, teamId: string, budgets: StoredBudget[]): Promise<number[]> {
  const found = await spendOf(cp.deps, teamId, budgets)
  return budgets.map(one => found.get(one.id) ?? -1)
}

test('a new budget counts what its scope has already spent in the current day, week or month', async t => {
  const cp = await controlPlaneAtNoon(t)
  const { teamId, virtualKeyId } = await team(cp)
  const weekStartMs = periodStartMs('week', noonMs) ?? 0
  const monthStartMs = periodStartMs('month', noonMs) ?? 0
  await ship(
    cp.deps,
    charge(teamId, { costNano: 1, admittedAtMs: noonMs }),
    charge(teamId, { costNano: 10, admittedAtMs: noonMs - DAY_MS / 2, virtualKeyId }),
    charge(teamId, { costNano: 100, admittedAtMs: noonMs - DAY_MS / 2 - 1, virtualKeyId }),
    charge(teamId, { costNano: 1_000, admittedAtMs: weekStartMs }),
    charge(teamId, { costNano: 10_000, admittedAtMs: weekStartMs - 1 }),
    charge(teamId, { costNano: 100_000, admittedAtMs: monthStartMs }),
    charge(teamId, { costNano: 1_000_000, admittedAtMs: monthStartMs - 1 }),
  )
  const createdAt = new Date(noonMs)
  const wide = await Promise.all(
    (['day', 'week', 'month', 'total'] as const).map(period =>
      budget(cp.deps, teamId, { period, createdAt }),
    ),
  )
  t.same(await spent(cp, teamId, wide), [11, 1_111, 111_111, 1])
  const own = await Promise.all(
    (['day', 'week'] as const).map(period => budget(cp.deps, teamId, { period, createdAt, virtualKeyId })),
  )
  t.same(await spent(cp, teamId, own), [10, 110], 'a key’s budget counts the key’s own charges')
})

test('a total budget counts from its creation, to the millisecond', async t => {
  const cp = await controlPlaneAtNoon(t)
  const { teamId } = await team(cp)
  const createdAt = new Date(noonMs - 3 * DAY_MS + 123)
  const total = await budget(cp.deps, teamId, { period: 'total', createdAt })
  await ship(
    cp.deps,
    charge(teamId, { costNano: 1, admittedAtMs: createdAt.getTime() - 1 }),
    charge(teamId, { costNano: 10, admittedAtMs: createdAt.getTime() }),
    charge(teamId, { costNano: 100, admittedAtMs: createdAt.getTime() + DAY_MS }),
    charge(teamId, { costNano: 1_000, admittedAtMs: noonMs }),
  )
  t.same(await spent(cp, teamId, [total]), [1_110])
})

test('spend is live: a settled call shows before its charge has been shipped', async t => {
  const cp = await controlPlaneAtNoon(t)
  const { teamId } = await team(cp)
  const day = await budget(cp.deps, teamId, { period: 'day' })
  await seedTeam(cp.deps, teamId)
  const verdict = await cp.deps.ledger.admit(callOn(teamId, day))
  if (verdict.kind !== 'admitted') throw new Error(verdict.kind)
  await cp.deps.ledger.settle(verdict.hold, { costNano: 1_234_567_891, tokens: 1 })
  t.same(await spent(cp, teamId, [day]), [1_234_567_891], 'exact to the nano-dollar')
})

test('while the ledger is away spend comes from the charges', async t => {
  const away = await connectLedger({
    redisUrl: 'redis://127.0.0.1:1',
    log: (await start(t)).deps.log,
  })
  const cp = await start(t, { ledger: away })
  const { teamId } = await team(cp)
  const day = await budget(cp.deps, teamId, { period: 'day' })
  await ship(cp.deps, charge(teamId, { costNano: 77, admittedAtMs: noonMs }))
  t.same(await spent(cp, teamId, [day]), [77])
  const answer = await cp.call(seedLedger, { body: { teamId }, as: { key: cp.deps.config.internalToken } })
  t.equal(answer.status, 503)
  t.equal(answer.error?.code, 'LEDGER_UNAVAILABLE')
  t.equal(answer.headers['retry-after'], '1')
})

test('a proxy that was told "unseeded" asks for a seed once, and its call passes', async t => {
  const cp = await controlPlaneAtNoon(t)
  const { teamId } = await team(cp)
  const day = await budget(cp.deps, teamId, { period: 'day' })
  await ship(cp.deps, charge(teamId, { costNano: 40, admittedAtMs: noonMs }))
  t.match(await cp.deps.ledger.admit(callOn(teamId, day)), { kind: 'unseeded', budgetIds: [day.id] })
  const answer = await cp.call(seedLedger, { body: { teamId }, as: { key: cp.deps.config.internalToken } })
  t.same(answer.body, { seeded: 1 })
  t.match(await cp.deps.ledger.admit(callOn(teamId, day)), { kind: 'admitted' })
  t.same(await spent(cp, teamId, [day]), [40])
})

test('near midnight the day on either side is seeded: the ledger’s clock may differ from ours', async t => {
  const cp = await start(t)
  const { teamId } = await team(cp)
  const day = await budget(cp.deps, teamId, { period: 'day' })
  const midnightMs = noonMs + DAY_MS / 2
  for (const [oursMs, theirsMs] of [
    [midnightMs - 30_000, midnightMs + 30_000],
    [midnightMs + DAY_MS + 30_000, midnightMs + DAY_MS - 30_000],
  ] as const) {
    const ledger = await connectLedger({
      databaseUrl: cp.databaseUrl,
      clockOffsetMs: theirsMs - Date.now(),
      deadlineMs: 10_000,
      log: cp.deps.log,
    })
    await seedTeam({ ...cp.deps, ledger, now: () => oursMs }, teamId)
    t.match(await ledger.admit(callOn(teamId, day)), { kind: 'admitted' })
    await ledger.close()
  }
})

test('seeding is for the other agh process only', async t => {
  const cp = await start(t)
  const seeded = await team(cp)
  const body = { teamId: seeded.teamId }
  for (const as of [{}, seeded.owner.session, seeded.owner.personalKey, seeded.virtualKey])
    t.equal((await cp.call(seedLedger, { body, as })).status, 401)
  const as = { key: cp.deps.config.internalToken }
  t.equal((await cp.call(seedLedger, { body: { teamId: 'x' }, as })).status, 404)
  t.same((await cp.call(seedLedger, { body: { teamId: randomUUID() }, as })).body, { seeded: 0 })
})

const callOn = (teamId: string, { id, period }: StoredBudget) => ({
  requestId: randomUUID(),
  teamId,
  credentialId: randomUUID(),
  estimateNano: 10,
  estimateTokens: 1,
  budgets: [{ budgetId: id, period, capNano: 1_000_000_000_000 }],
  maxRpm: null,
  maxTpm: null,
})
