import { test } from 'tap'
import type { ChatRequest, Completion, StreamReader } from '../../../proxy/providers/adapter.js'
import { adapters } from '../../../proxy/providers/index.js'
import { createUpstream, type Upstream } from '../../../proxy/providers/upstream.js'
import { asList, asObject } from '../../../proxy/providers/wire-values.js'
import type { ProviderKind } from '../../../shared/contract/common.js'
import { type FakeProvider, startFakeProvider } from '../../support/fake-provider.js'
import { callOf } from './call.js'

/** One call over real HTTP: adapter, upstream, a provider that checks what it is sent. */
async function send(
  upstream: Upstream,
  fake: FakeProvider,
  kind: ProviderKind,
  request: Partial<ChatRequest>,
) {
  const adapter = adapters[kind]
  const baseUrl = fake.baseUrl(kind === 'openai_compatible' ? 'openai' : kind)
  const call = callOf(kind, request, { baseUrl })
  const body: Buffer[] = []
  let header: (name: string) => string | undefined = () => undefined
  const status = await new Promise<number>((resolve, reject) => {
    let seen = 0
    upstream.send(
      { baseUrl, ...adapter.buildRequest(call) },
      {
        onHead: (head, read) => {
          seen = head
          header = read
        },
        onData: chunk => body.push(chunk) > 0,
        onEnd: () => resolve(seen),
        onError: reject,
      },
    )
  })
  return { call, adapter, status, header, body }
}

async function plain(...args: Parameters<typeof send>): Promise<Completion> {
  const { adapter, body, call } = await send(...args)
  return adapter.readCompletion(Buffer.concat(body), call)
}

async function streamed(...args: Parameters<typeof send>): Promise<StreamReader> {
  const { adapter, body, call } = await send(...args)
  const reader = adapter.streamReader(call)
  reader.state.collect()
  for (const chunk of body) reader.push(chunk)
  reader.end()
  return reader
}

const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }]
const ask = (content: string) => ({ messages: [{ role: 'user', content }] })

for (const kind of ['openai', 'openai_compatible', 'anthropic', 'google'] as const) {
  test(`${kind}: the fake provider takes what the adapter sends and bills what the adapter reads`, async t => {
    const fake = await startFakeProvider()
    const upstream = createUpstream({ privateHosts: 'allow' })
    t.teardown(() => Promise.all([upstream.close(), fake.stop()]))
    const billed = (at: number) => {
      const { promptTokens = 0, cachedTokens = 0, completionTokens = 0 } = fake.bill[at] ?? {}
      return {
        input: promptTokens - cachedTokens,
        cacheRead: cachedTokens,
        cacheWrite: 0,
        output: completionTokens,
      }
    }

    fake.next({ cachedTokens: 5 })
    const text = await plain(upstream, fake, kind, ask('Hello over there, how are you?'))
    t.same(text.tokens, billed(0))
    t.match(text.value(), { choices: [{ message: { content: 'Hello from the fake provider.' } }] })

    fake.next({ cachedTokens: 5, oneByte: true })
    const { state } = await streamed(upstream, fake, kind, {
      ...ask('Hello over there, how are you?'),
      stream: true,
    })
    t.match(state, { complete: true, failure: null, tokens: billed(1), finishReason: 'stop' })
    t.match(state.assemble?.(), { choices: [{ message: { content: 'Hello from the fake provider.' } }] })
    t.equal(fake.bill[1]?.finished, true)

    const capped = await plain(upstream, fake, kind, { ...ask('Hi'), max_tokens: 2 })
    t.match(capped, { finishReason: 'length', tokens: { output: 2 } })

    const calling = await streamed(upstream, fake, kind, { ...ask('use get_weather'), tools, stream: true })
    const { choices } = calling.state.assemble?.() ?? {}
    const message = asObject(asObject(asList(choices)[0]).message)
    t.match(message.tool_calls, [
      { function: { name: 'get_weather', arguments: '{"city":"Zürich","days":2}' } },
    ])
    const [first] = asList(message.tool_calls).map(asObject)
    const answered = await plain(upstream, fake, kind, {
      tools,
      messages: [
        { role: 'user', content: 'use get_weather' },
        { ...message, role: 'assistant' },
        { role: 'tool', tool_call_id: first?.id, content: '21 degrees' },
      ],
    })
    t.equal(answered.finishReason, 'stop', 'the loop ends')
    t.ok(fake.bill.every(entry => entry.finished))
  })

  test(`${kind}: the fake provider's faults come out as what they are`, async t => {
    const fake = await startFakeProvider()
    const upstream = createUpstream({ privateHosts: 'allow' })
    t.teardown(() => Promise.all([upstream.close(), fake.stop()]))
    const stream = { ...ask('Hi'), stream: true }

    fake.next({ status: 429, retryAfter: '7' })
    const limited = await send(upstream, fake, kind, ask('Hi'))
    const failure = limited.adapter.readError(limited.status, limited.header, Buffer.concat(limited.body))
    t.match(failure, { code: 'PROVIDER_RATE_LIMITED', message: /told to fail/, retryAfterSeconds: 7 })

    fake.next({ garbage: true })
    t.match((await streamed(upstream, fake, kind, stream)).state.failure, { message: /not JSON/ })
    fake.next({ inBandError: 3 })
    t.match((await streamed(upstream, fake, kind, stream)).state.failure, { message: /Overloaded/ })
    fake.next({ closeDelimited: true, cut: 500 })
    t.match((await streamed(upstream, fake, kind, stream)).state, { complete: false, failure: null })
    fake.next({ garbage: true })
    await t.rejects(plain(upstream, fake, kind, ask('Hi')), { name: 'BrokenAnswer' })
    fake.next({ cut: 20 })
    await t.rejects(plain(upstream, fake, kind, ask('Hi')), { name: 'UpstreamError' })
    await t.rejects(send(upstream, fake, kind, ask('[fault cut=20]')), { message: 'upstream reset' })
    t.equal(fake.bill.at(-1)?.finished, false)
  })
}

test('usage on the finish chunk, or none at all', async t => {
  const fake = await startFakeProvider()
  const upstream = createUpstream({ privateHosts: 'allow' })
  t.teardown(() => Promise.all([upstream.close(), fake.stop()]))
  const stream = { ...ask('Hi'), stream: true }
  fake.next({ usageOnLast: true })
  t.match((await streamed(upstream, fake, 'openai_compatible', stream)).state.tokens, { output: 6 })
  fake.next({ noUsage: true })
  const silent = await streamed(upstream, fake, 'openai_compatible', stream)
  t.match(silent.state, { tokens: null, complete: true })
  t.equal(silent.state.outputBytes, 'Hello from the fake provider.'.length)
  fake.next({ noDone: true })
  t.equal(
    (await streamed(upstream, fake, 'openai_compatible', stream)).state.complete,
    true,
    'a finish reason is an end',
  )
})
