/**
 * Budgets and limits under a stampede (invariants I1, I2, I3, I7, I8 of the reliability notes): two proxy processes on one
 * port, a thousand calls at once, room for a hundred.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { type Test, test } from 'tap'
import { createBudget, listBudgets } from '../../shared/contract/budgets.js'
import { connectLedger } from '../../shared/ledger/connect.js'
import type { BudgetSpend } from '../../shared/ledger/ledger.js'
import { addModel, addVirtualKey, expect } from '../support/gateway-team.js'
import { testRedis } from '../support/redis.js'
import { FRACTIONAL, priceNano, readEntries } from './books.js'
import type { Client, SeenCall } from './client.js'
import { drained, until } from './gauges.js'
import { startLoad, tally } from './load.js'
import { MODEL, NANO, type Scene, scene } from './scene.js'

const CALLS = 1_000
/** Milliseconds per call at the provider: long enough for all of the stampede to be admitted or refused meanwhile. */
const CONTENT = '[fault headDelay=300]'

const twoProcesses = (t: Test, redisUrl: string | undefined): Promise<Scene> =>
  scene(t, { ...(redisUrl !== undefined && { redisUrl }), env: { PROXY_WORKERS: '2' } })

type Figures = readonly (BudgetSpend | null)[]

/** The ledger missed its deadline, as it may on a busy machine: refused too, and nothing admitted. */
const isBusy = (call: SeenCall) => call.errorCode === 'LEDGER_UNAVAILABLE'

/** All at once, each from a connection of its own, so that the kernel spreads them over the processes. */
async function stampede(client: Client, key: string, calls: number, content: string): Promise<SeenCall[]> {
  const load = startLoad(client, calls, number =>
    number < calls ? { key, model: MODEL, content, stream: number % 2 === 0, maxTokens: 6 } : null,
  )
  while (load.calls.length < calls) await sleep(20)
  return [...load.calls]
}

async function budgetRace(t: Test, redisUrl: string | undefined): Promise<void> {
  const it = await twoProcesses(t, redisUrl)
  const { system, fake, team, sql, client } = it
  const key = await addVirtualKey(system, team)
  await stampede(client, key.key, 8, CONTENT)
  await drained(system)
  const spentBefore = (await readEntries(sql)).reduce((sum, entry) => sum + entry.costNano, 0)
  // Room for two hundred calls at the price that the first eight had; a call holds about twice its price.
  const limitUsd = Math.round((spentBefore + (spentBefore / 8) * 200) / 1e5) / 1e4
  const capNano = Math.round(limitUsd * NANO)
  for (const virtualKeyId of [null, key.id]) {
    const body = { period: 'month', limitUsd, virtualKeyId } as const
    await expect(system, createBudget, { as: team.apiKey, body })
  }
  const watched = await watchSpend(t, it, redisUrl)
  const calls = await stampede(client, key.key, CALLS, CONTENT)
  const peaks = await watched.stop()
  await drained(system)

  const admitted = calls.filter(call => call.outcome === 'complete')
  const entries = await readEntries(sql)
  const chargedNano = entries.reduce((sum, entry) => sum + entry.costNano, 0)
  const billedNano = fake.bill.reduce((sum, bill) => sum + priceNano(bill, FRACTIONAL), 0)
  const workers = readdirSync(join(system.dataDir, 'spool')).filter(name => /^\d/.test(name)).length
  t.comment(
    JSON.stringify({
      outcomes: tally(calls),
      capNano,
      chargedNano,
      billedNano,
      peakNano: peaks.most,
      polls: peaks.polls,
    }),
  )
  t.equal(workers, 2, 'two processes served')
  t.ok(admitted.length > 50 && admitted.length <= 210, `${admitted.length} calls were admitted`)
  t.ok(
    calls.every(call => call.outcome === 'complete' || call.status === 402 || isBusy(call)),
    'every other call was refused by the budget',
  )
  t.ok(peaks.most <= capNano, `I1: spent and held together never passed ${capNano}: ${peaks.most}`)
  t.ok(chargedNano <= capNano, 'nor did the charges')
  t.equal(fake.bill.length, 8 + admitted.length, 'I7: refused calls reached no provider')
  t.equal(chargedNano, billedNano, 'the charges are the provider’s bill')
  // What was admitted too late for its caller is given back a moment later.
  const isFree = (figures: Figures) => figures.every(figure => figure?.heldNano === 0)
  const figures = await until('nothing held', 10_000, watched.read, isFree)
  t.same(
    figures,
    [
      { settledNano: chargedNano, heldNano: 0 },
      { settledNano: chargedNano, heldNano: 0 },
    ],
    'I2, I3',
  )
  const budgets = await expect(system, listBudgets, { as: team.apiKey })
  t.ok(budgets.every(budget => Math.round(budget.spendUsd * NANO) === chargedNano))
  t.equal(await system.proxy.end('SIGTERM'), 0)
}

/** Reads the ledger again and again, beside everybody else. */
async function watchSpend(t: Test, { system, team, teamId }: Scene, redisUrl: string | undefined) {
  const log = pino({ level: 'silent' })
  const ledger = await connectLedger({ redisUrl, databaseUrl: system.databaseUrl, deadlineMs: 10_000, log })
  t.teardown(() => ledger.close())
  const budgets = await expect(system, listBudgets, { as: team.apiKey })
  const read = () =>
    ledger.spend(
      teamId,
      budgets.map(budget => ({ budgetId: budget.id, period: budget.period })),
    )
  const used = (figures: Figures) =>
    Math.max(...figures.map(figure => (figure?.settledNano ?? 0) + (figure?.heldNano ?? 0)))
  let stopping = false
  let most = 0
  let polls = 0
  const watching = (async () => {
    for (; !stopping; polls++) {
      most = Math.max(most, used(await read()))
      await sleep(2)
    }
  })()
  return {
    read,
    async stop() {
      stopping = true
      await watching
      return { most, polls }
    },
  }
}

async function rateRace(t: Test, redisUrl: string | undefined): Promise<void> {
  const { system, fake, team, client } = await twoProcesses(t, redisUrl)
  const maxRpm = 60
  const key = await addVirtualKey(system, team, { maxRpm })
  const calls = [
    ...(await stampede(client, key.key, 300, 'Hi')),
    ...(await stampede(client, key.key, 300, 'Hi')),
  ]
  const admitted = calls.filter(call => call.outcome === 'complete')
  t.comment(tally(calls))
  t.equal(fake.bill.length, admitted.length, 'I7: refused calls reached no provider')
  const busy = calls.filter(isBusy)
  t.ok(admitted.length <= maxRpm, 'I8: never more than allowed')
  t.ok(admitted.length >= maxRpm - busy.length, 'and not fewer')
  const refused = calls.filter(call => call.outcome !== 'complete' && !isBusy(call))
  t.ok(refused.every(call => call.errorCode === 'RATE_LIMITED' && Number(call.headers['retry-after']) >= 1))
  const remaining = new Set(admitted.map(call => call.headers['x-gateway-ratelimit-remaining']))
  t.equal(remaining.size, admitted.length, 'each admitted call was told another number of requests left')
  t.equal(await system.proxy.end('SIGTERM'), 0)
}

test('a thousand calls at once on a budget for a hundred', { timeout: 120_000 }, async t => {
  await t.test('on Redis', async t => {
    const redis = testRedis(t)
    if (redis !== null) await budgetRace(t, redis.url)
  })
  await t.test('on PostgreSQL', async t => budgetRace(t, undefined))
})

test('a request limit over two processes', { timeout: 60_000 }, async t => {
  await t.test('on Redis', async t => {
    const redis = testRedis(t)
    if (redis !== null) await rateRace(t, redis.url)
  })
  await t.test('on PostgreSQL', async t => rateRace(t, undefined))
})

test('a change of the configuration costs no key one of its requests', async t => {
  for (const redisUrl of [process.env.TEST_REDIS_URL, undefined]) {
    const { system, team, client } = await twoProcesses(t, redisUrl)
    const key = await addVirtualKey(system, team, { maxRpm: 40 })
    const calls: SeenCall[] = []
    for (let change = 0; change < 10; change++) {
      await addModel(system, team, `model-${change}`)
      calls.push(...(await stampede(client, key.key, 4, 'Hi')))
    }
    const served = calls.filter(call => !isBusy(call))
    const remaining = served.map(call => Number(call.headers['x-gateway-ratelimit-remaining']))
    t.ok(served.length > 0 && served.every(call => call.outcome === 'complete'))
    t.equal(new Set(remaining).size, served.length, 'each was told another number of requests left')
    t.ok(Math.min(...remaining) >= 40 - calls.length, `none was lost: ${Math.min(...remaining)} are left`)
    t.equal(await system.proxy.end('SIGTERM'), 0)
  }
})

test('a stream’s reservation is raised when its provider breaks max_tokens, and only then', async t => {
  const it = await twoProcesses(t, process.env.TEST_REDIS_URL)
  const { system, team, client } = it
  const key = await addVirtualKey(system, team)
  const body = { period: 'total', limitUsd: 1, virtualKeyId: key.id } as const
  await expect(system, createBudget, { as: team.apiKey, body })
  const watched = await watchSpend(t, it, process.env.TEST_REDIS_URL)
  const heldDuring = async (fault: string) => {
    const asking = { token: fault, key: key.key, model: MODEL, content: `[fault ${fault}]`, stream: true }
    let isOver = false
    const asked = client.ask({ ...asking, maxTokens: 6 }).finally(() => {
      isOver = true
    })
    const seen = new Set<number>()
    for (; !isOver; await sleep(5)) seen.add((await watched.read())[0]?.heldNano ?? 0)
    t.equal((await asked).outcome, 'complete')
    return [...seen].filter(nano => nano > 0)
  }
  t.equal((await heldDuring('chunkDelay=60')).length, 1, 'one amount from the first to the last token')
  const [first = 0, ...raised] = await heldDuring('chunkDelay=60 chunkBytes=400')
  t.ok(raised.length > 0 && raised.every(nano => nano > first), `raised from ${first} to ${raised}`)
  await watched.stop()
  t.equal(await system.proxy.end('SIGTERM'), 0)
})
