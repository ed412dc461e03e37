import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { test } from 'tap'
import type { Deps } from '../../../control-plane/deps.js'
import { reconcileLedger } from '../../../control-plane/ledger/reconcile.js'
import { seedTeam } from '../../../control-plane/ledger/seed.js'
import { connectLedger } from '../../../shared/ledger/connect.js'
import { LedgerUnavailable } from '../../../shared/ledger/ledger.js'
import { ownRedis } from '../../shared/ledger/own-servers.js'
import { startControlPlane } from '../../support/control-plane.js'
import { testRedis } from '../../support/redis.js'
import { team } from '../../support/seed.js'
import { budget, charge, type StoredBudget, ship } from './charges.js'

const WITHOUT_GRACE = 0

test('counters below the charges are raised, counters above are left alone', async t => {
  const cp = await startControlPlane(t)
  const [low, high] = [await team(cp), await team(cp)]
  const [lowBudget, highBudget] = [
    await budget(cp.deps, low.teamId, { period: 'total' }),
    await budget(cp.deps, high.teamId, { period: 'total' }),
  ]
  await seedTeam(cp.deps, low.teamId)
  await seedTeam(cp.deps, high.teamId)
  await cp.deps.ledger.raise(high.teamId, [{ budgetId: highBudget.id, periodKey: 'a', settledNano: 90 }])
  await ship(cp.deps, charge(low.teamId, { costNano: 50 }), charge(high.teamId, { costNano: 50 }))
  await reconcileLedger(cp.deps, WITHOUT_GRACE)
  t.same(await cp.deps.ledger.spend(low.teamId, [read(lowBudget)]), [{ settledNano: 50, heldNano: 0 }])
  t.same(await cp.deps.ledger.spend(high.teamId, [read(highBudget)]), [{ settledNano: 90, heldNano: 0 }])
})

test('a charge that is shipped before its call is settled is counted once', async t => {
  const cp = await startControlPlane(t)
  const { teamId } = await team(cp)
  const total = await budget(cp.deps, teamId, { period: 'total' })
  await seedTeam(cp.deps, teamId)
  const verdict = await cp.deps.ledger.admit({
    requestId: randomUUID(),
    teamId,
    credentialId: randomUUID(),
    estimateNano: 60,
    estimateTokens: 1,
    budgets: [{ ...read(total), capNano: 1000 }],
    maxRpm: null,
    maxTpm: null,
  })
  if (verdict.kind !== 'admitted') throw new Error(verdict.kind)
  await ship(cp.deps, charge(teamId, { costNano: 50 }))
  const reconciling = reconcileLedger(cp.deps, 500)
  await wait(100)
  await cp.deps.ledger.settle(verdict.hold, { costNano: 50, tokens: 1 })
  await reconciling
  t.same(await cp.deps.ledger.spend(teamId, [read(total)]), [{ settledNano: 50, heldNano: 0 }])
})

test('every team is reconciled, however many there are', async t => {
  const cp = await startControlPlane(t)
  const { teamId } = await team(cp)
  const keys = Array.from({ length: 250 }, () => randomUUID())
  await cp.deps.sql`
    insert into virtual_keys (team_id, id, name, key_hash, last_four, created_at)
    select ${teamId}, id::uuid, 'k', id, '0000', now() from unnest(${keys}::text[]) as given (id)`
  const budgets: StoredBudget[] = []
  for (const virtualKeyId of keys)
    budgets.push(await budget(cp.deps, teamId, { period: 'total', virtualKeyId }))
  await seedTeam(cp.deps, teamId)
  await ship(cp.deps, ...keys.map((virtualKeyId, i) => charge(teamId, { costNano: i + 1, virtualKeyId })))
  await reconcileLedger(cp.deps, WITHOUT_GRACE)
  const figures = await cp.deps.ledger.spend(teamId, budgets.map(read))
  t.same(
    figures.map(one => one?.settledNano),
    keys.map((_key, i) => i + 1),
  )
})

test('a ledger that is away fails no job', async t => {
  const cp = await startControlPlane(t)
  const { teamId } = await team(cp)
  await budget(cp.deps, teamId, { period: 'day' })
  const away = await connectLedger({ redisUrl: 'redis://127.0.0.1:1', log: cp.deps.log })
  t.teardown(() => away.close())
  await t.resolves(reconcileLedger({ ...cp.deps, ledger: away }, WITHOUT_GRACE))
})

test('a Redis flushed under load is seeded, reconciled, and ends at the exact sums (I3, I11)', async t => {
  if (testRedis(t) === null) return
  const server = await ownRedis(t)
  const cp = await startControlPlane(t)
  const { teamId, virtualKeyId } = await team(cp)
  const budgets = [
    await budget(cp.deps, teamId, { period: 'total' }),
    await budget(cp.deps, teamId, { period: 'month' }),
    await budget(cp.deps, teamId, { period: 'total', virtualKeyId }),
  ]
  const ledger = await connectLedger({ ...server.reach, deadlineMs: 10_000, log: cp.deps.log })
  t.teardown(() => ledger.close())
  const deps = { ...cp.deps, ledger }
  const load = { isOver: false, calls: 0, spentNano: 0, seeds: 0 }
  const clients = Array.from({ length: 16 }, () => client(deps, teamId, virtualKeyId, budgets, load))
  const admin = new Redis(server.reach.redisUrl ?? '')
  t.teardown(() => admin.disconnect())
  for (let i = 0; i < 3; i++) {
    await wait(400)
    await admin.flushall()
  }
  await wait(400)
  load.isOver = true
  await Promise.all(clients)
  t.ok(load.seeds >= 3, `seeded ${load.seeds} times in ${load.calls} calls`)
  const before = await ledger.spend(teamId, budgets.map(read))
  t.ok(
    before.every(one => (one?.settledNano ?? 0) <= load.spentNano),
    'never more than was spent',
  )
  await reconcileLedger(deps, WITHOUT_GRACE)
  const after = await ledger.spend(teamId, budgets.map(read))
  t.same(
    after.map(one => one?.settledNano),
    budgets.map(() => load.spentNano),
  )
  t.same(
    after.map(one => one?.heldNano),
    [0, 0, 0],
  )
})

/** Calls one after the other until the load is over, as a proxy makes them: admit, charge, settle, ship a little later. */
async function client(
  deps: Deps,
  teamId: string,
  virtualKeyId: string,
  budgets: StoredBudget[],
  load: { isOver: boolean; calls: number; spentNano: number; seeds: number },
): Promise<void> {
  const shipped: Promise<void>[] = []
  while (!load.isOver) {
    const requestId = randomUUID()
    const verdict = await deps.ledger.admit({
      requestId,
      teamId,
      credentialId: virtualKeyId,
      estimateNano: 1000,
      estimateTokens: 1,
      budgets: budgets.map(one => ({ ...read(one), capNano: 1_000_000_000 })),
      maxRpm: null,
      maxTpm: null,
    })
    if (verdict.kind === 'unseeded') {
      load.seeds++
      await seedTeam(deps, teamId)
      continue
    }
    if (verdict.kind !== 'admitted') throw new Error(verdict.kind)
    const costNano = Math.ceil(Math.random() * 1000)
    await wait(Math.random() * 20)
    load.calls++
    load.spentNano += costNano
    const { admittedAtMs } = verdict.hold
    const record = charge(teamId, { requestId, virtualKeyId, costNano, admittedAtMs })
    await deps.ledger.settle(verdict.hold, { costNano, tokens: 1 }).catch(error => {
      if (!(error instanceof LedgerUnavailable)) throw error
    })
    shipped.push(wait(Math.random() * 100).then(() => ship(deps, record)))
  }
  await Promise.all(shipped)
}

const read = ({ id, period }: StoredBudget) => ({ budgetId: id, period })
