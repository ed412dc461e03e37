import { type Test, test } from 'tap'
import type { ChatRequest } from '../../../proxy/providers/adapter.js'
import { anthropic } from '../../../proxy/providers/anthropic.js'
import { asList, asObject, type Json } from '../../../proxy/providers/wire-values.js'
import { bodyOf, callOf, chunksOf, headerOf, relayed, stub } from './call.js'

const build = (request: Partial<ChatRequest>, overrides: Parameters<typeof callOf>[2] = {}) =>
  bodyOf(anthropic.buildRequest(callOf('anthropic', request, overrides)))
const refuses = (t: Test, request: Partial<ChatRequest>, message: RegExp) =>
  t.throws(() => build(request), { code: 'VALIDATION_ERROR', message })
const ephemeral = { type: 'ephemeral' }
const text = (content: string, more: Json = {}) => ({ type: 'text', text: content, ...more })

test('the request goes to /messages with the version and the key in headers', async t => {
  const request = anthropic.buildRequest(callOf('anthropic'))
  t.equal(request.path, '/v1/messages')
  t.equal(headerOf(request, 'x-api-key'), 'sk-secret-key-0123456789')
  t.equal(headerOf(request, 'anthropic-version'), '2023-06-01')
  t.same(bodyOf(request), {
    model: 'claude-sonnet-4-5-20250929',
    max_tokens: 4096,
    messages: [{ role: 'user', content: [text('Hi')] }],
  })
})

test('max_tokens is the client’s, else the smaller of the model’s own and 4096', async t => {
  t.equal(build({ max_tokens: 7 }).max_tokens, 7)
  t.equal(build({ max_completion_tokens: 8, max_tokens: 7 }).max_tokens, 8)
  t.equal(build({}, { maxOutputTokens: 1000 }).max_tokens, 1000)
  t.equal(build({}, { maxOutputTokens: 64_000 }).max_tokens, 4096)
})

test('system and developer messages become system blocks, in order, with their markers', async t => {
  const body = build({
    messages: [
      { role: 'system', content: 'One', cache_control: ephemeral },
      { role: 'user', content: 'Hi' },
      { role: 'developer', content: [text('Two'), text('')] },
    ],
  })
  t.same(body.system, [text('One', { cache_control: ephemeral }), text('Two')])
  t.same(body.messages, [{ role: 'user', content: [text('Hi')] }])
})

test('images go as base64 or by reference, files as documents', async t => {
  const content = [
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
    { type: 'image_url', image_url: { url: 'https://x.example/a.png' } },
    { type: 'file', file: { file_data: 'data:application/pdf;base64,BBBB', filename: 'a.pdf' } },
    text('What is it?'),
    { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'own' } },
  ]
  const [turn] = asList(build({ messages: [{ role: 'user', content, cache_control: ephemeral }] }).messages)
  t.same(asObject(turn).content, [
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    { type: 'image', source: { type: 'url', url: 'https://x.example/a.png' } },
    {
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: 'BBBB' },
      title: 'a.pdf',
    },
    text('What is it?'),
    { ...content[4], cache_control: ephemeral },
  ])
  const image = (url: string) => ({
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
  })
  refuses(t, image('ftp://x/a.png'), /messages\.0\.content\.0\.image_url\.url/)
  refuses(t, { messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] }, /audio/)
})

const calls = [
  { id: 'call_a', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
  { id: 'call_b', type: 'function', function: { name: 'g', arguments: '' } },
]

test('tool calls and their results: input is an object, results share one user turn and come first', async t => {
  const body = build({
    messages: [
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: 'Well', tool_calls: calls },
      { role: 'tool', tool_call_id: 'call_a', content: 'one' },
      { role: 'tool', tool_call_id: 'call_b', content: [text('two')], cache_control: ephemeral },
      { role: 'user', content: 'And?' },
    ],
  })
  t.same(body.messages, [
    { role: 'user', content: [text('Go')] },
    {
      role: 'assistant',
      content: [
        text('Well'),
        { type: 'tool_use', id: 'call_a', name: 'f', input: { a: 1 } },
        { type: 'tool_use', id: 'call_b', name: 'g', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'call_a', content: 'one' },
        { type: 'tool_result', tool_use_id: 'call_b', content: [text('two')], cache_control: ephemeral },
        text('And?'),
      ],
    },
  ])
})

test('neighbours of one role become one turn, empty ones none', async t => {
  const body = build({
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: null },
      { role: 'user', content: 'b', cache_control: ephemeral },
      { role: 'user', content: 'c' },
    ],
  })
  t.same(body.messages, [
    { role: 'user', content: [text('a'), text('b', { cache_control: ephemeral }), text('c')] },
  ])
})

test('what the format cannot hold is a 400 that names the field', async t => {
  const bad = (args: string) => ({
    messages: [{ role: 'assistant', tool_calls: [{ id: 'x', function: { name: 'f', arguments: args } }] }],
  })
  refuses(t, bad('{"a":'), /messages\.0\.tool_calls\.0\.function\.arguments/)
  refuses(t, bad('[1]'), /Expected a JSON object/)
  refuses(t, { messages: [{ role: 'tool', content: 'x' }] }, /messages\.0\.tool_call_id: Required/)
  refuses(t, { messages: [{ role: 'user', content: 7 }] }, /messages\.0\.content/)
  refuses(t, { messages: [{ role: 'robot', content: 'x' }] }, /robot/)
  refuses(t, { tools: [{ type: 'custom', custom: { name: 'x' } }] }, /tools\.0/)
  refuses(t, { tool_choice: 'perhaps', tools: [] }, /tool_choice/)
})

const tool = (name: string, more: Json = {}) => ({ type: 'function', function: { name, ...more } })

test('tools and the choice among them', async t => {
  const parameters = { type: 'object', properties: { a: { type: 'string' } } }
  const tools = [tool('f', { description: 'd', parameters, strict: true }), tool('g')]
  const own = { type: 'web_search_20250305', name: 'web_search' }
  t.same(build({ tools: [...tools, own] }).tools, [
    { name: 'f', description: 'd', input_schema: parameters, strict: true },
    { name: 'g', input_schema: { type: 'object', properties: {} } },
    own,
  ])
  const choice = (tool_choice: unknown, more: Json = {}) => build({ tools, tool_choice, ...more }).tool_choice
  t.equal(choice(undefined), undefined)
  t.same(choice('auto'), { type: 'auto' })
  t.same(choice('required'), { type: 'any' })
  t.same(choice('none'), { type: 'none' })
  t.same(choice(tool('g')), { type: 'tool', name: 'g' })
  t.same(choice(undefined, { parallel_tool_calls: false }), { type: 'auto', disable_parallel_tool_use: true })
  t.same(choice('required', { parallel_tool_calls: false }), { type: 'any', disable_parallel_tool_use: true })
  const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [tool('g')] } }
  t.match(build({ tools, tool_choice: allowed }), { tools: [{ name: 'g' }], tool_choice: { type: 'any' } })
  t.equal(
    build({ tool_choice: 'auto', parallel_tool_calls: false }).tool_choice,
    undefined,
    'no tools, no choice',
  )
})

test('what has an equivalent is mapped, what only OpenAI knows is dropped, the rest passes through', async t => {
  const schema = { type: 'object', properties: {} }
  const body = build({
    stop: 'END',
    temperature: 1.7,
    top_p: 0.9,
    user: 'u-1',
    service_tier: 'default',
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
    metadata: { order: '7' },
    n: 1,
    seed: 3,
    logprobs: true,
    logit_bias: {},
    presence_penalty: 0.1,
    frequency_penalty: 0.1,
    store: true,
    stream_options: { include_usage: true },
    parallel_tool_calls: true,
    verbosity: 'low',
    prompt_cache_key: 'k',
    top_k: 5,
    thinking: { type: 'enabled', budget_tokens: 1024 },
  })
  t.same(body, {
    model: 'claude-sonnet-4-5-20250929',
    max_tokens: 4096,
    messages: [{ role: 'user', content: [text('Hi')] }],
    stop_sequences: ['END'],
    temperature: 1,
    top_p: 0.9,
    output_config: { format: { type: 'json_schema', schema } },
    metadata: { user_id: 'u-1' },
    service_tier: 'standard_only',
    top_k: 5,
    thinking: { type: 'enabled', budget_tokens: 1024 },
  })
  t.same(build({ stop: ['a', 'b'], temperature: 0, stream: true }), {
    ...build({}),
    stop_sequences: ['a', 'b'],
    temperature: 0,
    stream: true,
  })
  const unset = {
    stop: null,
    temperature: null,
    top_p: null,
    user: null,
    tools: null,
    tool_choice: null,
    response_format: null,
  }
  t.same(build(unset as unknown as Partial<ChatRequest>), build({}), 'null means unset')
})

test('reasoning_effort goes to the models that take it', async t => {
  const effort = (reasoning_effort: string, upstreamModel: string) =>
    build({ reasoning_effort }, { upstreamModel }).output_config
  for (const model of [
    'claude-opus-4-5-20251101',
    'claude-opus-4-7',
    'claude-sonnet-4-6',
    'claude-fable-5',
  ]) {
    t.same(effort('high', model), { effort: 'high' }, model)
    t.same(effort('minimal', model), { effort: 'low' }, model)
    t.equal(effort('none', model), undefined, model)
  }
  for (const model of [
    'claude-3-7-sonnet-latest',
    'claude-sonnet-4-20250514',
    'claude-opus-4-1-20250805',
    'claude-haiku-4-5',
  ]) {
    t.equal(effort('high', model), undefined, model)
  }
})

test('thinking comes back as text for show and as blocks to be sent again', async t => {
  const blocks = [
    { type: 'thinking', thinking: 'Let me see.', signature: 'EqoBCkgIARABGAIiQL' },
    { type: 'redacted_thinking', data: 'EmwKAhgB' },
  ]
  const shown = {
    role: 'assistant',
    content: '42',
    reasoning_content: 'Let me see.',
    thinking_blocks: blocks,
  }
  const completion = anthropic.readCompletion(stub('anthropic', 'thinking.json'), callOf('anthropic'))
  t.match(completion.value(), {
    choices: [{ message: shown }],
    usage: { completion_tokens: 30, completion_tokens_details: { reasoning_tokens: 20 } },
  })
  const reader = anthropic.streamReader(callOf('anthropic', { stream: true }))
  reader.state.collect()
  relayed(reader, [stub('anthropic', 'thinking.sse')])
  t.match(reader.state.assemble?.(), { choices: [{ message: shown }] })

  const again = build({
    messages: [
      { role: 'user', content: 'Hi' },
      { ...shown, tool_calls: calls.slice(0, 1) },
    ],
  })
  t.same(asObject(asList(again.messages)[1]).content, [
    ...blocks,
    text('42'),
    { type: 'tool_use', id: 'call_a', name: 'f', input: { a: 1 } },
  ])
})

test('cache writes are a bucket of their own', async t => {
  const completion = anthropic.readCompletion(stub('anthropic', 'cache-write.json'), callOf('anthropic'))
  t.same(completion.tokens, { input: 6, cacheRead: 100, cacheWrite: 50, output: 3 })
  t.match(completion.value().usage, {
    prompt_tokens: 156,
    cached_tokens: 100,
    prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 50 },
  })
})

test('every stop reason has an OpenAI word, and keeps its own beside it', async t => {
  const expected = {
    end_turn: 'stop',
    stop_sequence: 'stop',
    pause_turn: 'stop',
    max_tokens: 'length',
    model_context_window_exceeded: 'length',
    tool_use: 'tool_calls',
    refusal: 'content_filter',
    something_new: 'stop',
  }
  for (const [native, reason] of Object.entries(expected)) {
    const body = {
      id: 'm',
      model: 'c',
      content: [],
      stop_reason: native,
      usage: { input_tokens: 1, output_tokens: 1 },
    }
    const completion = anthropic.readCompletion(Buffer.from(JSON.stringify(body)), callOf('anthropic'))
    t.equal(completion.finishReason, reason)
    t.match(completion.value(), { choices: [{ finish_reason: reason, native_finish_reason: native }] })
  }
})

test('while the stream has not told its output, tokens are unknown', async t => {
  const reader = anthropic.streamReader(callOf('anthropic', { stream: true }))
  const events = stub('anthropic', 'text.sse').toString().split('\n\n')
  reader.push(Buffer.from(`${events.slice(0, 5).join('\n\n')}\n\n`))
  t.equal(reader.state.tokens, null)
  t.equal(reader.state.outputBytes, Buffer.byteLength('Grüezi! 漢字 👋'))
})

test('a client that asked for usage sees null until the last chunk', async t => {
  const call = callOf('anthropic', { stream: true, stream_options: { include_usage: true } })
  const chunks = chunksOf(relayed(anthropic.streamReader(call), [stub('anthropic', 'text.sse')]))
  t.ok(chunks.slice(0, -1).every(chunk => chunk.usage === null))
  t.match(chunks.at(-1), { choices: [], usage: { total_tokens: 29 } })
})
