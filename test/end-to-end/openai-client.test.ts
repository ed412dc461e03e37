/** OpenAI's own client, unchanged, against two real processes (spec 3, gateway). */
import { setTimeout as sleep } from 'node:timers/promises'
import OpenAI from 'openai'
import { type Test, test } from 'tap'
import { createBudget } from '../../shared/contract/budgets.js'
import { listTraces, readTrace } from '../../shared/contract/traces.js'
import { engines } from '../support/engines.js'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.js'
import { addModel, addVirtualKey, expect, type GatewayTeam, gatewayTeam } from '../support/gateway-team.js'
import { testRedis } from '../support/redis.js'
import { type System, type SystemOptions, startSystem } from '../support/system.js'

const MODEL = 'gpt-fake'
const ANSWER = 'Hello from the fake provider.'
const says = (content: string) => ({ model: MODEL, messages: [{ role: 'user' as const, content }] })

const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'get_weather',
      description: 'The weather of a city.',
      parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
    },
  },
]

interface Stage {
  system: System
  fake: FakeProvider
  team: GatewayTeam
  clientFor(apiKey: string): OpenAI
}

async function stage(t: Test, options: SystemOptions): Promise<Stage> {
  const fake = await startFakeProvider()
  t.teardown(() => fake.stop())
  const system = await startSystem(t, options)
  const team = await gatewayTeam(system, 'openai', fake.baseUrl('openai'))
  await addModel(system, team, MODEL)
  return {
    system,
    fake,
    team,
    clientFor: apiKey => new OpenAI({ baseURL: system.baseUrl, apiKey, maxRetries: 0 }),
  }
}

async function completions(t: Test, { clientFor }: Stage, key: string) {
  const client = clientFor(key)

  await t.test('models.list shows what the key may call', async t => {
    const models = []
    for await (const model of client.models.list()) models.push(model)
    t.match(models, [{ id: MODEL, object: 'model', owned_by: 'openai' }])
  })

  await t.test('a plain completion', async t => {
    const completion = await client.chat.completions.create(says('Hello'))
    t.equal(completion.object, 'chat.completion')
    t.equal(completion.choices[0]?.message.content, ANSWER)
    t.equal(completion.choices[0]?.finish_reason, 'stop')
    const {
      prompt_tokens: prompt,
      completion_tokens: completed,
      total_tokens: total,
    } = completion.usage ?? {}
    t.equal(total, (prompt ?? 0) + (completed ?? 0))
  })

  await t.test('a streamed completion, usage only when asked for', async t => {
    const stream = await client.chat.completions.create({ ...says('Hello'), stream: true })
    const chunks = []
    for await (const chunk of stream) chunks.push(chunk)
    t.equal(chunks.map(chunk => chunk.choices[0]?.delta.content ?? '').join(''), ANSWER)
    t.notOk(chunks.some(chunk => chunk.usage))

    const asking = { ...says('Hello'), stream: true as const, stream_options: { include_usage: true } }
    let usage: OpenAI.CompletionUsage | null | undefined
    for await (const chunk of await client.chat.completions.create(asking)) usage = chunk.usage ?? usage
    t.ok((usage?.total_tokens ?? 0) > 0)
  })

  await t.test('a tool call, plain', async t => {
    const completion = await client.chat.completions.create({ ...says('Please use get_weather'), tools })
    t.equal(completion.choices[0]?.finish_reason, 'tool_calls')
    const call = completion.choices[0]?.message.tool_calls?.[0]
    t.match(call, { type: 'function', function: { name: 'get_weather' } })
    t.same(call?.type === 'function' && JSON.parse(call.function.arguments), { city: 'Zürich', days: 2 })
  })

  await t.test('a tool call, streamed and put together by the client', async t => {
    const runner = client.chat.completions.stream({ ...says('Please use get_weather'), tools })
    const { choices } = await runner.finalChatCompletion()
    const call = choices[0]?.message.tool_calls?.[0]
    t.equal(call?.function.name, 'get_weather')
    t.same(JSON.parse(call?.function.arguments ?? ''), { city: 'Zürich', days: 2 })
  })
}

async function leaving(t: Test, { system, fake, team, clientFor }: Stage, key: string) {
  await t.test('an aborted stream stops the provider call and is recorded', async t => {
    const abortedBefore = fake.aborted
    fake.next({ chunkDelay: 50, chunks: 200 })
    const { data: stream, response } = await clientFor(key)
      .chat.completions.create({ ...says('Tell me a long story'), stream: true })
      .withResponse()
    let seen = 0
    for await (const _chunk of stream) if (++seen === 5) break
    for (let attempt = 0; attempt < 100 && fake.aborted === abortedBefore; attempt++) await sleep(20)
    t.equal(fake.aborted, abortedBefore + 1, 'the provider saw the client leave')
    const id = response.headers.get('x-gateway-trace-id') ?? ''
    let spans: { status: string; errorCode: string | null; costUsd: number | null }[] = []
    for (let attempt = 0; attempt < 200 && spans.length === 0; attempt++) {
      const answer = await system.call(readTrace, { as: team.apiKey, params: { id } })
      if (answer.error === null) spans = answer.body.spans
      else await sleep(25)
    }
    t.match(spans, [{ status: 'error', errorCode: 'client_disconnected' }])
    t.ok((spans[0]?.costUsd ?? 0) > 0, 'what was received is paid for')
  })
}

async function mistakes(t: Test, { system, fake, team, clientFor }: Stage, key: string) {
  const failing = (client: OpenAI, body = says('Hello')) =>
    client.chat.completions.create(body).then(
      () => t.fail('should be refused'),
      (error: unknown) => error,
    )

  await t.test('errors are the client’s own classes, with agh’s codes', async t => {
    const unknownKey = await failing(clientFor('agh_sk_unknown'))
    t.type(unknownKey, OpenAI.AuthenticationError)
    t.match(unknownKey, { status: 401, code: 'UNAUTHORIZED' })

    const unknownModel = await failing(clientFor(key), { ...says('Hello'), model: 'nobody-has-this' })
    t.type(unknownModel, OpenAI.BadRequestError)
    t.match(unknownModel, { status: 400, code: 'VALIDATION_ERROR' })

    const narrow = await addVirtualKey(system, team, { allowedModels: ['another'] })
    const outside = await failing(clientFor(narrow.key))
    t.type(outside, OpenAI.PermissionDeniedError)
    t.match(outside, { status: 403, code: 'MODEL_NOT_ALLOWED' })

    const limited = await addVirtualKey(system, team, { maxRpm: 1 })
    await clientFor(limited.key).chat.completions.create(says('Hello'))
    const tooMany = await failing(clientFor(limited.key))
    t.type(tooMany, OpenAI.RateLimitError)
    t.match(tooMany, { status: 429, code: 'RATE_LIMITED' })

    const poor = await addVirtualKey(system, team)
    await expect(system, createBudget, {
      as: team.apiKey,
      body: { period: 'total', limitUsd: 0, virtualKeyId: poor.id },
    })
    const spent = await failing(clientFor(poor.key))
    t.type(spent, OpenAI.APIError)
    t.match(spent, { status: 402, code: 'BUDGET_EXCEEDED' })
  })

  await t.test('a provider’s refusal keeps its words, a provider’s fault is told as one', async t => {
    const message = 'max_tokens is too large'
    fake.next({ status: 400, body: JSON.stringify({ error: { message, type: 'invalid_request_error' } }) })
    const refused = await failing(clientFor(key))
    t.type(refused, OpenAI.BadRequestError)
    t.match(refused, { code: 'PROVIDER_ERROR', message: new RegExp(message) })

    fake.next({ status: 429, retryAfter: '7' })
    const busy = await failing(clientFor(key))
    t.type(busy, OpenAI.RateLimitError)
    t.match(busy, { code: 'PROVIDER_RATE_LIMITED' })
    t.equal((busy as InstanceType<typeof OpenAI.APIError>).headers?.get('retry-after'), '7')

    fake.next({ status: 500 })
    const broken = await failing(clientFor(key))
    t.type(broken, OpenAI.InternalServerError)
    t.match(broken, { status: 502, code: 'PROVIDER_ERROR' })
  })

  await t.test('every call that reached the provider left a trace', async t => {
    const { total } = await expect(system, listTraces, { as: team.apiKey, query: { limit: '1' } })
    t.ok(total > 5, `${total} traces`)
  })
}

async function everything(t: Test, options: SystemOptions) {
  const set = await stage(t, options)
  const { key } = await addVirtualKey(set.system, set.team)
  await completions(t, set, key)
  await leaving(t, set, key)
  await mistakes(t, set, key)
}

test(`the OpenAI client on ${engines[0]} and Redis`, async t => {
  const redis = testRedis(t)
  if (redis !== null) await everything(t, { redisUrl: redis.url, http: engines[0] })
})

for (const http of engines) {
  test(`the OpenAI client on ${http} and PostgreSQL alone`, async t => {
    await everything(t, { http })
  })
}
