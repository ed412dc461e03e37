import t from 'tap'
import { genAi, genAiContent } from '../../../../control-plane/traces/otlp/attributes/genai.js'
import { updateTraceSettings } from '../../../../shared/contract/settings.js'
import { readTrace } from '../../../../shared/contract/traces.js'
import { startControlPlane } from '../../../support/control-plane.js'
import { exportRequest, otlpSpan, postOtlp, uuidOf } from '../../../support/otlp.js'
import { team } from '../../../support/seed.js'

/** GenAI semantic conventions of both generations: beyond the spec, they fill fields and stay in the attributes. */

const content = (attributes: Record<string, unknown>) => JSON.parse(JSON.stringify(genAiContent(attributes)))

t.test('today’s names fill the own fields, stay verbatim, and leave the kind alone', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.owner.personalKey
  await cp.call(updateTraceSettings, { as, body: { capturePayloads: true } })
  const messages = JSON.stringify([{ role: 'user', parts: [{ type: 'text', content: 'Hi' }] }])
  const attributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-test',
    'gen_ai.response.model': 'gpt-test-2026',
    'gen_ai.usage.input_tokens': 100,
    'gen_ai.usage.output_tokens': 20,
    'gen_ai.usage.cache_read.input_tokens': 60,
    'gen_ai.conversation.id': 'conv-1',
    'gen_ai.input.messages': messages,
    'gen_ai.response.finish_reasons': ['stop'],
  }
  const span = otlpSpan({ attributes, kind: 3 })
  await postOtlp(cp, ours.virtualKey, exportRequest([span]))
  const { body } = await cp.call(readTrace, { as, params: { id: uuidOf(span.traceId) } })
  t.match(body.trace, { sessionId: 'conv-1', totalTokens: 120 })
  t.match(body.spans[0], {
    kind: 'other',
    model: 'gpt-test-2026',
    provider: 'openai',
    usage: { promptTokens: 100, completionTokens: 20, totalTokens: 120 },
    payload: { input: [{ role: 'user', content: 'Hi' }], output: null },
  })
  t.same(body.spans[0]?.attributes, { ...attributes, spanKind: 'client' })
})

t.test('the older generation’s names fill the same fields', async t => {
  t.match(
    genAi({
      'gen_ai.system': 'anthropic',
      'gen_ai.request.model': 'claude',
      'gen_ai.usage.prompt_tokens': 7,
      'gen_ai.usage.completion_tokens': 3,
      'gen_ai.usage.cost': 0.5,
    }),
    {
      provider: 'anthropic',
      model: 'claude',
      promptTokens: 7,
      completionTokens: 3,
      totalTokens: 10,
      costNano: 500_000_000,
    },
  )
})

t.test('OpenInference wins where both vocabularies speak; each fills what the other leaves', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const span = otlpSpan({
    attributes: {
      'openinference.span.kind': 'LLM',
      'llm.model_name': 'from-openinference',
      'gen_ai.request.model': 'from-genai',
      'gen_ai.provider.name': 'from-genai',
      'gen_ai.usage.input_tokens': 5,
    },
  })
  await postOtlp(cp, ours.virtualKey, exportRequest([span]))
  const { body } = await cp.call(readTrace, {
    as: ours.owner.personalKey,
    params: { id: uuidOf(span.traceId) },
  })
  t.match(body.spans[0], {
    kind: 'llm',
    model: 'from-openinference',
    provider: 'from-genai',
    usage: { promptTokens: 5 },
  })
})

t.test('a tool span’s arguments and result are its payload', async t => {
  t.same(
    content({
      'gen_ai.tool.name': 'weather',
      'gen_ai.tool.call.arguments': '{"city":"Oslo"}',
      'gen_ai.tool.call.result': 'rain',
    }),
    { input: { city: 'Oslo' }, output: 'rain' },
  )
})

t.test('messages with parts take the form of the completions API', async t => {
  const input = [
    { role: 'user', parts: [{ type: 'text', content: 'Weather?' }] },
    {
      role: 'assistant',
      parts: [
        { type: 'text', content: 'Let me look.' },
        { type: 'tool_call', id: 'c1', name: 'weather', arguments: { city: 'Oslo' } },
      ],
    },
    {
      role: 'tool',
      parts: [
        { type: 'tool_call_response', id: 'c1', response: { sky: 'rain' } },
        { type: 'tool_call_response', id: 'c2', response: 'sun' },
      ],
    },
    {
      role: 'user',
      parts: [
        { type: 'text', content: 'And' },
        { type: 'blob', data: 'AQID' },
      ],
    },
  ]
  t.same(
    content({
      'gen_ai.system_instructions': JSON.stringify([{ type: 'text', content: 'Be brief.' }]),
      'gen_ai.input.messages': JSON.stringify(input),
      'gen_ai.output.messages': [
        { role: 'assistant', parts: [{ type: 'text', content: 'Rain.' }], finish_reason: 'stop' },
      ],
    }),
    {
      input: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Weather?' },
        {
          role: 'assistant',
          content: 'Let me look.',
          tool_calls: [
            { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: '{"sky":"rain"}' },
        { role: 'tool', tool_call_id: 'c2', content: 'sun' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'And' },
            { type: 'blob', data: 'AQID' },
          ],
        },
      ],
      output: [{ role: 'assistant', finish_reason: 'stop', content: 'Rain.' }],
    },
  )
})

t.test('the older prompt and completion, as text, as JSON or flattened', async t => {
  t.same(content({ 'gen_ai.prompt': 'Once', 'gen_ai.completion': '["upon"]' }), {
    input: 'Once',
    output: ['upon'],
  })
  t.same(
    content({
      'gen_ai.prompt.1.content': 'Hi',
      'gen_ai.prompt.1.role': 'user',
      'gen_ai.prompt.0.role': 'system',
      'gen_ai.prompt.0.content': 'Be brief.',
      'gen_ai.completion.0.content': 'Hello',
      'gen_ai.completion.0.role': 'assistant',
    }),
    {
      input: [
        { role: 'system', content: 'Be brief.' },
        { content: 'Hi', role: 'user' },
      ],
      output: [{ content: 'Hello', role: 'assistant' }],
    },
  )
})

t.test('a retrieval’s query and documents; messages of no known form stay as they came', async t => {
  t.same(
    content({ 'gen_ai.retrieval.query.text': 'q', 'gen_ai.retrieval.documents': '[{"id":"d","score":1}]' }),
    { input: 'q', output: [{ id: 'd', score: 1 }] },
  )
  t.same(content({ 'gen_ai.input.messages': 'not json' }), { input: 'not json', output: null })
  t.same(content({ 'gen_ai.input.messages': '[1,{"role":"user"}]' }), {
    input: [1, { role: 'user' }],
    output: null,
  })
  t.same(content({}), { input: null, output: null })
})
