import t from 'tap'
import { spanWrite } from '../../../../control-plane/traces/otlp/map-span.js'
import type { SpanWrite } from '../../../../control-plane/traces/span-write.js'

/** OpenInference attributes, one kind after the other, as ingestion stores them. */

const capture = { teamId: 'team', payloads: true, hidden: new Set<string>(), nowMs: 1_000 }

function mapped(attributes: Record<string, unknown>, fields: object = {}): SpanWrite {
  return spanWrite(
    {
      traceId: '0123456789abcdef0123456789abcdef',
      spanId: '0123456789abcdef',
      parentSpanId: null,
      name: 'step',
      kind: 1,
      startTimeMs: 1,
      endTimeMs: 2,
      statusCode: 0,
      statusMessage: '',
      traceState: '',
      attributes: Object.assign(Object.create(null), attributes),
      events: [],
      links: [],
      dropped: null,
      resource: {},
      scope: null,
      units: 1_000,
      ...fields,
    },
    capture,
  )
}

/** Compared as JSON: what has no prototype equals what has. */
const json = (value: unknown) => JSON.parse(JSON.stringify(value))
const input = (attributes: Record<string, unknown>) => json(mapped(attributes).input)
const output = (attributes: Record<string, unknown>) => json(mapped(attributes).output)

t.test('model, provider, tokens, cost, session, tags and metadata fill the own fields and stay', async t => {
  const attributes = {
    'openinference.span.kind': 'LLM',
    'llm.model_name': 'gpt-test',
    'llm.provider': 'azure',
    'llm.system': 'openai',
    'llm.token_count.prompt': 100,
    'llm.token_count.completion': 20,
    'llm.token_count.total': 120,
    'llm.token_count.prompt_details.cache_read': 60,
    'llm.token_count.prompt_details.cache_write': 10,
    'llm.cost.prompt': 0.1,
    'llm.cost.total': 0.000000123,
    'session.id': 's-1',
    'user.id': 'u-1',
    'tag.tags': ['a', 'b'],
    metadata: '{"plan":"pro","__proto__":{"x":1}}',
    'llm.invocation_parameters': '{"temperature":0}',
  }
  const span = mapped(attributes)
  t.match(span, {
    kind: 'llm',
    model: 'gpt-test',
    provider: 'azure',
    promptTokens: 100,
    completionTokens: 20,
    totalTokens: 120,
    costNano: 123,
    trace: { sessionId: 's-1', tags: ['a', 'b'] },
  })
  t.same(json(span.trace.metadata), { plan: 'pro' })
  t.same(json(span.attributes), attributes)
})

t.test('each name of model, provider and cost is read, in its order', async t => {
  for (const name of [
    'llm.model_name',
    'llm.response.model_name',
    'llm.request.model_name',
    'embedding.model_name',
    'reranker.model_name',
  ]) {
    t.equal(mapped({ [name]: 'm' }).model, 'm', name)
  }
  t.equal(mapped({ 'llm.request.model_name': 'asked', 'llm.response.model_name': 'served' }).model, 'served')
  t.equal(mapped({ 'llm.system': 'anthropic' }).provider, 'anthropic')
  t.equal(mapped({ 'llm.model_name': '', 'embedding.model_name': 7 }).model, null)
  t.equal(mapped({ 'llm.cost.prompt': 0.5, 'llm.cost.completion': 0.25 }).costNano, 750_000_000)
  for (const cost of [-1, Number.NaN, 'free', 1e300])
    t.equal(mapped({ 'llm.cost.total': cost }).costNano, null)
})

t.test(
  'token counts: cached tokens are part of the prompt; what is missing follows from the rest',
  async t => {
    const tokens = (attributes: Record<string, unknown>) => {
      const counts = Object.entries(attributes).map(([name, count]) => [`llm.token_count.${name}`, count])
      const { promptTokens, completionTokens, totalTokens } = mapped(Object.fromEntries(counts))
      return [promptTokens, completionTokens, totalTokens]
    }
    t.same(tokens({}), [null, null, null])
    t.same(tokens({ prompt: 10, completion: 5 }), [10, 5, 15])
    t.same(tokens({ completion: 5 }), [null, 5, 5])
    t.same(tokens({ total: 15, completion: 5 }), [10, 5, 15])
    t.same(tokens({ total: 15 }), [null, null, 15])
    t.same(tokens({ prompt: 10, 'prompt_details.cache_read': 8 }), [10, null, 10])
    t.same(
      tokens({ 'prompt_details.cache_read': 8, 'prompt_details.cache_write': 2, completion: 1 }),
      [10, 1, 11],
    )
    t.same(tokens({ prompt: '10', completion: 5.0 }), [10, 5, 15], 'counts sent as text or as doubles')
    t.same(tokens({ prompt: -1, completion: Number.POSITIVE_INFINITY, total: 'many' }), [null, null, null])
  },
)

t.test('messages are rebuilt in the order of their numbers, sparse and of two digits', async t => {
  const attributes: Record<string, unknown> = {}
  for (const index of [11, 2, 10, 0, 9]) {
    attributes[`llm.input_messages.${index}.message.content`] = `m${index}`
    attributes[`llm.input_messages.${index}.message.role`] = 'user'
  }
  t.same(
    input(attributes).map((message: { content: string }) => message.content),
    ['m0', 'm2', 'm9', 'm10', 'm11'],
  )
  t.same(json(mapped(attributes).attributes), {})
  t.same(input({ 'llm.input_messages.99999999999.message.role': 'user' }), [{ role: 'user' }])
})

t.test('messages have tool calls, tool results and parts in the form of the completions API', async t => {
  const tool = 'llm.output_messages.0.message.tool_calls'
  t.same(
    output({
      'llm.output_messages.0.message.role': 'assistant',
      [`${tool}.1.tool_call.function.name`]: 'second',
      [`${tool}.1.tool_call.function.arguments`]: '{}',
      [`${tool}.0.tool_call.id`]: 'call-1',
      [`${tool}.0.tool_call.function.name`]: 'first',
      [`${tool}.0.tool_call.function.arguments`]: '{"x":1}',
    }),
    [
      {
        role: 'assistant',
        tool_calls: [
          { id: 'call-1', type: 'function', function: { name: 'first', arguments: '{"x":1}' } },
          { type: 'function', function: { name: 'second', arguments: '{}' } },
        ],
      },
    ],
  )
  const part = 'llm.input_messages.0.message.contents'
  t.same(
    input({
      'llm.input_messages.0.message.role': 'user',
      [`${part}.10.message_content.type`]: 'audio',
      [`${part}.10.message_content.data`]: 'AQID',
      [`${part}.0.message_content.type`]: 'text',
      [`${part}.0.message_content.text`]: 'What is this?',
      [`${part}.1.message_content.type`]: 'image',
      [`${part}.1.message_content.image.image.url`]: 'https://example.com/x.png',
      'llm.input_messages.1.message.role': 'tool',
      'llm.input_messages.1.message.tool_call_id': 'call-1',
      'llm.input_messages.1.message.name': 'first',
      'llm.input_messages.1.message.content': '42',
      'llm.input_messages.2.message.function_call_name': 'old',
      'llm.input_messages.2.message.function_call_arguments_json': '{}',
      'llm.input_messages.2.message.some.new.field': true,
    }),
    [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: 'https://example.com/x.png' } },
          { type: 'audio', data: 'AQID' },
        ],
      },
      { role: 'tool', tool_call_id: 'call-1', name: 'first', content: '42' },
      { function_call: { name: 'old', arguments: '{}' }, some: { new: { field: true } } },
    ],
  )
})

t.test('input.value wins over messages; its JSON is parsed only where its type says so', async t => {
  const messages = { 'llm.input_messages.0.message.content': 'Hi' }
  t.equal(input({ ...messages, 'input.value': '{"a":1}' }), '{"a":1}')
  t.same(input({ 'input.value': '{"a":1}', 'input.mime_type': 'application/json' }), { a: 1 })
  t.same(input({ 'input.value': '{"a":1}', 'input.mime_type': 'Application/JSON; charset=utf-8' }), { a: 1 })
  t.equal(input({ 'input.value': '{"a":1}', 'input.mime_type': 'text/plain' }), '{"a":1}')
  t.equal(input({ 'input.value': '{"a":', 'input.mime_type': 'application/json' }), '{"a":')
  t.same(input({ 'input.value': { a: [1] } }), { a: [1] })
  t.equal(output({ 'output.value': '' }), '')
  t.same(input(messages), [{ content: 'Hi' }])
  t.equal(input({}), null)
})

t.test('messages that come whole, as a value or as JSON text, are taken as they are', async t => {
  const messages = [{ role: 'user', content: 'Hi' }]
  t.same(input({ 'llm.input_messages': messages }), messages)
  const asText = mapped({ 'llm.output_messages': JSON.stringify(messages) })
  t.same(json(asText.output), messages)
  t.same(json(asText.attributes), {})
})

t.test('text under the name of a whole list is not lost: it is a list of one', async t => {
  t.same(input({ 'llm.input_messages': 'Hi' }), ['Hi'])
  t.same(output({ 'openinference.span.kind': 'RETRIEVER', 'retrieval.documents': 'one' }), ['one'])
  const flattened = { 'llm.input_messages.0.message.content': 'Hi' }
  t.same(input({ 'llm.input_messages': 'see below', ...flattened }), [{ content: 'Hi' }])
})

t.test('texts of the older completions API fill the payload and stay', async t => {
  const attributes = { 'llm.prompts.0.prompt.text': 'Once', 'llm.choices.0.completion.text': 'upon' }
  const span = mapped({ ...attributes, 'llm.choices.1.completion.text': 'a time' })
  t.equal(span.input, 'Once')
  t.same(span.output, ['upon', 'a time'])
  t.match(json(span.attributes), attributes)
})

t.test('documents of a retrieval win over output.value; those of other kinds and rerankers stay', async t => {
  const attributes = {
    'retrieval.documents.0.document.content': 'text',
    'reranker.output_documents.0.document.content': 'text',
    'output.value': 'a summary',
  }
  const retrieval = mapped({ ...attributes, 'openinference.span.kind': 'retriever' })
  t.same(json(retrieval.output), [{ content: 'text' }])
  t.same(Object.keys(retrieval.attributes as object), [
    'reranker.output_documents.0.document.content',
    'openinference.span.kind',
  ])
  const reranker = mapped({ ...attributes, 'openinference.span.kind': 'RERANKER' })
  t.equal(reranker.output, 'a summary')
  t.match(json(reranker.attributes), { 'retrieval.documents.0.document.content': 'text' })
})

t.test('names that only look like the vocabulary’s stay', async t => {
  const attributes = {
    'llm.input_messages_count': 1,
    'input.values': 'x',
    'output.value.more': 'x',
    'retrieval.documents_count': 3,
    'openinference.span.kind': 'RETRIEVER',
  }
  t.same(json(mapped(attributes).attributes), attributes)
})

t.test('tags and metadata in the forms that instrumentations send', async t => {
  const tags = (value: unknown) => mapped({ 'tag.tags': value }).trace.tags
  t.same(tags(['a', 1, '', 'b']), ['a', 'b'])
  t.same(tags('["a","b"]'), ['a', 'b'])
  t.same(tags('one'), ['one'])
  t.same(tags(7), [])
  t.equal(tags(Array.from({ length: 500 }, (_, i) => `t${i}`)).length, 100)
  const metadata = (value: unknown) => json(mapped({ metadata: value }).trace.metadata)
  t.same(metadata({ a: { b: 1 } }), { a: { b: 1 } })
  t.equal(metadata('[1]'), null)
  t.equal(metadata('plain'), null)
})

t.test('a warning attribute is seen; an over-long name is cut', async t => {
  t.equal(mapped({ warnings: ['slow'] }).hasWarning, true)
  t.equal(mapped({}).hasWarning, false)
  t.equal(mapped({}, { name: 'x'.repeat(5_000) }).name.length, 1_000)
  t.equal(mapped({ 'session.id': 'x'.repeat(5_000) }).trace.sessionId?.length, 512)
})
