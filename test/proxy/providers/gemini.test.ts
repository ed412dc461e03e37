import { type Test, test } from 'tap'
import type { ChatRequest } from '../../../proxy/providers/adapter.js'
import { google } from '../../../proxy/providers/gemini.js'
import { asList, asObject, asText, type Json } from '../../../proxy/providers/wire-values.js'
import { bodyOf, callOf, chunksOf, headerOf, relayed, stub } from './call.js'

const build = (request: Partial<ChatRequest>, upstreamModel = 'gemini-2.0-flash') =>
  bodyOf(google.buildRequest(callOf('google', request, { upstreamModel })))
const config = (request: Partial<ChatRequest>, upstreamModel?: string) =>
  build(request, upstreamModel).generationConfig
const refuses = (t: Test, request: Partial<ChatRequest>, message: RegExp) =>
  t.throws(() => build(request), { code: 'VALIDATION_ERROR', message })

test('the model is in the path, the key in a header', async t => {
  const plain = google.buildRequest(callOf('google'))
  t.equal(plain.path, '/v1beta/models/gemini-3-pro:generateContent')
  t.equal(headerOf(plain, 'x-goog-api-key'), 'sk-secret-key-0123456789')
  t.same(bodyOf(plain), { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] })
  const path = (upstreamModel: string) =>
    google.buildRequest(callOf('google', { stream: true }, { upstreamModel })).path
  t.equal(path('models/gemini-2.5-pro'), '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse')
  t.equal(path('tunedModels/a b'), '/v1beta/tunedModels/a%20b:streamGenerateContent?alt=sse')
})

test('system prompts, roles and markers', async t => {
  const body = build({
    messages: [
      { role: 'system', content: 'One', cache_control: { type: 'ephemeral' } },
      { role: 'developer', content: 'Two' },
      { role: 'user', content: 'a', cache_control: { type: 'ephemeral' } },
      { role: 'user', content: [{ type: 'text', text: 'b' }] },
      { role: 'assistant', content: 'c' },
    ],
  })
  t.same(body, {
    systemInstruction: { parts: [{ text: 'One' }, { text: 'Two' }] },
    contents: [
      { role: 'user', parts: [{ text: 'a' }, { text: 'b' }] },
      { role: 'model', parts: [{ text: 'c' }] },
    ],
  })
})

test('media go inline or by reference', async t => {
  const content = [
    { type: 'image_url', image_url: { url: 'data:image/webp;base64,AAAA' } },
    { type: 'image_url', image_url: { url: 'https://x.example/a.JPG?size=2' } },
    { type: 'image_url', image_url: 'https://x.example/plain' },
    { type: 'input_audio', input_audio: { data: 'BBBB', format: 'mp3' } },
    { type: 'file', file: { file_data: 'data:application/pdf;base64,CCCC' } },
  ]
  t.same(asObject(asList(build({ messages: [{ role: 'user', content }] }).contents)[0]).parts, [
    { inlineData: { mimeType: 'image/webp', data: 'AAAA' } },
    { fileData: { mimeType: 'image/jpeg', fileUri: 'https://x.example/a.JPG?size=2' } },
    { fileData: { fileUri: 'https://x.example/plain' } },
    { inlineData: { mimeType: 'audio/mp3', data: 'BBBB' } },
    { inlineData: { mimeType: 'application/pdf', data: 'CCCC' } },
  ])
})

const call = (id: string, name: string, more: Json = {}) => ({
  id,
  type: 'function',
  function: { name, arguments: '{"a":1}' },
  ...more,
})
const signed = { extra_content: { google: { thought_signature: 'c2ln' } } }

test('results of tools name the function and share one user turn', async t => {
  const body = build({
    messages: [
      { role: 'assistant', content: null, tool_calls: [call('x', 'f'), call('y', 'g')] },
      { role: 'tool', tool_call_id: 'x', content: 'sunny' },
      { role: 'tool', tool_call_id: 'y', content: '{"t":1}' },
      { role: 'user', content: 'And?' },
    ],
  })
  t.same(body.contents, [
    {
      role: 'model',
      parts: [
        { functionCall: { id: 'x', name: 'f', args: { a: 1 } } },
        { functionCall: { id: 'y', name: 'g', args: { a: 1 } } },
      ],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { id: 'x', name: 'f', response: { result: 'sunny' } } },
        { functionResponse: { id: 'y', name: 'g', response: { t: 1 } } },
        { text: 'And?' },
      ],
    },
  ])
  refuses(t, { messages: [{ role: 'tool', tool_call_id: 'z', content: '' }] }, /messages\.0\.tool_call_id/)
})

test('a thought signature makes the round trip on the call that carried it', async t => {
  const { choices } = google.readCompletion(stub('google', 'tools.json'), callOf('google')).value()
  const message = asObject(asObject(asList(choices)[0]).message)
  t.match(message.tool_calls, [
    { extra_content: { google: { thought_signature: 'EqoBCkgIARABGAIiQL' } } },
    {},
  ])
  const reader = google.streamReader(callOf('google', { stream: true }))
  reader.state.collect()
  relayed(reader, [stub('google', 'tools.sse')])
  t.match(reader.state.assemble?.(), { choices: [{ message: { tool_calls: asList(message.tool_calls) } }] })

  const again = build({ messages: [{ role: 'assistant', ...message }] }, 'gemini-3-pro')
  t.match(again.contents, [
    {
      parts: [
        { thoughtSignature: 'EqoBCkgIARABGAIiQL', functionCall: { name: 'get_weather' } },
        { functionCall: {} },
      ],
    },
  ])
  t.notOk(asObject(asList(asObject(asList(again.contents)[0]).parts)[1]).thoughtSignature)
})

test('a history without signatures gets the documented stand-in, where it is needed', async t => {
  const history = (more: Json = {}) => ({
    messages: [{ role: 'assistant', content: null, tool_calls: [call('x', 'f', more), call('y', 'g')] }],
  })
  const signatures = (request: Partial<ChatRequest>, model: string) =>
    asList(asObject(asList(build(request, model).contents)[0]).parts).map(
      part => asObject(part).thoughtSignature,
    )
  t.same(signatures(history(), 'gemini-3-pro'), ['skip_thought_signature_validator', undefined])
  t.same(signatures(history(signed), 'gemini-3-pro'), ['c2ln', undefined])
  t.same(signatures(history(), 'gemini-2.5-flash'), [undefined, undefined])
})

test('a text’s signature makes the round trip too', async t => {
  const { choices } = google.readCompletion(stub('google', 'thinking.json'), callOf('google')).value()
  const message = asObject(asObject(asList(choices)[0]).message)
  t.match(message, { content: '42', reasoning_content: 'Let me see.', ...signed })
  t.same(build({ messages: [{ role: 'assistant', ...message }] }).contents, [
    { role: 'model', parts: [{ text: '42', thoughtSignature: 'c2ln' }] },
  ])
})

test('a call without an id gets one, which never goes back', async t => {
  const answer = {
    candidates: [
      {
        content: { parts: [{ functionCall: { name: 'f' } }, { functionCall: { name: 'f' } }] },
        finishReason: 'STOP',
      },
    ],
  }
  const { choices } = google.readCompletion(Buffer.from(JSON.stringify(answer)), callOf('google')).value()
  const calls = asList(asObject(asObject(asList(choices)[0]).message).tool_calls).map(asObject)
  const ids = calls.map(item => asText(item.id))
  t.equal(new Set(ids).size, 2)
  t.match(calls[0], { type: 'function', function: { name: 'f', arguments: '{}' } })
  const body = build({
    messages: [
      { role: 'assistant', content: null, tool_calls: calls },
      { role: 'tool', tool_call_id: ids[0], content: 'ok' },
    ],
  })
  t.notMatch(JSON.stringify(body), /"id"/)
})

const tool = (name: string, more: Json = {}) => ({ type: 'function', function: { name, ...more } })

test('tools and the choice among them', async t => {
  const parameters = { type: 'object', properties: {} }
  const tools = [tool('f', { description: 'd', parameters }), tool('g')]
  t.same(build({ tools: [...tools, { googleSearch: {} }] }).tools, [
    {
      functionDeclarations: [
        { name: 'f', description: 'd', parametersJsonSchema: parameters },
        { name: 'g' },
      ],
    },
    { googleSearch: {} },
  ])
  const choice = (tool_choice: unknown) =>
    asObject(build({ tools, tool_choice }).toolConfig).functionCallingConfig
  t.equal(choice(undefined), undefined)
  t.same(choice('auto'), { mode: 'AUTO' })
  t.same(choice('required'), { mode: 'ANY' })
  t.same(choice('none'), { mode: 'NONE' })
  t.same(choice(tool('g')), { mode: 'ANY', allowedFunctionNames: ['g'] })
})

test('sampling, length and format go into generationConfig', async t => {
  const schema = { type: 'object' }
  t.same(
    config({
      max_tokens: 5,
      stop: 'END',
      temperature: 1.7,
      top_p: 0.9,
      top_k: 3,
      n: 2,
      seed: 1,
      frequency_penalty: 0.1,
      presence_penalty: 0.2,
      logprobs: true,
      top_logprobs: 4,
      response_format: { type: 'json_schema', json_schema: { schema } },
    }),
    {
      maxOutputTokens: 5,
      stopSequences: ['END'],
      temperature: 1.7,
      topP: 0.9,
      topK: 3,
      candidateCount: 2,
      seed: 1,
      frequencyPenalty: 0.1,
      presencePenalty: 0.2,
      responseLogprobs: true,
      logprobs: 4,
      responseMimeType: 'application/json',
      responseJsonSchema: schema,
    },
  )
  t.same(config({ response_format: { type: 'json_object' } }), { responseMimeType: 'application/json' })
  t.same(config({ generationConfig: { topK: 1, temperature: 0 }, temperature: 1 }), {
    topK: 1,
    temperature: 1,
  })
  t.equal(build({ top_k: 3 }).top_k, undefined, 'sent once, under its own name')
})

test('reasoning_effort is a level or a budget, by model', async t => {
  const thinking = (reasoning_effort: string, model: string) =>
    asObject(config({ reasoning_effort }, model)).thinkingConfig
  t.same(thinking('high', 'gemini-3-pro'), { thinkingLevel: 'high' })
  t.same(thinking('none', 'gemini-3-pro'), { thinkingLevel: 'low' })
  t.same(thinking('medium', 'gemini-2.5-flash'), { thinkingBudget: 8192 })
  t.same(thinking('none', 'gemini-2.5-flash'), { thinkingBudget: 0 })
  t.equal(thinking('high', 'gemini-2.0-flash'), undefined)
})

test('what only OpenAI knows is dropped, the vendor’s own passes through', async t => {
  const body = build({
    user: 'u',
    store: true,
    metadata: {},
    logit_bias: {},
    service_tier: 'auto',
    parallel_tool_calls: false,
    stream_options: {},
    safetySettings: [{ category: 'x' }],
  })
  t.same(Object.keys(body).sort(), ['contents', 'safetySettings'])
})

test('several candidates are several choices', async t => {
  const completion = google.readCompletion(stub('google', 'candidates.json'), callOf('google'))
  t.match(completion.value(), {
    choices: [
      { index: 0, message: { content: 'a' } },
      { index: 1, message: { content: 'b' } },
    ],
  })
})

test('thoughts are output and not part of the text', async t => {
  const reader = google.streamReader(callOf('google', { stream: true }))
  reader.state.collect()
  relayed(reader, [stub('google', 'thinking.sse')])
  t.same(reader.state.tokens, { input: 19, cacheRead: 0, cacheWrite: 0, output: 30 })
  t.match(reader.state.assemble?.(), {
    choices: [{ message: { content: '42', reasoning_content: 'Let me see.' } }],
    usage: { completion_tokens: 30, completion_tokens_details: { reasoning_tokens: 20 } },
  })
})

test('every finish reason has an OpenAI word', async t => {
  const expected = {
    STOP: 'stop',
    MAX_TOKENS: 'length',
    SAFETY: 'content_filter',
    PROHIBITED_CONTENT: 'content_filter',
    RECITATION: 'content_filter',
    IMAGE_SAFETY: 'content_filter',
    MALFORMED_FUNCTION_CALL: 'stop',
    OTHER: 'stop',
  }
  for (const [native, reason] of Object.entries(expected)) {
    const frame = `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason: native }] })}\n\n`
    const reader = google.streamReader(callOf('google', { stream: true }))
    const chunks = chunksOf(relayed(reader, [Buffer.from(frame)]))
    t.equal(reader.state.finishReason, reason)
    t.match(chunks.at(-1), { choices: [{ finish_reason: reason, native_finish_reason: native }] })
  }
})
