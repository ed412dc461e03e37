/** The rules of POST /gateway/chat/completions (spec 3; spec 4, sections 5 and 9), on two real processes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { createApiKey } from '../../shared/contract/api-keys.js'
import { createBudget, listBudgets, updateBudget } from '../../shared/contract/budgets.js'
import { createConnection } from '../../shared/contract/connections.js'
import { createModel } from '../../shared/contract/models.js'
import { addModel, addVirtualKey, complete, expect } from '../support/gateway-team.js'
import { testRedis } from '../support/redis.js'
import { errorOf, hello, MODEL, scene, traceOf } from '../support/scene.js'
import { startSystem } from '../support/system.js'

test('of two failing checks the earlier one answers', async t => {
  const { system, team, key } = await scene(t)
  const scoped = await addVirtualKey(system, team, { allowedModels: [MODEL], maxRpm: 1 })
  const answer = async (credential: string, body: object) => errorOf(await complete(system, credential, body))

  t.match(
    await answer('agh_sk_nonsense', {}),
    /^401 UNAUTHORIZED Authentication required\.$/,
    'credential before body',
  )
  t.match(await answer(scoped.key, { model: 'other' }), /^400 VALIDATION_ERROR/, 'body before scope')
  t.match(
    await answer(scoped.key, { ...hello, model: 'unregistered' }),
    /^403 MODEL_NOT_ALLOWED Model 'unregistered' is not allowed for this key\.$/,
    'scope before existence',
  )
  t.match(
    await answer(key, { ...hello, model: 'unregistered' }),
    /^400 VALIDATION_ERROR Model 'unregistered'/,
  )
  const broke = await addVirtualKey(system, team, { allowedModels: [MODEL], maxRpm: 1 })
  await expect(system, createBudget, {
    as: team.apiKey,
    body: { period: 'day', limitUsd: 0, virtualKeyId: broke.id },
  })
  t.match(await answer(broke.key, { ...hello, model: 'other' }), /^403/, 'scope before budget')
  for (let call = 0; call < 3; call++) {
    t.match(
      await answer(broke.key, hello),
      /^402 BUDGET_EXCEEDED Virtual key budget exceeded\.$/,
      'budget before rate',
    )
  }
  await expect(system, createBudget, { as: team.apiKey, body: { period: 'total', limitUsd: 0 } })
  t.match(
    await answer(broke.key, hello),
    /^402 BUDGET_EXCEEDED Team-wide budget exceeded\.$/,
    'team-wide first',
  )
})

test('who may call: virtual, team-scoped and writers’ keys; not viewers, not strangers', async t => {
  const { system, team, fake, key } = await scene(t)
  const teamKey = await expect(system, createApiKey, {
    as: team.session,
    body: { name: 'ci', teamScoped: true },
  })
  t.equal((await complete(system, key, hello)).status, 200)
  t.equal((await complete(system, teamKey.key, hello)).status, 200)
  t.equal((await complete(system, team.apiKey.key ?? '', hello)).status, 200)
  const url = `${system.baseUrl}/chat/completions`
  const cookie = { cookie: team.session.cookie ?? '', 'content-type': 'application/json' }
  const body = JSON.stringify(hello)
  const own = await fetch(url, { method: 'POST', headers: { ...cookie, origin: 'http://agh.test' }, body })
  t.equal(own.status, 200, 'a session, from the service’s own page')
  const cross = await fetch(url, { method: 'POST', headers: { ...cookie, origin: 'http://evil.test' }, body })
  t.match(await errorOf(cross), /^403 FORBIDDEN/)
  const before = fake.requests.length
  for (const headers of [
    {},
    { authorization: 'Basic x' },
    { authorization: `Bearer agh_sk_${'x'.repeat(40)}` },
  ]) {
    const response = await fetch(url, { method: 'POST', headers, body })
    t.equal(await errorOf(response), '401 UNAUTHORIZED Authentication required.')
  }
  t.equal(fake.requests.length, before)
})

test('a provider’s error answers as spec 3 says, and costs nothing', async t => {
  const it = await scene(t)
  const { system, fake, team, key } = it
  const answer = async (fault: Parameters<typeof fake.next>[0], stream = false) => {
    fake.next(fault)
    return complete(system, key, { ...hello, stream })
  }
  for (const status of [400, 404, 413, 422]) {
    t.match(await errorOf(await answer({ status })), new RegExp(`^${status} PROVIDER_ERROR .*told to fail`))
  }
  const limited = await answer({ status: 429, retryAfter: '7' }, true)
  t.equal(limited.headers.get('retry-after'), '7')
  t.match(limited.headers.get('content-type'), /json/, 'a stream’s error is JSON before any byte')
  t.match(await errorOf(limited), /^429 PROVIDER_RATE_LIMITED .*told to fail/)
  for (const status of [401, 403]) {
    const refused = await errorOf(await answer({ status }))
    t.match(refused, /^502 PROVIDER_ERROR .*credential/)
    t.notMatch(refused, /told to fail/, 'nothing of the provider’s body')
  }
  for (const status of [402, 409, 500, 503, 504, 529]) {
    t.match(await errorOf(await answer({ status })), /^502 PROVIDER_ERROR/)
  }
  t.match(await errorOf(await answer({ garbage: true })), /^502 PROVIDER_ERROR/, 'a broken body')

  const failed = await answer({ status: 500 })
  t.ok(failed.headers.get('x-gateway-request-id'))
  const { trace, spans } = await traceOf(it, failed.headers.get('x-gateway-trace-id'))
  t.equal(trace.status, 'error')
  t.match(spans, [{ status: 'error', errorType: 'provider_error', errorCode: 'http_500' }])
  await expect(system, createBudget, { as: team.apiKey, body: { period: 'day', limitUsd: 1 } })
  t.equal((await expect(system, listBudgets, { as: team.apiKey }))[0]?.spendUsd, 0)
})

test('a refused or reset connection is tried once more before any byte, and nothing else is', async t => {
  const it = await scene(t)
  const { system, fake, key } = it
  fake.next({ reset: true })
  const again = await complete(system, key, hello)
  t.equal(again.status, 200)
  const { spans } = await traceOf(it, again.headers.get('x-gateway-trace-id'))
  t.match(spans[0]?.attributes, { retries: 1 })
  fake.next({ reset: true }, { reset: true })
  t.match(await errorOf(await complete(system, key, hello)), /^502 PROVIDER_ERROR/)
  const before = fake.requests.length
  fake.next({ status: 503 })
  await complete(system, key, hello)
  t.equal(fake.requests.length, before + 1, 'a 503 is not tried again')
  await fake.refuse()
  t.match(await errorOf(await complete(system, key, hello)), /^502 PROVIDER_ERROR .*refused/)
  await fake.accept()
})

test('a stream that breaks ends with one error frame and no [DONE], and is charged for what came', async t => {
  const it = await scene(t)
  const { system, fake, key } = it
  for (const fault of [
    { cut: 700 },
    { cut: 700, closeDelimited: true },
    { garbage: true },
    { inBandError: 3 },
  ]) {
    fake.next(fault)
    const response = await complete(system, key, { ...hello, stream: true })
    const text = await response.text()
    const name = JSON.stringify(fault)
    t.notMatch(text, /\[DONE\]/, name)
    const last = text.trimEnd().split('\n\n').at(-1) ?? ''
    t.match(
      JSON.parse(last.replace('data: ', '')),
      { error: { code: 'PROVIDER_ERROR', message: String } },
      name,
    )
    const { spans } = await traceOf(it, response.headers.get('x-gateway-trace-id'))
    t.match(spans, [{ status: 'error', errorType: 'provider_error', errorCode: 'stream_interrupted' }], name)
    t.ok((spans[0]?.costUsd ?? 0) > 0, `${name} was charged`)
  }
  fake.next({ inBandError: 0 })
  const early = await complete(system, key, { ...hello, stream: true })
  t.match(await errorOf(early), /^502 PROVIDER_ERROR/, 'an error before the first byte is JSON')
})

test('whatever pieces the provider writes, the client’s stream is the same', async t => {
  const { system, fake, key } = await scene(t)
  const read = async () => (await complete(system, key, { ...hello, stream: true })).text()
  const neutral = (text: string) =>
    text.replace(/chatcmpl-fake\d+/g, 'ID').replace(/"created":\d+/g, '"created":0')
  const whole = neutral(await read())
  fake.next({ oneByte: true })
  t.equal(neutral(await read()), whole)
  t.match(whole, /data: \[DONE\]\n\n$/)
  t.notMatch(whole, /"usage":\{/, 'usage was not asked for')
  const asked = await complete(system, key, {
    ...hello,
    stream: true,
    stream_options: { include_usage: true },
  })
  t.match(await asked.text(), /"usage":\{"prompt_tokens"/)
})

test('a client that leaves aborts the provider’s call at once and is charged for what it got', async t => {
  const it = await scene(t)
  const { system, fake, key } = it
  fake.next({ chunkDelay: 50, chunks: 200 })
  const abort = new AbortController()
  const response = await fetch(`${system.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...hello, stream: true, max_tokens: 500 }),
    signal: abort.signal,
  })
  const reader = response.body?.getReader()
  for (let chunk = 0; chunk < 5; chunk++) await reader?.read()
  abort.abort()
  const leftAt = Date.now()
  while (fake.aborted === 0 && Date.now() - leftAt < 2_000) await sleep(5)
  t.equal(fake.aborted, 1)
  const { spans } = await traceOf(it, response.headers.get('x-gateway-trace-id'))
  t.match(spans, [{ status: 'error', errorCode: 'client_disconnected' }])
  t.ok((spans[0]?.costUsd ?? 0) > 0)

  fake.next({ hang: true })
  const plain = new AbortController()
  const pending = fetch(`${system.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(hello),
    signal: plain.signal,
  })
  await sleep(200)
  plain.abort()
  await t.rejects(pending)
  const plainLeftAt = Date.now()
  while (fake.aborted < 2 && Date.now() - plainLeftAt < 2_000) await sleep(5)
  t.equal(fake.aborted, 2, 'a plain call is aborted too')
})

test('the metrics tell how completions ended, and what the response cache saved', async t => {
  const { system, fake, team, key } = await scene(t)
  const cached = await addVirtualKey(system, team, { cacheTtlSeconds: 60 })
  for (let call = 0; call < 3; call++) await (await complete(system, cached.key, hello)).text()
  fake.next({ status: 500 })
  t.equal((await complete(system, key, hello)).status, 502)
  t.equal((await complete(system, key, { ...hello, model: 'unregistered' })).status, 400)
  t.equal((await complete(system, 'agh_sk_nonsense', hello)).status, 401)
  fake.next({ hang: true })
  const [left, seen] = [new AbortController(), fake.requests.length]
  const leaving = fetch(`${system.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(hello),
    signal: left.signal,
  })
  while (fake.requests.length === seen) await sleep(10)
  left.abort()
  await t.rejects(leaving)
  await sleep(200)

  const text = await (await fetch(`${system.origin}/metrics`)).text()
  for (const [outcome, calls] of Object.entries({ ok: 3, failed: 1, refused: 2, aborted: 1 }))
    t.match(text, `agh_proxy_call_seconds_count{outcome="${outcome}"} ${calls}`)
  t.match(text, 'agh_proxy_cache_total{result="hit"} 2')
  t.match(text, 'agh_proxy_cache_total{result="miss"} 1')
})

test('JSON nested deeper than it can be written again is the client’s mistake', async t => {
  const { system, team, key } = await scene(t)
  const { key: cachedKey } = await addVirtualKey(system, team, { cacheTtlSeconds: 60 })
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  const call = (as: string, rest: string) =>
    fetch(`${system.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json' },
      body: `{"model":"${MODEL}","messages":[{"role":"user","content":"Hello"}],"deep":${deep}${rest}}`,
    })
  const refused = '400 VALIDATION_ERROR Malformed JSON body: it is nested too deeply'
  t.equal(await errorOf(await call(cachedKey, '')), refused, 'where the cache needs it written')
  const anew = ',"stream":true,"stream_options":{"include_usage":false}'
  t.equal(await errorOf(await call(key, anew)), refused, 'where the provider does')
  t.notMatch(system.proxy.output(), /failed/, 'nobody is alarmed')
})

test('the response cache answers the same request for nothing, in either form', async t => {
  const it = await scene(t)
  const { system, fake, team } = it
  const cachedKey = await addVirtualKey(system, team, { cacheTtlSeconds: 60, maxRpm: 5, maxTpm: 10_000 })
  const first = await complete(system, cachedKey.key, hello)
  t.equal(first.headers.get('x-gateway-cache'), 'miss')
  const text = await first.text()
  const calls = fake.requests.length
  const second = await complete(system, cachedKey.key, { messages: hello.messages, model: MODEL })
  t.equal(second.headers.get('x-gateway-cache'), 'hit')
  t.equal(second.headers.get('x-gateway-cost-usd'), '0')
  t.equal(second.headers.get('x-gateway-ratelimit-remaining'), '3', 'it counts against the request limit')
  t.strictSame(await second.json(), JSON.parse(text))
  const { spans } = await traceOf(it, second.headers.get('x-gateway-trace-id'))
  t.match(spans, [{ status: 'ok', costUsd: 0, attributes: { cached: true } }])

  await expect(system, createBudget, {
    as: team.apiKey,
    body: { period: 'day', limitUsd: 0, virtualKeyId: cachedKey.id },
  })
  const streamed = await complete(system, cachedKey.key, { ...hello, stream: true })
  t.equal(streamed.headers.get('x-gateway-cache'), 'hit', 'a hit passes an exhausted budget')
  t.match(await streamed.text(), /chat\.completion\.chunk[\s\S]*data: \[DONE\]\n\n$/)
  t.equal(fake.requests.length, calls, 'no hit reached the provider')
  const other = await complete(system, cachedKey.key, { ...hello, temperature: 1 })
  t.equal(other.status, 402, 'another request is not in the cache')
  const uncached = await addVirtualKey(system, team)
  t.equal((await complete(system, uncached.key, hello)).headers.get('x-gateway-cache'), 'miss')
})

test('unpriced models cost nothing, and every header says so', async t => {
  const { system, team, key } = await scene(t)
  const body = { publicName: 'free', connectionId: team.connectionId, upstreamModel: 'nobody-knows-it' }
  await expect(system, createModel, { as: team.apiKey, body })
  const response = await complete(system, key, { ...hello, model: 'free' })
  t.equal(response.headers.get('x-gateway-cost-usd'), '')
  t.equal(response.headers.get('x-gateway-model'), 'nobody-knows-it')
  t.equal(response.headers.get('x-gateway-provider'), 'openai_compatible')
})

test('each vendor’s kind answers plain and streamed, in OpenAI’s form', async t => {
  const { system, team, fake, key } = await scene(t)
  for (const provider of ['openai', 'anthropic', 'google'] as const) {
    const connection = await expect(system, createConnection, {
      as: team.apiKey,
      body: { provider, label: provider, apiKey: 'sk-fake', config: { base_url: fake.baseUrl(provider) } },
    })
    await expect(system, createModel, {
      as: team.apiKey,
      body: { publicName: provider, connectionId: connection.id, upstreamModel: 'some-model' },
    })
    const plain = await complete(system, key, { ...hello, model: provider })
    t.match(await plain.json(), {
      object: 'chat.completion',
      choices: [
        { message: { role: 'assistant', content: 'Hello from the fake provider.' }, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: Number, completion_tokens: 6 },
    })
    const stream = await complete(system, key, { ...hello, model: provider, stream: true })
    const text = await stream.text()
    t.match(text, /chat\.completion\.chunk/)
    t.match(text, /data: \[DONE\]\n\n$/)
  }
})

test('a change holds for the next call on another proxy process', async t => {
  const redis = testRedis(t)
  if (redis === null) return
  const first = await scene(t, redis.url)
  const second = await startSystem(t, { redisUrl: redis.url, databaseUrl: first.system.databaseUrl })
  const { system, team } = first
  const doomed = await addVirtualKey(system, team)
  t.equal((await complete(second, doomed.key, hello)).status, 200, 'warm on the second proxy')
  const budget = { period: 'month', limitUsd: 0, virtualKeyId: doomed.id } as const
  await expect(system, createBudget, { as: team.apiKey, body: budget })
  t.equal((await complete(second, doomed.key, hello)).status, 402)
  await addModel(system, team, 'brand-new')
  const fresh = await addVirtualKey(system, team, { allowedModels: ['brand-new'] })
  t.equal((await complete(second, fresh.key, { ...hello, model: 'brand-new' })).status, 200)
})

test('a client that reads slowly gets the whole stream, and the provider waits for it', async t => {
  const { system, fake, key } = await scene(t)
  fake.next({ chunks: 200, chunkBytes: 50_000 })
  const response = await complete(system, key, { ...hello, stream: true, max_tokens: 1000 })
  await sleep(1_000)
  t.notOk(fake.bill.at(-1)?.finished, 'ten megabytes do not pile up in the proxy')
  const text = await response.text()
  t.ok(text.length > 10_000_000)
  t.match(text.slice(-100), /data: \[DONE\]\n\n$/)
})

test('a budget that is made, or gets another period, right after a call counts that call', async t => {
  const { system, team } = await scene(t)
  const as = team.apiKey
  for (let round = 0; round < 4; round++) {
    const fresh = await addVirtualKey(system, team, {})
    const cost = async () =>
      Number((await complete(system, fresh.key, hello)).headers.get('x-gateway-cost-usd'))
    const first = await cost()
    const body = { period: 'day', limitUsd: 10, virtualKeyId: fresh.id } as const
    const made = await expect(system, createBudget, { as, body })
    t.equal(made.spendUsd, first)
    const second = await cost()
    const params = { id: made.id }
    const moved = await expect(system, updateBudget, { as, params, body: { period: 'week' } })
    t.equal(moved.spendUsd.toFixed(9), (first + second).toFixed(9))
  }
})
