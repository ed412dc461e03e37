import OpenAI from 'openai'
import type { Test } from 'tap'
import type { ProviderAdapter } from '../../../proxy/providers/adapter.js'
import { ChunkAssembler } from '../../../proxy/providers/chunk-assembler.js'
import { asList, asObject, type Json } from '../../../proxy/providers/wire-values.js'
import { callOf, chunksOf, framesOf, relayed, stub } from './call.js'

type Case = (t: Test, adapter: ProviderAdapter) => void | Promise<void>

const plain = (adapter: ProviderAdapter, name: string) =>
  adapter.readCompletion(stub(adapter.kind, `${name}.json`), callOf(adapter.kind))

function streamed(adapter: ProviderAdapter, name: string, asksForUsage = false) {
  const options = asksForUsage ? { stream_options: { include_usage: true } } : {}
  const reader = adapter.streamReader(callOf(adapter.kind, { stream: true, ...options }))
  reader.state.collect()
  const text = relayed(reader, [stub(adapter.kind, `${name}.sse`)])
  return { text, state: reader.state }
}

const choiceOf = (value: Json) => asObject(asList(value.choices)[0])
const messageOf = (value: Json) => asObject(choiceOf(value).message)

const TOOLS = [
  { name: 'get_weather', arguments: { city: 'Zürich' } },
  { name: 'get_time', arguments: {} },
]
const toolsOf = (message: Json) =>
  asList(message.tool_calls).map(item => {
    const { name, arguments: text } = asObject(asObject(item).function)
    return { name, arguments: JSON.parse(String(text)) as unknown }
  })

/** What every provider kind gives an OpenAI client, on recorded answers. Add a case here and it holds for all. */
const cases: Record<string, Case> = {
  'a plain answer is a chat completion with its usage'(t, adapter) {
    const completion = plain(adapter, 'text')
    const value = JSON.parse(completion.bytes.toString('utf8')) as Json
    t.equal(value.object, 'chat.completion')
    t.match(messageOf(value), { role: 'assistant', content: /^Grüezi!/ })
    t.equal(choiceOf(value).finish_reason, 'stop')
    t.match(value.usage, { prompt_tokens: 19, completion_tokens: 10, total_tokens: 29 })
    t.same(completion.tokens, { input: 19, cacheRead: 0, cacheWrite: 0, output: 10 })
    t.equal(completion.finishReason, 'stop')
    t.same(completion.value(), value)
  },

  'plain tool calls keep ids, names and arguments'(t, adapter) {
    const completion = plain(adapter, 'tools')
    const message = messageOf(completion.value())
    t.equal(message.content, null)
    t.same(toolsOf(message), TOOLS)
    t.match(message.tool_calls, [{ id: 'call_a', type: 'function' }, { id: 'call_b' }])
    t.equal(completion.finishReason, 'tool_calls')
  },

  'cached tokens are a bucket of their own and shown in both places'(t, adapter) {
    const completion = plain(adapter, 'cached')
    t.same(completion.tokens, { input: 86, cacheRead: 1920, cacheWrite: 0, output: 300 })
    const { usage } = JSON.parse(completion.bytes.toString('utf8')) as Json
    t.match(usage, {
      prompt_tokens: 2006,
      cached_tokens: 1920,
      prompt_tokens_details: { cached_tokens: 1920 },
    })
    t.equal(completion.finishReason, 'length')
  },

  'a filtered answer is a completion that says so'(t, adapter) {
    const completion = plain(adapter, 'filtered')
    t.equal(completion.finishReason, 'content_filter')
    t.equal(messageOf(completion.value()).content, '')
    t.same(completion.tokens, { input: 12, cacheRead: 0, cacheWrite: 0, output: 0 })
  },

  'a body that is no completion is refused'(t, adapter) {
    for (const body of ['<html>', '{}', '[]', '', '{"choices":', 'null']) {
      t.throws(() => adapter.readCompletion(Buffer.from(body), callOf(adapter.kind)), {
        name: 'BrokenAnswer',
      })
    }
  },

  'a stream is chunks of one id, role first, reason last, then [DONE]'(t, adapter) {
    const { text, state } = streamed(adapter, 'text')
    const frames = framesOf(text)
    t.equal(frames.at(-1), '[DONE]')
    t.equal(frames.filter(frame => frame === '[DONE]').length, 1)
    const chunks = chunksOf(text)
    t.equal(new Set(chunks.map(chunk => `${chunk.object} ${chunk.id} ${chunk.created}`)).size, 1)
    t.equal(chunks[0]?.object, 'chat.completion.chunk')
    t.match(choiceOf(chunks[0] ?? {}), { index: 0, delta: { role: 'assistant' } })
    t.ok(chunks.some(chunk => choiceOf(chunk).finish_reason === 'stop'))
    t.match(state, { complete: true, failure: null, finishReason: 'stop' })
    t.equal(state.ended, adapter.kind !== 'google', 'Google alone has no end mark')
    t.ok(state.outputBytes >= Buffer.byteLength('Grüezi! 漢字 👋'))
  },

  'the usage-only chunk comes when asked for, and is counted either way'(t, adapter) {
    const unasked = streamed(adapter, 'text')
    const asked = streamed(adapter, 'text', true)
    const tokens = { input: 19, cacheRead: 0, cacheWrite: 0, output: 10 }
    t.same(unasked.state.tokens, tokens)
    t.same(asked.state.tokens, tokens)
    const usageOnly = (text: string) => chunksOf(text).filter(chunk => asList(chunk.choices).length === 0)
    t.same(usageOnly(unasked.text), [])
    t.match(chunksOf(asked.text).find(chunk => chunk.usage !== undefined && chunk.usage !== null)?.usage, {
      prompt_tokens: 19,
      completion_tokens: 10,
      total_tokens: 29,
    })
  },

  'streamed cached tokens are shown in both places'(t, adapter) {
    const { text, state } = streamed(adapter, 'cached', true)
    t.same(state.tokens, { input: 86, cacheRead: 1920, cacheWrite: 0, output: 300 })
    const usage = chunksOf(text)
      .map(chunk => chunk.usage)
      .filter(Boolean)
      .at(-1)
    t.match(usage, { cached_tokens: 1920, prompt_tokens_details: { cached_tokens: 1920 } })
  },

  'streamed tool calls have index, id, type and name on their first fragment'(t, adapter) {
    const { text, state } = streamed(adapter, 'tools')
    const fragments = chunksOf(text).flatMap(chunk =>
      asList(asObject(choiceOf(chunk).delta).tool_calls).map(asObject),
    )
    for (const [index, id] of ['call_a', 'call_b'].entries()) {
      const own = fragments.filter(fragment => fragment.index === index)
      t.match(own[0], { index, id, type: 'function', function: { name: TOOLS[index]?.name } })
      t.ok(own.slice(1).every(fragment => fragment.id === undefined))
      const whole = own.map(fragment => asObject(fragment.function).arguments).join('')
      t.same(JSON.parse(whole), TOOLS[index]?.arguments)
    }
    t.equal(state.finishReason, 'tool_calls')
  },

  'the assembled stream equals the plain answer'(t, adapter) {
    for (const name of ['text', 'tools', 'cached']) {
      const { state, text } = streamed(adapter, name)
      const whole = state.assemble?.() ?? {}
      t.equal(whole.object, 'chat.completion')
      const recorded = messageOf(plain(adapter, name).value())
      if (name !== 'text') t.equal(messageOf(whole).content, recorded.content)
      t.same(toolsOf(messageOf(whole)), toolsOf(recorded))
      t.ok(whole.usage, 'usage is kept for the cache although the client did not ask')
      const assembler = new ChunkAssembler()
      for (const chunk of chunksOf(text)) assembler.add(chunk)
      t.same(messageOf(assembler.value()), messageOf(whole), 'what the client can assemble is the same')
    }
  },

  async 'the openai package reads every answer, plain and streamed'(t, adapter) {
    const client = (body: Uint8Array | string, type: string) =>
      new OpenAI({
        apiKey: 'k',
        fetch: async () => new Response(body as string, { headers: { 'content-type': type } }),
      })
    const asked = { model: 'm', messages: [{ role: 'user' as const, content: 'Hi' }] }
    for (const name of ['text', 'tools', 'cached', 'filtered']) {
      const { bytes } = plain(adapter, name)
      const whole = await client(bytes, 'application/json').chat.completions.create(asked)
      const { text } = streamed(adapter, name, true)
      const stream = client(text, 'text/event-stream').chat.completions.stream({ ...asked, stream: true })
      const pieced = await stream.finalChatCompletion().catch(String)
      if (typeof pieced === 'string') {
        // The package throws its own error for a filtered answer.
        t.match(pieced, name === 'filtered' ? /content filter/i : /length limit/i)
        continue
      }
      t.match(pieced.choices[0]?.finish_reason, whole.choices[0]?.finish_reason)
      t.same(toolsOf({ ...pieced.choices[0]?.message }), toolsOf({ ...whole.choices[0]?.message }))
      t.equal(pieced.usage?.total_tokens, whole.usage?.total_tokens)
    }
    const { text } = streamed(adapter, 'error')
    const broken = `${text}data: {"error":{"code":"PROVIDER_ERROR","message":"The provider failed"}}\n\n`
    const stream = await client(broken, 'text/event-stream').chat.completions.create({
      ...asked,
      stream: true,
    })
    await t.rejects(async () => {
      for await (const chunk of stream) t.ok(chunk.choices)
    }, /The provider failed/)
  },

  'an error inside the stream ends it without [DONE]'(t, adapter) {
    const { text, state } = streamed(adapter, 'error')
    t.type(state.failure?.message, 'string')
    t.match(state.failure?.message, /server had an error|CUDA|[Oo]verloaded/)
    t.notMatch(text, /\[DONE\]|error/)
    t.match(text, /Hal/)
    t.equal(state.complete, false)
  },

  'a stream cut before its end is not complete'(t, adapter) {
    const { text, state } = streamed(adapter, 'cut')
    t.equal(state.complete, false)
    t.equal(state.failure, null)
    t.match(text, /Hal/)
    t.notMatch(text, /\[DONE\]/)
  },

  'a filtered stream ends with content_filter'(t, adapter) {
    const { text, state } = streamed(adapter, 'filtered')
    t.equal(state.finishReason, 'content_filter')
    t.equal(framesOf(text).at(-1), '[DONE]')
    t.same(state.tokens, { input: 12, cacheRead: 0, cacheWrite: 0, output: 0 })
  },

  'garbage in a stream is a failure, never a throw'(t, adapter) {
    for (const garbage of ['data: {"x": oops\n\n', 'data: 7\n\n', '\u0000\u00ff\n\ndata: nope\n\n']) {
      const reader = adapter.streamReader(callOf(adapter.kind, { stream: true }))
      const text = relayed(reader, [Buffer.from(garbage), Buffer.from('data: [DONE]\n\n')])
      t.type(reader.state.failure?.message, 'string')
      t.notMatch(text, /DONE/)
    }
  },

  'a frame without end is refused at 16 MB'(t, adapter) {
    const reader = adapter.streamReader(callOf(adapter.kind, { stream: true }))
    const megabyte = Buffer.alloc(1 << 20, 'a')
    reader.push(Buffer.from('data: {"choices":[{"delta":{"content":"'))
    for (let pushed = 0; pushed < 20; pushed++) reader.push(megabyte)
    t.match(reader.state.failure, { message: /16 MB/ })
    t.equal(reader.end().length, 0)
  },

  'the credential travels in a header and nowhere else'(t, adapter) {
    for (const stream of [false, true]) {
      const call = callOf(adapter.kind, { stream })
      const { path, body, headers } = adapter.buildRequest(call)
      t.equal(headers.filter(value => value.includes(call.apiKey)).length, 1)
      t.notOk(path.includes(call.apiKey))
      t.notOk(body.includes(call.apiKey))
    }
  },

  'fields that do not exist yet go to the provider unchanged'(t, adapter) {
    const request = { brand_new: { deep: [1, null] } }
    const body = JSON.parse(adapter.buildRequest(callOf(adapter.kind, request)).body.toString('utf8')) as Json
    t.same(body.brand_new, request.brand_new)
  },

  'a provider error is mapped the same for every kind'(t, adapter) {
    const none = () => undefined
    const read = (status: number, body = '{"error":{"message":"Because."}}') =>
      adapter.readError(status, none, Buffer.from(body))
    t.match(read(404), { status: 404, code: 'PROVIDER_ERROR', message: 'Because.' })
    t.match(read(429), { status: 429, code: 'PROVIDER_RATE_LIMITED', message: 'Because.' })
    t.match(read(401), { status: 502, message: /credential/ })
    t.match(read(529), { status: 502, code: 'PROVIDER_ERROR' })
  },
}

export function adapterConformance(t: Test, adapter: ProviderAdapter): void {
  for (const [promise, check] of Object.entries(cases)) {
    t.test(promise, async child => {
      await check(child, adapter)
    })
  }
}
