/**
 * What calls see while the ledger's Redis is frozen, gone, or has forgotten everything (spec 4, LEDGER_DOWN; reliability
 * notes, 2.6): on real processes, under load, on a Redis of the test's own.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { type Test, test } from 'tap'
import { reconcileLedger } from '../../control-plane/ledger/reconcile.js'
import { createBudget, listBudgets, updateBudget } from '../../shared/contract/budgets.js'
import { revokeVirtualKey } from '../../shared/contract/virtual-keys.js'
import { connectLedger } from '../../shared/ledger/connect.js'
import { type OwnServer, ownRedis } from '../shared/ledger/own-servers.js'
import { addVirtualKey, expect } from '../support/gateway-team.js'
import { testRedis } from '../support/redis.js'
import { readEntries } from './books.js'
import type { Client, SeenCall } from './client.js'
import { drained } from './gauges.js'
import { type Load, startLoad, tally } from './load.js'
import { MODEL, NANO, type Scene, scene } from './scene.js'

const OUTAGE_MS = 4_000
const CALLERS = 12

type Mode = 'closed' | 'open'
type Outage = 'frozen' | 'stopped'

interface DownScene extends Scene {
  redis: OwnServer
}

interface Key {
  id: string
  key: string
  budgetId: string
}

async function downScene(t: Test, ledgerDown: Mode): Promise<DownScene> {
  const redis = await ownRedis(t)
  const redisUrl = redis.reach.redisUrl ?? ''
  return { redis, ...(await scene(t, { redisUrl, env: { LEDGER_DOWN: ledgerDown } })) }
}

async function budgetedKey({ system, team }: Scene, limitUsd: number): Promise<Key> {
  const key = await addVirtualKey(system, team)
  const body = { period: 'total', limitUsd, virtualKeyId: key.id } as const
  const budget = await expect(system, createBudget, { as: team.apiKey, body })
  return { ...key, budgetId: budget.id }
}

/** Half of the calls with the first key, half with the second; the token tells which. */
const startCallers = (client: Client, keys: Record<string, string>): Load =>
  startLoad(client, CALLERS, number => {
    const names = Object.keys(keys)
    const name = names[number % names.length] ?? ''
    const content = '[fault headDelay=30 chunkDelay=2]'
    const asking = { key: keys[name] ?? '', model: MODEL, content, maxTokens: 6 }
    return { ...asking, token: `${name}-${number}`, stream: number % 4 < 2 }
  })

const callsOf = (load: Load, name: string) => load.calls.filter(call => call.token.startsWith(`${name}-`))
const failed = (calls: readonly SeenCall[]) => calls.filter(call => call.outcome !== 'complete')
const tookMs = (call: SeenCall) => call.endedAtMs - call.startedAtMs

function quantile(calls: readonly SeenCall[], share: number): number {
  const sorted = calls.map(tookMs).sort((a, b) => a - b)
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)
}

interface Answers {
  statuses: number[]
  afterMs: number
}

/** Asks with one key, again and again, until an answer with that status; every status on the way is kept. */
async function askUntil(client: Client, key: string, status: number, limitMs: number): Promise<Answers> {
  const startedAt = performance.now()
  const statuses: number[] = []
  while (statuses.at(-1) !== status && performance.now() - startedAt < limitMs) {
    if (statuses.length > 0) await sleep(50)
    const asking = { token: 'probe', key, model: MODEL, content: 'Hi', stream: false }
    statuses.push((await client.ask(asking)).status)
  }
  return { statuses, afterMs: Math.round(performance.now() - startedAt) }
}

/** What happened around one outage. */
interface Observed {
  load: Load
  downAtMs: number
  upAtMs: number
  /** A key was revoked and a limit lowered during the outage. */
  changesTookMs: number
  revoked: Answers
  revokedAfterwards: Answers
  /** From before the end of the outage on. */
  lowered: Answers
}

async function outage(t: Test, it: DownScene, how: Outage): Promise<Observed> {
  const { redis, system, team, client } = it
  const as = team.apiKey
  const free = await addVirtualKey(system, team)
  const budgeted = await budgetedKey(it, 1000)
  const lowered = await budgetedKey(it, 1000)
  const doomed = await addVirtualKey(system, team)
  for (const { key } of [lowered, doomed]) await askUntil(client, key, 200, 1_000)
  const load = startCallers(client, { free: free.key, budgeted: budgeted.key })
  t.teardown(() => load.stop())
  await sleep(1_000)

  const downAtMs = performance.now()
  if (how === 'frozen') redis.freeze()
  else await redis.kill()
  await sleep(500)
  const changedFrom = performance.now()
  await expect(system, revokeVirtualKey, { as, params: { id: doomed.id } })
  await expect(system, updateBudget, { as, params: { id: lowered.budgetId }, body: { limitUsd: 0 } })
  const changesTookMs = Math.round(performance.now() - changedFrom)
  const revoked = await askUntil(client, doomed.key, 401, 3_000)
  await sleep(Math.max(0, downAtMs + OUTAGE_MS - performance.now()))

  const watching = askUntil(client, lowered.key, 402, 8_000)
  const upAtMs = performance.now()
  if (how === 'frozen') redis.thaw()
  else await redis.start()
  const answers = await watching
  const revokedAfterwards = await askUntil(client, doomed.key, 401, 1)
  await sleep(1_500)
  await load.stop()
  return { load, downAtMs, upAtMs, changesTookMs, revoked, revokedAfterwards, lowered: answers }
}

async function checkOutage(t: Test, it: DownScene, mode: Mode, seen: Observed): Promise<void> {
  const { load, downAtMs, upAtMs, changesTookMs, revoked, lowered } = seen
  const refused = failed(callsOf(load, 'budgeted'))
  const recoveredMs = Math.round(Math.max(upAtMs, ...refused.map(call => call.endedAtMs)) - upAtMs)
  const during = callsOf(load, 'free').filter(call => call.startedAtMs > downAtMs && call.endedAtMs < upAtMs)
  const figures = {
    free: { during: during.length, p50: quantile(during, 0.5), p99: quantile(during, 0.99) },
    budgeted: tally(callsOf(load, 'budgeted')),
    refusedMs: { p50: quantile(refused, 0.5), p99: quantile(refused, 0.99), max: quantile(refused, 1) },
    changesTookMs,
    revokedAfterMs: revoked.afterMs,
    lowered,
    recoveredMs,
  }
  t.comment(JSON.stringify(figures))

  t.equal(failed(callsOf(load, 'free')).length, 0, 'a key without limits never fails')
  t.ok(during.length > 20, 'it is served all the while')
  t.ok(changesTookMs < 4_000, 'changes are taken all the while')
  t.equal(revoked.statuses.at(-1), 401, 'a revoked key without limits is refused during the outage')
  t.ok(revoked.afterMs <= 2_000, `after ${revoked.afterMs} ms`)
  t.same(seen.revokedAfterwards.statuses, [401], 'and stays refused')
  t.equal(lowered.statuses.at(-1), 402, 'a lowered limit holds when the ledger is back')
  t.ok(recoveredMs <= 5_000, `recovered after ${recoveredMs} ms`)
  if (mode === 'closed') checkClosed(t, refused, lowered.statuses)
  await checkBooks(t, it, load, mode)
}

function checkClosed(t: Test, refused: readonly SeenCall[], lowered: readonly number[]): void {
  t.ok(refused.length > 20, 'calls with a budget are refused')
  const isRight = (call: SeenCall) =>
    call.status === 503 && call.errorCode === 'LEDGER_UNAVAILABLE' && Number(call.headers['retry-after']) >= 1
  t.ok(refused.every(isRight), `all of them with 503: ${tally(refused)}`)
  // 250 ms of deadline; the rest is what a busy machine adds. Without a deadline it would be the outage, 4 s.
  t.ok(quantile(refused, 0.5) <= 300 && quantile(refused, 0.99) <= 1_500, 'and soon')
  t.ok(!lowered.includes(200), `the first call that is judged meets the new limit: ${lowered}`)
}

/** After a drain and one run of the reconciler the budgets show what was charged. */
async function checkBooks(t: Test, it: DownScene, load: Load, mode: Mode): Promise<void> {
  const { system, sql, team } = it
  await drained(system)
  await reconcile(t, it, 500)
  const entries = await readEntries(sql)
  const names = new Map(entries.map(entry => [entry.token, entry]))
  const complete = load.calls.filter(call => call.outcome === 'complete')
  t.ok(
    complete.every(call => names.has(call.token)),
    'every answered call is charged',
  )
  for (const budget of await expect(system, listBudgets, { as: team.apiKey })) {
    const own = entries.filter(entry => entry.virtualKeyId === budget.virtualKeyId)
    const charged = own.reduce((sum, entry) => sum + entry.costNano, 0)
    t.equal(Math.round(budget.spendUsd * NANO), charged, 'spendUsd is what was charged')
  }
  const bypassed = entries.filter(entry => entry.ledgerBypassed)
  if (mode === 'closed') {
    t.same(bypassed, [])
    return
  }
  t.equal(failed(callsOf(load, 'budgeted')).length, 0, 'a key with a budget is let through')
  t.ok(bypassed.length > 20, 'and its spans say so')
  t.ok(bypassed.every(entry => entry.virtualKeyId !== null && !entry.token?.startsWith('free')))
}

/** Runs the job once. What was admitted too late for its caller must have been given back by then. */
async function reconcile(
  t: Test,
  { redis, sql, system, team, teamId }: DownScene,
  graceMs: number,
): Promise<void> {
  const log = pino({ level: 'silent' })
  const ledger = await connectLedger({ ...redis.reach, deadlineMs: 5_000, log })
  t.teardown(() => ledger.close())
  await reconcileLedger({ sql, ledger, log, now: Date.now }, graceMs)
  const listed = await expect(system, listBudgets, { as: team.apiKey })
  const budgets = listed.map(({ id, period }) => ({ budgetId: id, period }))
  const figures = await ledger.spend(teamId, budgets)
  t.ok(
    figures.every(figure => figure?.heldNano === 0),
    'no reservation is left',
  )
}

for (const how of ['frozen', 'stopped'] as const) {
  for (const mode of ['closed', 'open'] as const) {
    test(`a ${how} Redis with LEDGER_DOWN=${mode}`, { timeout: 60_000 }, async t => {
      if (testRedis(t) === null) return
      const it = await downScene(t, mode)
      await checkOutage(t, it, mode, await outage(t, it, how))
    })
  }
}

for (const mode of ['closed', 'open'] as const) {
  test(`an empty Redis that nobody can fill is as good as none: LEDGER_DOWN=${mode}`, async t => {
    if (testRedis(t) === null) return
    const it = await downScene(t, mode)
    const { key } = await budgetedKey(it, 1000)
    const { statuses } = await askUntil(it.client, key, 200, 1_000)
    t.same(statuses, [200])
    const admin = new Redis(it.redis.reach.redisUrl ?? '')
    t.teardown(() => admin.disconnect())
    await it.system.controlPlane.end('SIGKILL')
    await admin.flushall()
    const call = await it.client.ask({ token: 'after', key, model: MODEL, content: 'Hi', stream: false })
    t.same([call.status, call.errorCode], mode === 'open' ? [200, null] : [503, 'LEDGER_UNAVAILABLE'])
  })
}

test('a flush of Redis under load admits no more than what was in flight or unshipped, and the figures come back', async t => {
  if (testRedis(t) === null) return
  const it = await downScene(t, 'closed')
  const { redis, system, team, sql, client, fake } = it
  // A call costs some 6 micro-dollars: room for about 600.
  const limitUsd = 0.0035
  const key = await budgetedKey(it, limitUsd)
  const admin = new Redis(redis.reach.redisUrl ?? '')
  t.teardown(() => admin.disconnect())
  const load = startCallers(client, { budgeted: key.key })
  t.teardown(() => load.stop())
  const flushes: number[] = []
  for (let flush = 0; flush < 4; flush++) {
    await sleep(400)
    await admin.flushall()
    flushes.push(Date.now())
  }
  const deadline = performance.now() + 20_000
  const isRefused = (call: SeenCall) => call.status === 402 || call.errorCode === 'LEDGER_UNAVAILABLE'
  while (!load.calls.slice(-100).every(isRefused) && performance.now() < deadline) await sleep(100)
  await load.stop()
  await drained(system)
  await reconcile(t, it, 3_000)

  const entries = await readEntries(sql)
  const charged = entries.reduce((sum, entry) => sum + entry.costNano, 0)
  const missed = flushes.map(at =>
    entries
      // An insert that had begun was not committed yet.
      .filter(entry => entry.admittedAtMs <= at + 50 && entry.recordedAtMs > at - 100)
      .reduce((sum, entry) => sum + entry.costNano, 0),
  )
  const bound = missed.reduce((sum, nano) => sum + nano, limitUsd * NANO)
  const [budget] = await expect(system, listBudgets, { as: team.apiKey })
  t.comment(JSON.stringify({ calls: tally(load.calls), charged, cap: limitUsd * NANO, missed, bound }))
  // A busy machine's Redis misses its deadline now and then.
  const busy = load.calls.filter(call => call.errorCode === 'LEDGER_UNAVAILABLE').length
  const right = load.calls.filter(call => call.outcome === 'complete' || call.status === 402).length
  t.equal(right + busy, load.calls.length, `nothing but answers and 402: ${tally(load.calls)}`)
  t.ok(busy <= load.calls.length / 20, `${busy} found no ledger`)
  t.ok(load.calls.slice(-50).every(isRefused), 'the budget ends the load')
  t.ok(charged <= bound, `${charged} charged, ${bound} allowed`)
  t.equal(entries.length, fake.bill.length, 'refused calls reached no provider')
  t.equal(Math.round((budget?.spendUsd ?? 0) * NANO), charged, 'I11: the ledger equals the charges again')
})
