/**
 * A provider that fails in every way it can, thousands of times, mixed and under load: each admitted call leaves one
 * charge, at the right price, and the proxy is none the worse for it.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { createBudget, listBudgets } from '../../shared/contract/budgets.js'
import { addVirtualKey, expect } from '../support/gateway-team.js'
import { testRedis } from '../support/redis.js'
import { type Entry, FRACTIONAL, grouped, priceNano, readEntries, readTotals } from './books.js'
import type { SeenCall } from './client.js'
import { drained, LOOSE_ENDS, metric, residentMb } from './gauges.js'
import { startLoad, tally } from './load.js'
import { isAlive } from './mortal-postgres.js'
import { type Chance, chance } from './random.js'
import { MODEL, NANO, type Scene, scene } from './scene.js'

const CALLERS = 24

/** What a fault must look like from outside. Costs: `bill`, what the provider billed; `none`; `some`, an estimate. */
interface Expected {
  outcome: SeenCall['outcome']
  status?: number
  errorCode?: string
  cost: 'bill' | 'none' | 'some' | 'any'
}

interface Case {
  name: string
  /** In words of fake-fault.ts. */
  fault: string
  stream: boolean
  leaveAfterMs?: number
  /** How many of a round; default 12. */
  times?: number
  expected: Expected
}

const complete: Expected = { outcome: 'complete', status: 200, cost: 'bill' }
const failed: Expected = { outcome: 'refused', status: 502, errorCode: 'PROVIDER_ERROR', cost: 'none' }
const forwarded = (status: number): Expected => ({ ...failed, status })
/** The head was 200 already: an error frame and no `[DONE]`. */
const interrupted: Expected = { outcome: 'cut', status: 200, errorCode: 'PROVIDER_ERROR', cost: 'some' }
const left: Expected = { outcome: 'left', cost: 'any' }

const both = (name: string, fault: string, expected: Expected): Case[] =>
  [false, true].map(stream => ({ name, fault, stream, expected }))

const cases: Case[] = [
  ...both('no fault', 'chunks=9', complete),
  ...both('reset', 'reset', failed),
  ...[400, 404, 413, 422].flatMap(status => both(`${status}`, `status=${status}`, forwarded(status))),
  ...[401, 403, 402, 409].flatMap(status => both(`${status}`, `status=${status}`, failed)),
  ...both('429', 'status=429 retryAfter=7', { ...failed, status: 429, errorCode: 'PROVIDER_RATE_LIMITED' }),
  ...[500, 503, 504, 529].flatMap(status => both(`${status}`, `status=${status}`, failed)),
  ...both('500 that is no JSON', 'status=500 body=<html>', failed),
  ...both('hang', 'hang', left).map(each => ({ ...each, leaveAfterMs: 40 })),
  {
    name: 'slow stream left',
    fault: 'chunks=400 chunkDelay=2',
    stream: true,
    leaveAfterMs: 60,
    expected: left,
  },
  ...[0, 1, 60, 200].map(cut => ({
    name: `cut at ${cut}`,
    fault: `cut=${cut}`,
    stream: false,
    expected: failed,
  })),
  { name: 'stream cut at 0', fault: 'cut=0', stream: true, expected: failed },
  { name: 'stream cut at 1', fault: 'cut=1', stream: true, expected: failed },
  ...[400, 777, 1100].flatMap(cut =>
    ['', ' closeDelimited'].map(how => ({
      name: `stream cut at ${cut}${how}`,
      fault: `chunks=20 cut=${cut}${how}`,
      stream: true,
      expected: interrupted,
    })),
  ),
  { name: 'close-delimited', fault: 'closeDelimited', stream: true, expected: complete },
  { name: 'Content-Length too large', fault: 'lengthOff=5', stream: false, leaveAfterMs: 90, expected: left },
  { name: 'garbage', fault: 'garbage', stream: false, expected: failed },
  { name: 'garbage in a stream', fault: 'garbage', stream: true, expected: interrupted },
  ...both('one byte at a time', 'oneByte chunks=8', complete).map(each => ({ ...each, times: 4 })),
  // It has a finish reason, so nothing of the answer is missing.
  { name: 'no [DONE]', fault: 'noDone', stream: true, expected: complete },
  { name: 'error in the stream', fault: 'inBandError=3', stream: true, expected: interrupted },
  { name: 'error before the stream', fault: 'inBandError=0', stream: true, expected: failed },
  ...both('10 MB delta', 'chunks=1 chunkBytes=10000000', complete).map(each => ({ ...each, times: 2 })),
]

interface KeyedScene extends Scene {
  key: string
}

async function keyedScene(t: Test, redisUrl: string): Promise<KeyedScene> {
  const it = await scene(t, { redisUrl })
  const { id, key } = await addVirtualKey(it.system, it.team)
  const body = { period: 'total', limitUsd: 1000, virtualKeyId: id } as const
  await expect(it.system, createBudget, { as: it.team.apiKey, body })
  return { ...it, key }
}

interface Done {
  asked: Case
  call: SeenCall
}

/** Every case many times, in random order, over all callers. */
async function mixed({ client, key }: KeyedScene, wanted: readonly Case[], luck: Chance): Promise<Done[]> {
  const order = luck.shuffled(wanted.flatMap(each => Array<Case>(each.times ?? 12).fill(each)))
  const round = randomBytes(3).toString('hex')
  const load = startLoad(client, CALLERS, number => {
    const asked = order[number]
    if (asked === undefined) return null
    const { stream, fault, leaveAfterMs } = asked
    const content = `[fault ${fault}]`
    const asking = { key, model: MODEL, content, stream, token: `${round}-${number}` }
    return leaveAfterMs === undefined ? asking : { ...asking, leaveAfterMs }
  })
  while (load.calls.length < order.length) await sleep(20)
  return load.calls.map(call => ({ asked: order[Number(call.token.split('-')[1])]!, call }))
}

/** Nobody listens at the provider's port. */
async function refused(it: KeyedScene, luck: Chance): Promise<Done[]> {
  await it.fake.refuse()
  const done = await mixed(it, both('refused connection', '', failed), luck)
  await it.fake.accept()
  return done
}

function faultsOf(
  { asked, call }: Done,
  entries: readonly Entry[],
  bills: Map<string | null, { nano: number }>,
) {
  const { expected } = asked
  const wrong: string[] = []
  const differs = (name: string, wanted: unknown, got: unknown) => {
    if (wanted !== undefined && wanted !== got) wrong.push(`${name} ${got} for ${wanted}`)
  }
  differs('outcome', expected.outcome, call.outcome)
  differs('status', expected.status, call.outcome === 'left' ? undefined : call.status)
  differs('code', expected.errorCode, call.errorCode)
  if (entries.length !== 1) wrong.push(`${entries.length} charges`)
  const [entry] = entries
  const cost = entry?.costNano ?? 0
  if (expected.cost === 'bill') differs('cost', bills.get(call.token)?.nano, cost)
  if (expected.cost === 'none') differs('cost', 0, cost)
  if (expected.cost === 'some' && cost === 0) wrong.push('cost nothing')
  differs('status of the span', expected.outcome === 'complete' ? 'ok' : 'error', entry?.status)
  return wrong.map(text => `${asked.name}${asked.stream ? ', streamed' : ''}: ${text}`)
}

test('every fault of a provider, mixed under load', { timeout: 120_000 }, async t => {
  const redis = testRedis(t)
  if (redis === null) return
  const luck = chance()
  t.comment(`TEST_SEED=${luck.seed}`)
  const it = await keyedScene(t, redis.url)
  const { system, fake, sql } = it
  const done: Done[] = []
  const memory: number[] = []
  for (let round = 0; round < 3; round++) {
    done.push(...(await mixed(it, cases, luck)), ...(await refused(it, luck)))
    await drained(system)
    memory.push(Math.round(residentMb(system.proxy.pid)))
  }
  const calls = done.map(({ call }) => call)
  t.comment(JSON.stringify({ calls: calls.length, outcomes: tally(calls), residentMb: memory }))

  const [entries, totals] = [await readEntries(sql), await readTotals(sql)]
  const byToken = grouped(entries, entry => entry.token)
  const bills = new Map(fake.bill.map(bill => [bill.user, { nano: priceNano(bill, FRACTIONAL) }]))
  const wrong = done.flatMap(each => {
    // A client that left before it was admitted owes nothing and leaves nothing.
    const own = byToken.get(each.call.token) ?? []
    return each.call.outcome === 'left' && own.length === 0 ? [] : faultsOf(each, own, bills)
  })
  const summary = [...grouped(wrong, text => text)].map(([text, all]) => `${all.length} x ${text}`)
  t.same(summary, [], 'each call ends as its fault demands, with one charge')
  t.match(totals, { charges: entries.length, spans: entries.length, wrongTraces: 0, deadLetters: 0 })
  t.equal(totals.chargesNano, totals.spendByDayNano)
  const [budget] = await expect(system, listBudgets, { as: it.team.apiKey })
  t.equal(
    Math.round((budget?.spendUsd ?? 0) * NANO),
    totals.chargesNano,
    'the ledger has settled all of them',
  )

  t.ok(isAlive(system.proxy.pid))
  t.notMatch(system.proxy.output(), LOOSE_ENDS)
  t.equal(await metric(system, 'agh_proxy_errors_total'), 0)
  t.equal(await metric(system, 'agh_proxy_live_holds'), 0, 'no reservation is left')
  const growth = (memory[2] ?? 0) - (memory[1] ?? 0)
  t.ok(growth < 80, `memory does not keep growing: ${memory} MB`)
  const last = await it.client.ask({ token: 'last', key: it.key, model: MODEL, content: 'Hi', stream: false })
  t.equal(last.outcome, 'complete', 'the proxy still answers')
})
