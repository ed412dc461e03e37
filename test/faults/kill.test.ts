/**
 * Design D6 by violence: under load a random one of the proxy, the control plane and PostgreSQL is killed with SIGKILL at
 * a random moment, twenty times, and afterwards the books must agree with the provider's own bill to the nano-dollar.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { type Test, test } from 'tap'
import { createBudget, listBudgets } from '../../shared/contract/budgets.js'
import { connectLedger } from '../../shared/ledger/connect.js'
import { HOLD_TTL_MS } from '../../shared/ledger/ledger.js'
import type { BillEntry, FakeProvider } from '../support/fake-provider.js'
import { addVirtualKey, expect } from '../support/gateway-team.js'
import { testRedis } from '../support/redis.js'
import type { System } from '../support/system.js'
import { type Entry, FRACTIONAL, grouped, priceNano, readEntries, readTotals, type Totals } from './books.js'
import type { SeenCall } from './client.js'
import { drained, LOOSE_ENDS, until } from './gauges.js'
import { type Load, startLoad, tally } from './load.js'
import { isAlive, type MortalPostgres, mortalPostgres } from './mortal-postgres.js'
import { type Chance, chance } from './random.js'
import { MODEL, NANO, type Scene, scene } from './scene.js'

const ROUNDS = 20
const CALLERS = 16
/** The next kill comes at a moment drawn from this stretch after everything was up again. */
const QUIET_MS = 1_200
const DOWN_MS = 300

type Victim = 'proxy' | 'control plane' | 'PostgreSQL'

interface Kill {
  victim: Victim
  atMs: number
  /** All of it is dead. */
  goneMs: number
  /** Started again and ready. */
  backMs: number
  /** How many calls were in flight at that moment. */
  live: number
}

interface MortalScene extends Scene {
  postgres: MortalPostgres
  keys: { id: string; key: string }[]
}

async function mortalScene(t: Test, redisUrl: string): Promise<MortalScene> {
  const postgres = await mortalPostgres(t)
  const it = await scene(t, { databaseUrl: postgres.url, redisUrl })
  const { system, team } = it
  const keys = [await addVirtualKey(system, team), await addVirtualKey(system, team)]
  for (const virtualKeyId of [null, ...keys.map(key => key.id)]) {
    const body = { period: 'total', limitUsd: 1000, virtualKeyId } as const
    await expect(system, createBudget, { as: team.apiKey, body })
  }
  return { ...it, postgres, keys }
}

/** Plain and streamed, of many sizes and speeds; one in sixteen goes away early, one in five joins a shared trace. */
function startCallers({ keys, client }: MortalScene, luck: Chance): Load {
  const traces = Array.from({ length: 12 }, () => randomUUID())
  return startLoad(client, CALLERS, number => {
    const speed = `headDelay=${luck.between(5, 60)} chunkDelay=${luck.between(1, 8)}`
    const size = `chunks=${luck.between(1, 12)} cachedTokens=${luck.between(0, 9)}`
    return {
      key: keys[number % keys.length]!.key,
      model: MODEL,
      content: `[fault ${speed} ${size}] ${'word '.repeat(luck.between(0, 40))}`,
      stream: luck.next() < 0.5,
      ...(luck.next() < 0.2 && { headers: { 'x-trace-id': traces[luck.between(0, traces.length - 1)]! } }),
      ...(luck.next() < 1 / 16 && { leaveAfterMs: luck.between(1, 90) }),
    }
  })
}

async function killRounds(it: MortalScene, load: Load, luck: Chance): Promise<Kill[]> {
  const { system, postgres } = it
  const { proxy, controlPlane } = system
  const victims: Record<Victim, { kill(): Promise<unknown>; start(): Promise<void> }> = {
    proxy: { kill: () => proxy.end('SIGKILL'), start: () => proxy.start() },
    'control plane': { kill: () => controlPlane.end('SIGKILL'), start: () => controlPlane.start() },
    PostgreSQL: postgres,
  }
  const names = Object.keys(victims) as Victim[]
  // Each in turn, in random order: a purely random choice would now and then leave one out.
  const order = luck.shuffled(Array.from({ length: ROUNDS }, (_, round) => names[round % names.length]!))
  const kills: Kill[] = []
  for (const victim of order) {
    await sleep(luck.between(0, QUIET_MS))
    const kill: Kill = { victim, atMs: performance.now(), goneMs: 0, backMs: 0, live: load.live.size }
    await victims[victim].kill()
    kill.goneMs = performance.now()
    await sleep(luck.between(0, DOWN_MS))
    await victims[victim].start()
    await until(
      `both ready after the death of ${victim}`,
      20_000,
      () => notReady(system),
      missing => missing === '',
    )
    kill.backMs = performance.now()
    kills.push(kill)
  }
  await sleep(500)
  return kills
}

/** What /readyz of both programs has to complain about; empty when they are ready. */
async function notReady({ controlPlaneUrl, origin }: System): Promise<string> {
  const answers = [controlPlaneUrl, origin].map(async url => {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) })
    return response.ok ? '' : response.text()
  })
  return (await Promise.all(answers.map(answer => answer.catch(String)))).join('')
}

/** A client that left this long before a kill may not have been noticed. */
const NOTICE_MS = 200

/** Whether the proxy had the call when it died. */
const wasInFlight = (call: SeenCall | undefined, kills: readonly Kill[]) =>
  kills.some(
    ({ victim, atMs, goneMs }) =>
      victim === 'proxy' &&
      call !== undefined &&
      call.startedAtMs < goneMs &&
      call.endedAtMs > (call.outcome === 'left' ? atMs - NOTICE_MS : atMs),
  )

/** Whether a call was under way when the proxy died, or knocked while it was dead or not yet listening. */
const metsKill = (call: SeenCall, kills: readonly Kill[]) =>
  kills.some(
    ({ victim, atMs, backMs }) => victim === 'proxy' && call.startedAtMs < backMs && call.endedAtMs > atMs,
  )

test('twenty kills lose no charge and double none', { timeout: 240_000 }, async t => {
  const redis = testRedis(t)
  if (redis === null) return
  const luck = chance()
  t.comment(`TEST_SEED=${luck.seed}`)
  const it = await mortalScene(t, redis.url)
  const startedAt = performance.now()
  const load = startCallers(it, chance(luck.seed + 1))
  t.teardown(() => load.stop())
  const kills = await killRounds(it, load, luck)
  await load.stop()
  const loadSeconds = (performance.now() - startedAt) / 1000
  await drained(it.system)
  const [entries, totals] = [await readEntries(it.sql), await readTotals(it.sql)]
  const { calls } = load
  comment(t, { kills, calls, entries, bill: it.fake.bill, loadSeconds })

  await t.test('the programs that were not killed lived on', async t =>
    checkPrograms(t, it.system, calls, kills),
  )
  await t.test('the charges agree with the provider’s bill', async t =>
    checkBill(t, calls, kills, entries, it.fake),
  )
  await t.test('sums, spans, traces and rollups agree with the charges', async t =>
    checkSums(t, entries, totals),
  )
  await t.test('budgets show what was charged, and no reservation is left', async t =>
    checkBudgets(t, it, redis.url, kills, entries),
  )
})

async function checkPrograms(t: Test, system: System, calls: readonly SeenCall[], kills: readonly Kill[]) {
  for (const program of [system.proxy, system.controlPlane]) {
    t.ok(isAlive(program.pid))
    t.notMatch(program.output(), LOOSE_ENDS)
  }
  const failed = calls.filter(({ outcome }) => outcome !== 'complete' && outcome !== 'left')
  const strange = failed.filter(call => !metsKill(call, kills))
  // Redis missed its deadline of 250 ms: on a machine that runs other tests too that may happen, and is answered so.
  const isBusy = (call: SeenCall) => call.errorCode === 'LEDGER_UNAVAILABLE'
  const unexplained = strange.filter(call => !isBusy(call))
  t.equal(unexplained.length, 0, `every failed call met a dead proxy; ${tally(unexplained)}`)
  t.ok(strange.length < calls.length / 100, tally(strange))
}

/** Invariants I4 and I5 of the reliability notes. */
function checkBill(
  t: Test,
  calls: readonly SeenCall[],
  kills: readonly Kill[],
  entries: readonly Entry[],
  fake: FakeProvider,
) {
  const byToken = grouped(entries, entry => entry.token ?? 'no span')
  const bills = new Map(fake.bill.map(bill => [bill.id, bill]))
  const billed = new Map(fake.bill.map(bill => [bill.user, bill]))
  const complete = calls.filter(call => call.outcome === 'complete')
  t.equal(billed.size, fake.bill.length, 'the provider was asked once a call')

  let chargedNano = 0
  let billedNano = 0
  const wrong: string[] = []
  for (const call of complete) {
    const bill = bills.get(call.answerId ?? '')
    const [entry, ...more] = byToken.get(call.token) ?? []
    const price = bill === undefined ? Number.NaN : priceNano(bill, FRACTIONAL)
    const isRight =
      more.length === 0 &&
      entry?.costNano === price &&
      entry.requestId === call.headers['x-gateway-request-id']
    if (!isRight) wrong.push(`${call.token}: charged ${entry?.costNano} of ${price}, ${more.length} more`)
    chargedNano += entry?.costNano ?? 0
    billedNano += price
  }
  t.same(wrong, [], 'every complete answer is charged once, at the price of its bill')
  t.equal(chargedNano, billedNano, 'the sums agree to the nano-dollar')

  t.equal(new Set(entries.map(entry => entry.requestId)).size, entries.length, 'no charge twice')
  t.same(
    [...byToken].filter(([, rows]) => rows.length > 1).map(([token]) => token),
    [],
    'no call charged twice',
  )
  const unbilled = entries.filter(entry => entry.costNano > 0 && !billed.has(entry.token))
  // Its request was on the wire when the client left, and the provider saw the end of the connection first.
  const isLeavers = (entry: Entry) => entry.estimated && entry.errorCode === 'client_disconnected'
  t.same(
    unbilled.filter(entry => !isLeavers(entry)),
    [],
    'every charge belongs to an answer that the provider billed, or to a client that left',
  )

  const seen = new Map(calls.map(call => [call.token, call]))
  const uncharged = fake.bill.filter(bill => !byToken.has(bill.user ?? ''))
  const unexplained = uncharged.filter(bill => !wasInFlight(seen.get(bill.user ?? ''), kills))
  t.same(unexplained, [], 'only calls in flight when the proxy was killed went without a charge')
}

async function checkSums(t: Test, entries: readonly Entry[], totals: Totals) {
  const sum = entries.reduce((total, entry) => total + entry.costNano, 0)
  t.equal(entries.length, totals.charges, 'every charge has one span')
  t.ok(entries.every(entry => entry.token !== null && entry.spanCostNano === entry.costNano))
  t.match(totals, { chargesNano: sum, spendByDayNano: sum, spendByDayRequests: entries.length })
  t.match(totals, { spans: entries.length, wrongTraces: 0, spansWithoutTrace: 0, deadLetters: 0 })
}

/** Invariants I2 and I3. The control plane reconciles every minute, and orphaned reservations live for one. */
async function checkBudgets(
  t: Test,
  { system, team, teamId }: Scene,
  redisUrl: string,
  kills: readonly Kill[],
  entries: readonly Entry[],
) {
  const ledger = await connectLedger({ redisUrl, log: pino({ level: 'silent' }) })
  t.teardown(() => ledger.close())
  const charged = (keyId: string | null) =>
    entries
      .filter(entry => keyId === null || entry.virtualKeyId === keyId)
      .reduce((sum, entry) => sum + entry.costNano, 0)
  const spends = () => expect(system, listBudgets, { as: team.apiKey })
  const reconciled = await until('spendUsd = charges', 120_000, spends, budgets =>
    budgets.every(budget => Math.round(budget.spendUsd * NANO) === charged(budget.virtualKeyId)),
  )
  t.equal(reconciled.length, 3)
  const budgets = reconciled.map(({ id, period }) => ({ budgetId: id, period }))
  const lastKill = kills.findLast(kill => kill.victim === 'proxy')?.goneMs ?? 0
  const leftMs = HOLD_TTL_MS + 20_000 - (performance.now() - lastKill)
  const held = () => ledger.spend(teamId, budgets)
  await until('no holds', Math.max(leftMs, 1_000), held, figures =>
    figures.every(figure => figure?.heldNano === 0),
  )
}

function comment(
  t: Test,
  of: {
    kills: Kill[]
    calls: readonly SeenCall[]
    entries: Entry[]
    bill: readonly BillEntry[]
    loadSeconds: number
  },
): void {
  const victims = grouped(of.kills, kill => kill.victim)
  const charged = new Set(of.entries.map(entry => entry.token))
  const complete = of.calls.filter(call => call.outcome === 'complete')
  const figures = {
    rounds: of.kills.length,
    kills: Object.fromEntries([...victims].map(([victim, kills]) => [victim, kills.length])),
    calls: of.calls.length,
    perSecond: Math.round(of.calls.length / of.loadSeconds),
    outcomes: tally(of.calls),
    charges: of.entries.length,
    duplicates: of.entries.length - new Set(of.entries.map(entry => entry.requestId)).size,
    lostOfComplete: complete.filter(call => !charged.has(call.token)).length,
    billedButUncharged: of.bill.filter(bill => !charged.has(bill.user)).length,
    inFlightAtProxyKills: of.kills
      .filter(kill => kill.victim === 'proxy')
      .reduce((sum, kill) => sum + kill.live, 0),
    proxyBackWithinMs: Math.round(
      Math.max(...of.kills.filter(kill => kill.victim === 'proxy').map(kill => kill.backMs - kill.goneMs)),
    ),
  }
  t.comment(JSON.stringify(figures))
}
