/**
 * A provider's server belongs to whoever connected it: what it answers is input like any other. One team's odd answer
 * must not end the process that serves them all, leave a client without a reply, or keep a reservation for ever.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { createModel } from '../../shared/contract/models.js'
import { addModel, addVirtualKey, complete, expect, gatewayTeam } from '../support/gateway-team.js'
import { errorOf, hello, MODEL } from '../support/scene.js'
import { type System, startSystem } from '../support/system.js'
import { metric, until } from './gauges.js'

type Serve = (answer: ServerResponse, asked: IncomingMessage) => void

/** A team whose provider is `serve`; it can be another one from the next call on. */
async function hostileScene(t: Test, system: System, settings: { cacheTtlSeconds?: number } = {}) {
  const provider = { serve: plain({}) as Serve, connections: 0 }
  const server = createServer((asked, answer) =>
    asked.resume().on('end', () => provider.serve(answer, asked)),
  )
  server.on('connection', () => provider.connections++)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const team = await gatewayTeam(system, 'openai_compatible', `http://127.0.0.1:${port}/v1`)
  await addModel(system, team, MODEL)
  const { key } = await addVirtualKey(system, team, { ...settings, maxTpm: 1_000_000_000 })
  return { system, team, key, provider }
}

/** Everybody is served as before, and nothing is reserved any more. */
async function isWell(t: Test, { system, key, provider }: Awaited<ReturnType<typeof hostileScene>>) {
  provider.serve = plain({ choices: [choice({ content: 'Well.' })], usage })
  const body = { ...hello, messages: [{ role: 'user', content: 'Are you well?' }] }
  t.equal((await complete(system, key, body)).status, 200, 'the next call is served')
  t.equal(await metric(system, 'agh_proxy_live_holds'), 0, 'no reservation is left')
  t.notMatch(system.proxy.output(), /nobody caught|nobody awaits/, 'nothing came through to the event loop')
}

const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
const choice = (message: unknown) => ({ index: 0, message, finish_reason: 'stop' })
const plain = (body: unknown) => text(JSON.stringify(body))
const text = (body: string) => (answer: ServerResponse) => {
  answer.setHeader('content-type', 'application/json')
  answer.end(body)
}
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

test('whatever a provider answers, everybody else is served', async t => {
  const system = await startSystem(t)

  await t.test(
    'a model whose name at the provider is in any script can be called, plain and streamed',
    async t => {
      const { team, key, provider } = await hostileScene(t, system)
      await expect(system, createModel, {
        as: team.apiKey,
        body: { publicName: 'local', connectionId: team.connectionId, upstreamModel: '模型 ü\nx' },
      })
      const body = { ...hello, model: 'local' }
      provider.serve = plain({ choices: [choice({ content: 'Hi' })], usage })
      const answer = await complete(system, key, body)
      t.equal(answer.status, 200)
      t.equal(decodeURIComponent(answer.headers.get('x-gateway-model') ?? ''), '模型 ü\nx')
      provider.serve = answer => answer.end(`data: ${JSON.stringify({ choices: [] })}\n\ndata: [DONE]\n\n`)
      const streamed = await complete(system, key, { ...body, stream: true })
      t.equal(streamed.headers.get('x-gateway-model'), answer.headers.get('x-gateway-model'))
      t.match(await streamed.text(), /\[DONE\]/)
      provider.serve = answer => answer.writeHead(500).end()
      t.match(await errorOf(await complete(system, key, body)), /^502 PROVIDER_ERROR/)
    },
  )

  await t.test('whatever choices an answer has, its cached copy is replayed as a stream', async t => {
    const it = await hostileScene(t, system, { cacheTtlSeconds: 60 })
    const { key, provider } = it
    const odd = [choice({ content: 'Hi', tool_calls: null }), choice(null), {}, null, 7]
    for (const [at, item] of odd.entries()) {
      provider.serve = plain({ id: 'x', choices: [item], usage })
      const body = { ...hello, messages: [{ role: 'user', content: `${at}` }] }
      t.equal((await complete(system, key, body)).status, 200)
      const replayed = await complete(system, key, { ...body, stream: true })
      t.equal(replayed.headers.get('x-gateway-cache'), 'hit')
      t.match(await replayed.text(), /data: \[DONE\]\n\n$/, JSON.stringify(item))
    }
    await isWell(t, it)
  })

  await t.test(
    'an answer that only looks like JSON is a broken one where it would be kept or captured',
    async t => {
      const it = await hostileScene(t, system, { cacheTtlSeconds: 60 })
      const { team, key, provider } = it
      provider.serve = text(
        `{"choices":[{"message":{"content": oops },"finish_reason":"stop"}],"usage":${JSON.stringify(usage)}}`,
      )
      t.match(await errorOf(await complete(system, key, hello)), /^502 PROVIDER_ERROR The provider's answer/)
      const uncached = await addVirtualKey(system, team, { maxTpm: 1_000_000_000 })
      const captured = await complete(system, uncached.key, hello, { 'x-capture-payloads': 'true' })
      t.match(await errorOf(captured), /^502 PROVIDER_ERROR The provider's answer/)
      await isWell(t, it)
    },
  )

  await t.test('an answer behind a byte order mark is an answer', async t => {
    const it = await hostileScene(t, system)
    const { key, provider } = it
    provider.serve = text(`\uFEFF${JSON.stringify({ choices: [choice({ content: 'Hi' })], usage })}`)
    const answer = await complete(system, key, hello)
    t.equal(answer.status, 200)
    t.match(await answer.json(), { usage })
    await isWell(t, it)
  })

  await t.test('JSON nested deeper than anything can walk is answered, plain and streamed', async t => {
    const it = await hostileScene(t, system, { cacheTtlSeconds: 60 })
    const { key, provider } = it
    const deep = `{"content":"Hi","x":{"y":${nested(100_000)}},"z":${'{"z":'.repeat(20_000)}1${'}'.repeat(20_000)}}`
    provider.serve = text(
      `{"choices":[{"message":${deep},"finish_reason":"stop"}],"usage":${JSON.stringify(usage)}}`,
    )
    t.equal((await complete(system, key, hello)).status, 200)
    const frame = `data: {"choices":[{"index":0,"delta":${deep},"finish_reason":"stop"}]}`
    provider.serve = answer => answer.end(`${frame}\n\n${frame}`)
    const streamed = await complete(system, key, { ...hello, stream: true })
    t.match(await streamed.text(), /"code":"PROVIDER_ERROR"/)
    await isWell(t, it)
  })

  await t.test('a provider that goes on for ever behind the end of its stream is cut off', async t => {
    const it = await hostileScene(t, system)
    const { key, provider } = it
    let cut = false
    provider.serve = answer => {
      answer.write(`data: ${JSON.stringify({ choices: [{ ...choice({}), delta: {} }] })}\n\ndata: [DONE]\n\n`)
      const drip = setInterval(() => answer.write(': and on\n\n'), 100)
      answer.on('close', () => {
        clearInterval(drip)
        cut = true
      })
    }
    t.match(await (await complete(system, key, { ...hello, stream: true })).text(), /\[DONE\]/)
    await until('the connection is cut', 10_000, () => cut, Boolean)
    await isWell(t, it)
  })

  await t.test(
    'a client that lags at the end of its stream does not keep the provider’s connection',
    async t => {
      const it = await hostileScene(t, system)
      const { key, provider } = it
      const frame = (content: string, finish: string | null) =>
        `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`
      provider.serve = answer =>
        answer.end(`${frame('x'.repeat(12_000_000), null)}${frame('', 'stop')}data: [DONE]\n\n`)
      const call = request(`${system.baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      })
      call.end(JSON.stringify({ ...hello, stream: true }))
      const [answer] = (await once(call, 'response')) as [IncomingMessage]
      await sleep(500)
      answer.resume()
      await once(answer, 'end')
      provider.serve = plain({ choices: [choice({ content: 'Hi' })], usage })
      t.equal((await complete(system, key, hello)).status, 200)
      t.equal(provider.connections, 1, 'the next call has the same connection')
    },
  )
})
