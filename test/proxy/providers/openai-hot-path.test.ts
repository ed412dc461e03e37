import { test } from 'tap'
import type { RawBody } from '../../../proxy/providers/adapter.js'
import { openai } from '../../../proxy/providers/openai.js'
import { openaiCompatible } from '../../../proxy/providers/openai-compatible.js'
import { asList, type Json } from '../../../proxy/providers/wire-values.js'
import { bodyOf, callOf, chunksOf, headerOf, relayed, stub } from './call.js'

function rawOf(text: string, overrides: Partial<RawBody> = {}): RawBody {
  const bytes = Buffer.from(text)
  const at = bytes.indexOf('"public"')
  return {
    bytes,
    modelStart: Math.max(0, at),
    modelEnd: at < 0 ? 0 : at + 8,
    insertAt: bytes.indexOf('{') + 1,
    hasStreamOptions: text.includes('stream_options'),
    mayHaveCacheControl: text.includes('cache_control'),
    ...overrides,
  }
}

const sent = (text: string, overrides: Parameters<typeof callOf>[2] = {}) => {
  const request = JSON.parse(text) as Json
  return openai.buildRequest(callOf('openai', request, { raw: rawOf(text), ...overrides }))
}

test('the client’s bytes are sent as they are, with the provider’s model in place', async t => {
  const text =
    ' { "messages":[{"role":"user","content":"Grüezi \\"model\\""}],\n "x":1.0e2, "model" : "public" }'
  const request = sent(text)
  t.equal(request.body.toString(), text.replace('"public"', '"gpt-4.1-2025-04-14"'))
  t.equal(request.path, '/v1/chat/completions')
  t.equal(headerOf(request, 'authorization'), 'Bearer sk-secret-key-0123456789')
  const odd = sent(text, { upstreamModel: 'né "w"' })
  t.equal(bodyOf(odd).model, 'né "w"')
})

test('a stream asks for usage by insertion, whether or not the client did', async t => {
  const text = '{"model":"public","stream":true,"messages":[]}'
  const body = sent(text, { stream: true }).body.toString()
  t.equal(
    body,
    '{"stream_options":{"include_usage":true},"model":"gpt-4.1-2025-04-14","stream":true,"messages":[]}',
  )

  const asking = '{"stream_options":{"include_usage":true},"model":"public","stream":true,"messages":[]}'
  t.equal(
    sent(asking, { stream: true, wantsUsage: true }).body.toString(),
    asking.replace('public', 'gpt-4.1-2025-04-14'),
  )

  const declining =
    '{"stream_options":{"include_usage":false,"x":1},"model":"public","stream":true,"messages":[]}'
  t.match(bodyOf(sent(declining, { stream: true })), {
    model: 'gpt-4.1-2025-04-14',
    stream_options: { include_usage: true, x: 1 },
  })
})

test('a body without a model gets one', async t => {
  t.equal(sent('{"messages":[]}').body.toString(), '{"model":"gpt-4.1-2025-04-14","messages":[]}')
})

test('cache markers never reach a model that does not know them', async t => {
  const text =
    '{"model":"public","messages":[{"role":"user","content":"Hi","cache_control":{"type":"ephemeral"}}]}'
  t.same(bodyOf(sent(text)).messages, [{ role: 'user', content: 'Hi' }])
  const request = JSON.parse(text) as Json
  const llama = openaiCompatible.buildRequest(
    callOf('openai_compatible', request, { upstreamModel: 'llama-3', raw: rawOf(text) }),
  )
  t.same(bodyOf(llama).messages, [{ role: 'user', content: 'Hi' }])
})

test('an Anthropic model behind a router gets its markers on the last content block', async t => {
  const cache_control = { type: 'ephemeral' }
  const parts = [
    { type: 'text', text: 'a' },
    { type: 'text', text: 'b' },
  ]
  const messages = [
    { role: 'system', content: 'Long', cache_control },
    { role: 'user', content: parts, cache_control },
    { role: 'assistant', content: '', cache_control },
    { role: 'assistant', content: null, tool_calls: [], cache_control },
  ]
  for (const upstreamModel of ['anthropic/claude-sonnet-4', 'claude-opus-4-5', 'eu.anthropic.claude-3']) {
    const body = bodyOf(
      openaiCompatible.buildRequest(callOf('openai_compatible', { messages }, { upstreamModel })),
    )
    t.same(body.messages, [
      { role: 'system', content: [{ type: 'text', text: 'Long', cache_control }] },
      { role: 'user', content: [parts[0], { ...parts[1], cache_control }] },
      { role: 'assistant', content: '' },
      { role: 'assistant', content: null, tool_calls: [] },
    ])
  }
})

test('a base URL keeps its path and query', async t => {
  const azure = callOf(
    'openai_compatible',
    {},
    { baseUrl: 'https://x.openai.azure.com/openai/v1?api-version=2' },
  )
  t.equal(openaiCompatible.buildRequest(azure).path, '/openai/v1/chat/completions?api-version=2')
  const bare = callOf('openai_compatible', {}, { baseUrl: 'http://a' })
  t.equal(openaiCompatible.buildRequest(bare).path, '/chat/completions')
})

const answer = (more: Json, message: Json = { role: 'assistant', content: 'Hi' }) => ({
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
  ...more,
})
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const readText = (text: string) => openai.readCompletion(Buffer.from(text), callOf('openai'))
const read = (value: unknown) => readText(JSON.stringify(value))

test('a plain answer’s bytes are the provider’s own, indented or not', async t => {
  const recorded = stub('openai', 'text.json')
  t.equal(openai.readCompletion(recorded, callOf('openai')).bytes, recorded)
  const minified = Buffer.from(JSON.stringify(JSON.parse(recorded.toString())))
  t.equal(openai.readCompletion(minified, callOf('openai')).bytes, minified)
})

test('usage inside a text, a nested object or a tool’s arguments is never taken for the answer’s', async t => {
  const lie = '"usage":{"prompt_tokens":999,"completion_tokens":999},"finish_reason":"length"}'
  const real = { input: 3, cacheRead: 0, cacheWrite: 0, output: 2 }
  const texts = [
    lie,
    `{${lie}`,
    `\\${lie}`,
    `x","usage`,
    '"usage":',
    '\\"usage"',
    'end \\',
    '"}],"usage":{"prompt_tokens":9}}',
  ]
  for (const content of texts) {
    const message = { role: 'assistant', content, tool_calls: [{ function: { arguments: lie } }] }
    for (const value of [
      answer({ usage }, message),
      answer({ usage, note: content }),
      answer({ usage, [content]: content }),
      { usage, ...answer({}, message) },
      answer({ usage, x_meta: { usage: { prompt_tokens: 999, completion_tokens: 9 } } }),
      answer({ usage, list: [{ usage: { prompt_tokens: 999, completion_tokens: 9 } }] }),
    ]) {
      for (const text of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
        const completion = readText(text)
        t.same(completion.tokens, real)
        t.equal(completion.finishReason, 'stop')
      }
    }
    t.equal(read(answer({}, message)).tokens, null, 'no usage is no usage')
    t.equal(read(answer({ usage: null }, message)).tokens, null)
    t.equal(read(answer({ meta: { usage } }, message)).tokens, null)
  }
})

test('zeros are a usage', async t => {
  const zero = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
  t.same(read(answer({ usage: zero })).tokens, { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 })
})

test('cached tokens are added in place; the rest of the body stays byte for byte', async t => {
  const cached = { ...usage, prompt_tokens_details: { cached_tokens: 2, audio_tokens: 0 } }
  const text = JSON.stringify(
    answer({ usage: cached, system_fingerprint: 'é' }, { content: 'Grüezi' }),
    null,
    1,
  )
  const { bytes, tokens } = readText(text)
  t.same(tokens, { input: 1, cacheRead: 2, cacheWrite: 0, output: 2 })
  const shown = JSON.stringify({ ...cached, cached_tokens: 2 })
  t.match(JSON.parse(bytes.toString()), {
    usage: { cached_tokens: 2, prompt_tokens_details: { cached_tokens: 2 } },
  })
  const [before] = text.split('"usage": ')
  t.ok(bytes.toString().startsWith(`${before}"usage": {`))
  t.match(bytes.toString(), shown.slice(0, 20))
  const already = { ...cached, cached_tokens: 2 }
  const own = Buffer.from(JSON.stringify(answer({ usage: already })))
  t.equal(openai.readCompletion(own, callOf('openai')).bytes, own)
})

test('tokens that routers and xAI count their own way land in the right bucket', async t => {
  const tokens = (value: Json) => read(answer({ usage: value })).tokens
  const written = {
    prompt_tokens: 10,
    completion_tokens: 1,
    prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 5 },
  }
  t.same(tokens(written), { input: 1, cacheRead: 4, cacheWrite: 5, output: 1 })
  t.same(tokens({ prompt_tokens: 5, completion_tokens: 1, cached_tokens: 9 }), {
    input: 0,
    cacheRead: 5,
    cacheWrite: 0,
    output: 1,
  })
  const xai = {
    prompt_tokens: 5,
    completion_tokens: 2,
    total_tokens: 17,
    completion_tokens_details: { reasoning_tokens: 10 },
  }
  t.equal(tokens(xai)?.output, 12)
  const included = {
    prompt_tokens: 5,
    completion_tokens: 12,
    total_tokens: 17,
    completion_tokens_details: { reasoning_tokens: 10 },
  }
  t.equal(tokens(included)?.output, 12)
})

const reader = (asked = false) =>
  openai.streamReader(
    callOf('openai', { stream: true, ...(asked && { stream_options: { include_usage: true } }) }),
  )
const chunk = (delta: Json, more: Json = {}, reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason: reason }], ...more })}\n\n`

test('ordinary frames pass as the very buffer that came in', async t => {
  const piece = Buffer.from(chunk({ content: 'a' }, { usage: null }) + chunk({ content: 'b' }))
  t.equal(reader().push(piece), piece)
})

test('usage on a last chunk with choices is read, and running totals are never added up', async t => {
  const frames = [
    chunk({ content: 'a' }, { usage: { prompt_tokens: 3, completion_tokens: 1 } }),
    chunk({ content: 'b' }, { usage: { prompt_tokens: 3, completion_tokens: 2 } }, 'stop'),
    chunk({}, { usage: null }),
  ]
  const subject = reader()
  const text = relayed(subject, [Buffer.from(frames.join(''))])
  t.equal(text, `${frames.join('')}data: [DONE]\n\n`)
  t.same(subject.state.tokens, { input: 3, cacheRead: 0, cacheWrite: 0, output: 2 })
})

test('words of the format inside a text change nothing', async t => {
  const words = '"usage":{"x":1},"error":{"message":"no"},"finish_reason":"length" data: [DONE] \n\n'
  const text = chunk({ content: words }) + chunk({ content: 'error' }) + chunk({}, {}, 'stop')
  const subject = reader()
  t.equal(relayed(subject, [Buffer.from(text)]), `${text}data: [DONE]\n\n`)
  t.match(subject.state, { failure: null, finishReason: 'stop', tokens: null })
})

test('[DONE] is sent once, at the end, and nothing behind it', async t => {
  const text = `${chunk({ content: 'a' })}data: [DONE]\n\n${chunk({ content: 'late' })}data: [DONE]\n\n`
  for (const pieces of [[text], [text.slice(0, 50), text.slice(50)]]) {
    const subject = reader()
    const out = relayed(
      subject,
      pieces.map(piece => Buffer.from(piece)),
    )
    t.equal(out, `${chunk({ content: 'a' })}data: [DONE]\n\n`)
  }
  const bare = reader()
  t.equal(
    relayed(bare, [Buffer.from(`${chunk({ content: 'a' }, {}, 'stop')}data: [DONE]`)]).match(/DONE/g)?.length,
    1,
  )
})

test('a finish reason is enough of an end; half a frame behind it is dropped', async t => {
  const whole = chunk({ content: 'a' }) + chunk({}, {}, 'stop')
  const subject = reader()
  t.equal(relayed(subject, [Buffer.from(`${whole}data: {"id":"c","cho`)]), `${whole}data: [DONE]\n\n`)
  t.match(subject.state, { complete: true, failure: null })
})

test('errors in the stream are found in every dress', async t => {
  const dresses = [
    'data: {"error":{"message":"Boom"}}\n\n',
    'data:{"error":{"message":"Boom"}}\n\n',
    'data: {"error":"Boom"}\r\n\r\n',
    'data: {"object":"error","message":"Boom","code":500}\n\n',
    'event: error\ndata: {"message":"Boom"}\n\n',
    `data: ${JSON.stringify({ choices: [{ delta: { content: '' }, finish_reason: 'error' }], error: { message: 'Boom' } })}\n\n`,
    '{"error":{"message":"Boom"}}\n\n',
  ]
  for (const dress of dresses) {
    const subject = reader()
    const out = relayed(subject, [
      Buffer.from(chunk({ content: 'a' }) + dress),
      Buffer.from(chunk({ content: 'b' })),
    ])
    t.match(subject.state.failure, { message: /Boom/ }, dress)
    t.equal(out.includes('DONE'), false)
    t.equal(out.includes('Boom'), false)
  }
  const bare = reader()
  relayed(bare, [Buffer.from('{"error":{'), Buffer.from('"message":"Boom"}}')])
  t.same(bare.state.failure, { message: 'Boom' })
  const fine = reader()
  relayed(fine, [Buffer.from(chunk({ content: 'a' }, { error: null }, 'stop'))])
  t.equal(fine.state.failure, null)
})

test('an error’s text never shows the key', async t => {
  const subject = reader()
  subject.push(Buffer.from('data: {"error":{"message":"bad key sk-secret-key-0123456789"}}\n\n'))
  t.same(subject.state.failure, { message: 'bad key ***' })
})

test('output is counted in bytes of text, reasoning and tool arguments, not of names', async t => {
  const subject = reader()
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
  const deltas = [
    { role: 'assistant', content: '' },
    { content: 'é1' },
    { reasoning_content: 'abc' },
    { tool_calls: [call] },
  ]
  relayed(subject, [Buffer.from(deltas.map(delta => chunk(delta)).join(''))])
  t.equal(subject.state.outputBytes, 3 + 3 + 2)
  const escaped = reader()
  escaped.push(Buffer.from(chunk({ content: '"\n' })))
  t.equal(escaped.state.outputBytes, 4, 'escapes count as they are written')
})

test('a 10 MB delta in small pieces passes whole and in linear time', async t => {
  const big = Buffer.from(chunk({ content: 'x'.repeat(10 << 20) }))
  const subject = reader()
  const started = performance.now()
  let length = 0
  for (let at = 0; at < big.length; at += 16_384) length += subject.push(big.subarray(at, at + 16_384)).length
  t.equal(length, big.length)
  t.equal(subject.state.outputBytes, 10 << 20)
  t.ok(performance.now() - started < 10_000)
})

test('several choices in a stream are assembled each on its own', async t => {
  const subject = reader()
  subject.state.collect()
  const piece = (index: number, delta: Json, reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'c', model: 'm', created: 1, choices: [{ index, delta, finish_reason: reason }] })}\n\n`
  const text = [
    piece(1, { content: 'b' }),
    piece(0, { content: 'a' }),
    piece(1, { content: 'B' }, 'stop'),
    piece(0, {}, 'length'),
  ]
  t.same(
    chunksOf(
      relayed(
        subject,
        text.map(frame => Buffer.from(frame)),
      ),
    ).length,
    4,
  )
  t.match(asList(subject.state.assemble?.().choices), [
    { index: 0, message: { content: 'a' }, finish_reason: 'length' },
    { index: 1, message: { content: 'bB' }, finish_reason: 'stop' },
  ])
})
