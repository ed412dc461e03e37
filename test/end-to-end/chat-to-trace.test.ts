/** The whole story of a call, on two real processes: from the sign-up to the trace with its cost. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { createBudget, listBudgets, updateBudget } from '../../shared/contract/budgets.js'
import { listTraces, readTrace } from '../../shared/contract/traces.js'
import { revokeVirtualKey, updateVirtualKey } from '../../shared/contract/virtual-keys.js'
import { engines } from '../support/engines.js'
import { startFakeProvider } from '../support/fake-provider.js'
import { addModel, addVirtualKey, complete, expect, gatewayTeam, PRICING } from '../support/gateway-team.js'
import { testRedis } from '../support/redis.js'
import { type SystemOptions, startSystem } from '../support/system.js'

const MODEL = 'gpt-fake'
const hello = { model: MODEL, messages: [{ role: 'user', content: 'Hello' }] }

async function story(t: Test, options: SystemOptions) {
  const fake = await startFakeProvider()
  t.teardown(() => fake.stop())
  const system = await startSystem(t, options)
  const team = await gatewayTeam(system, 'openai_compatible', fake.baseUrl('openai'))
  await addModel(system, team, MODEL)
  const { key } = await addVirtualKey(system, team)

  /** Traces arrive a moment after the answer. */
  const traceOf = async (id: string | null) => {
    for (let attempt = 0; attempt < 200; attempt++) {
      const answer = await system.call(readTrace, { as: team.apiKey, params: { id: id ?? '' } })
      if (answer.error === null) return answer.body
      await sleep(25)
    }
    throw new Error(`Trace ${id} did not arrive.`)
  }
  const costOf = (prompt: number, completion: number) =>
    (prompt * PRICING.inputPerMTok + completion * PRICING.outputPerMTok) / 1_000_000

  await t.test('a plain call is answered, priced, and its trace readable', async t => {
    const response = await complete(system, key, hello)
    t.equal(response.status, 200)
    const { usage } = (await response.json()) as { usage: Record<string, number> }
    const cost = costOf(usage.prompt_tokens ?? 0, usage.completion_tokens ?? 0)
    t.equal(Number(response.headers.get('x-gateway-cost-usd')), cost)
    t.ok(response.headers.get('x-gateway-request-id'))
    const { trace, spans } = await traceOf(response.headers.get('x-gateway-trace-id'))
    t.equal(trace.totalCostUsd, cost)
    t.equal(trace.totalTokens, usage.total_tokens)
    t.match(spans, [{ kind: 'llm', status: 'ok', model: MODEL, costUsd: cost }])
  })

  await t.test(
    'a streamed call ends with [DONE], and its trace has the cost that the headers could not',
    async t => {
      const response = await complete(system, key, { ...hello, stream: true })
      t.match(response.headers.get('content-type'), /^text\/event-stream/)
      t.equal(response.headers.get('x-gateway-cost-usd'), null)
      const text = await response.text()
      t.ok(text.trimEnd().endsWith('data: [DONE]'))
      t.notMatch(text, /"prompt_tokens"/, 'usage was not asked for')
      const { trace, spans } = await traceOf(response.headers.get('x-gateway-trace-id'))
      const billed = fake.bill.at(-1)
      t.equal(trace.totalCostUsd, costOf(billed?.promptTokens ?? 0, billed?.completionTokens ?? 0))
      t.type(spans[0]?.attributes.timeToFirstTokenMs, 'number')
    },
  )

  await t.test('GET /traces lists both', async t => {
    const { total, data } = await expect(system, listTraces, { as: team.apiKey, query: { model: MODEL } })
    t.equal(total, 2)
    t.ok(data.every(trace => (trace.totalCostUsd ?? 0) > 0 && trace.status === 'ok'))
  })

  await t.test('a model outside the list of the key answers 403 and reaches no provider', async t => {
    const narrow = await addVirtualKey(system, team, { allowedModels: ['another'] })
    const before = fake.requests.length
    const response = await complete(system, narrow.key, hello)
    t.equal(response.status, 403)
    t.match(await response.json(), {
      error: { code: 'MODEL_NOT_ALLOWED', message: `Model '${MODEL}' is not allowed for this key.` },
    })
    t.equal(fake.requests.length, before)
  })

  await t.test('a full rate window answers 429 with Retry-After', async t => {
    const limited = await addVirtualKey(system, team, { maxRpm: 1 })
    const first = await complete(system, limited.key, hello)
    t.equal(first.status, 200)
    t.equal(first.headers.get('x-gateway-ratelimit-remaining'), '0')
    await first.text()
    const second = await complete(system, limited.key, hello)
    t.equal(second.status, 429)
    const retryAfter = Number(second.headers.get('retry-after'))
    t.ok(retryAfter >= 1 && retryAfter <= 60, `Retry-After ${retryAfter}`)
    t.match(await second.json(), { error: { code: 'RATE_LIMITED' } })
  })

  await t.test('a spent budget answers 402, and a raised one holds for the next call', async t => {
    const poor = await addVirtualKey(system, team)
    const body = { ...hello, max_tokens: 10 }
    const limitUsd = 0.002
    const budget = await expect(system, createBudget, {
      as: team.apiKey,
      body: { period: 'day', limitUsd, virtualKeyId: poor.id },
    })
    const statuses = []
    for (let call = 0; call < 30; call++) {
      const response = await complete(system, poor.key, body)
      statuses.push(response.status)
      const answer = await response.json()
      if (response.status === 402) {
        t.match(answer, { error: { code: 'BUDGET_EXCEEDED', message: 'Virtual key budget exceeded.' } })
        break
      }
    }
    t.equal(statuses[0], 200, 'the first call fits')
    t.equal(statuses.at(-1), 402, `ended by the budget: ${statuses}`)
    const listed = await expect(system, listBudgets, { as: team.apiKey })
    const spent = listed.find(row => row.id === budget.id)?.spendUsd ?? 0
    t.ok(spent > 0 && spent <= limitUsd, `spent ${spent} of ${limitUsd}`)
    const raised = { as: team.apiKey, params: { id: budget.id }, body: { limitUsd: 1 } }
    await expect(system, updateBudget, raised)
    t.equal((await complete(system, poor.key, body)).status, 200)
  })

  await t.test('a narrowed list and a revoked key hold for the very next call', async t => {
    const doomed = await addVirtualKey(system, team)
    t.equal((await complete(system, doomed.key, hello)).status, 200)
    const params = { id: doomed.id }
    await expect(system, updateVirtualKey, { as: team.apiKey, params, body: { allowedModels: ['another'] } })
    t.equal((await complete(system, doomed.key, hello)).status, 403)
    await expect(system, updateVirtualKey, { as: team.apiKey, params, body: { allowedModels: null } })
    t.equal((await complete(system, doomed.key, hello)).status, 200)
    await expect(system, revokeVirtualKey, { as: team.apiKey, params })
    const refused = await complete(system, doomed.key, hello)
    t.equal(refused.status, 401)
    t.match(await refused.json(), { error: { code: 'UNAUTHORIZED' } })
  })

  await t.test('both programs drain and end with code 0', async t => {
    t.equal(await system.proxy.end('SIGTERM'), 0, system.proxy.output())
    t.equal(await system.controlPlane.end('SIGTERM'), 0, system.controlPlane.output())
  })
}

test(`on ${engines[0]} and Redis`, async t => {
  const redis = testRedis(t)
  if (redis !== null) await story(t, { redisUrl: redis.url, http: engines[0] })
})

test('on node:http and PostgreSQL alone', async t => {
  await story(t, { http: 'node' })
})
