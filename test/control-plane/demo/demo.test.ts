import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import OpenAI from 'openai'
import { type Test, test } from 'tap'
import { DEMO_KEY, DEMO_MODEL, DEMO_PATH, registerDemo } from '../../../control-plane/demo/routes.js'

/** The provider alone on a port, and OpenAI's own client towards it. */
async function demo(t: Test, apiKey = DEMO_KEY) {
  const app = Fastify()
  registerDemo(app, { now: Date.now })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  const { port } = app.server.address() as AddressInfo
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${port}${DEMO_PATH}`, apiKey, maxRetries: 0 })
  return { client, port }
}

const says = (content: string) => ({ model: DEMO_MODEL, messages: [{ role: 'user' as const, content }] })

const weather = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, unit: { type: 'string', enum: ['celsius', 'fahrenheit'] } },
      required: ['city'],
    },
  },
}

test('an answer echoes the last user message and counts its tokens, the same each time', async t => {
  const { client } = await demo(t)
  const [first, second] = await Promise.all([
    client.chat.completions.create(says('good morning')),
    client.chat.completions.create(says('good morning')),
  ])
  t.equal(first.choices[0]?.message.content, 'You said: good morning')
  t.equal(first.choices[0]?.finish_reason, 'stop')
  t.match(first.usage, { prompt_tokens: 6, completion_tokens: 4, total_tokens: 10 })
  t.same(second.usage, first.usage)
})

test('a stream carries the same text in several chunks and the usage only when asked', async t => {
  const { client } = await demo(t)
  const body = { ...says('one two three'), stream: true as const }
  const plain = []
  for await (const chunk of await client.chat.completions.create(body)) plain.push(chunk)
  t.equal(plain.map(chunk => chunk.choices[0]?.delta.content ?? '').join(''), 'You said: one two three')
  t.ok(plain.length >= 6, 'a chunk a word')
  t.equal(plain.at(-1)?.choices[0]?.finish_reason, 'stop')
  t.notOk(plain.some(chunk => chunk.usage))

  const counted = []
  const asking = { ...body, stream_options: { include_usage: true } }
  for await (const chunk of await client.chat.completions.create(asking)) counted.push(chunk)
  t.match(counted.at(-1), { choices: [], usage: { completion_tokens: 5 } })
  t.equal(counted[0]?.usage, null)
})

test('a tool is called when the last message asks for it, with arguments that fit its schema', async t => {
  const { client } = await demo(t)
  const asked = await client.chat.completions.create({
    ...says('Use get_weather for Paris in fahrenheit'),
    tools: [weather],
  })
  t.equal(asked.choices[0]?.finish_reason, 'tool_calls')
  const call = asked.choices[0]?.message.tool_calls?.[0]
  t.match(call, { type: 'function', function: { name: 'get_weather' } })
  const args = call?.type === 'function' ? JSON.parse(call.function.arguments) : {}
  t.equal(args.unit, 'fahrenheit')
  t.type(args.city, 'string')

  const notAsked = await client.chat.completions.create({ ...says('hello'), tools: [weather] })
  t.equal(notAsked.choices[0]?.finish_reason, 'stop')
  const forced = await client.chat.completions.create({
    ...says('hello'),
    tools: [weather],
    tool_choice: 'required',
  })
  t.equal(forced.choices[0]?.finish_reason, 'tool_calls')
  const forbidden = await client.chat.completions.create({
    ...says('get_weather'),
    tools: [weather],
    tool_choice: 'none',
  })
  t.equal(forbidden.choices[0]?.finish_reason, 'stop')
})

test('a streamed tool call comes in pieces that join to valid JSON, and its result is answered', async t => {
  const { client } = await demo(t)
  const runner = client.chat.completions.stream({ ...says('get_weather in Oslo'), tools: [weather] })
  const { choices } = await runner.finalChatCompletion()
  const call = choices[0]?.message.tool_calls?.[0]
  t.same(call && JSON.parse(call.function.arguments), { city: 'Oslo', unit: 'celsius' })

  const then = await client.chat.completions.create({
    model: DEMO_MODEL,
    messages: [
      { role: 'user', content: 'get_weather in Oslo' },
      { role: 'assistant', tool_calls: call ? [call] : [] },
      { role: 'tool', tool_call_id: call?.id ?? '', content: 'rain' },
    ],
    tools: [weather],
  })
  t.equal(then.choices[0]?.message.content, 'The tool answered: rain')
})

test('max_tokens, stop, n and response_format hold', async t => {
  const { client } = await demo(t)
  const cut = await client.chat.completions.create({ ...says('a b c d e'), max_tokens: 4 })
  t.match(cut, { choices: [{ message: { content: 'You said: a b' }, finish_reason: 'length' }] })
  t.equal(cut.usage?.completion_tokens, 4)

  const stopped = await client.chat.completions.create({ ...says('a b c d e'), stop: [' c', 'e'] })
  t.match(stopped, { choices: [{ message: { content: 'You said: a b' }, finish_reason: 'stop' }] })

  const three = await client.chat.completions.create({ ...says('hi'), n: 3 })
  t.same(
    three.choices.map(choice => choice.index),
    [0, 1, 2],
  )
  t.equal(three.usage?.completion_tokens, 9)

  const shaped = await client.chat.completions.create({
    ...says('rate this 7'),
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'rating', schema: { type: 'object', properties: { stars: { type: 'integer' } } } },
    },
  })
  t.same(JSON.parse(shaped.choices[0]?.message.content ?? ''), { stars: 7 })
})

test('mistakes are answered as OpenAI answers them', async t => {
  const { client, port } = await demo(t)
  const refused = (body: object) =>
    client.chat.completions.create(body as never).then(
      () => t.fail('should be refused'),
      (error: InstanceType<typeof OpenAI.APIError>) => error,
    )
  t.match(await refused({ model: DEMO_MODEL }), {
    status: 400,
    type: 'invalid_request_error',
    param: 'messages',
    code: 'missing_required_parameter',
  })
  t.match(await refused({ ...says('x'), messages: [{ role: 'robot', content: 'x' }] }), {
    status: 400,
    param: 'messages[0].role',
    code: 'invalid_value',
  })
  t.match(await refused({ ...says('x'), temperature: 'hot' }), { param: 'temperature', code: 'invalid_type' })
  t.match(await refused({ ...says('x'), tool_choice: 'required' }), { param: 'tool_choice' })
  t.match(await refused({ ...says('x'), model: 'gpt-5' }), { status: 404, code: 'model_not_found' })

  const broken = await fetch(`http://127.0.0.1:${port}${DEMO_PATH}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEMO_KEY}`, 'content-type': 'application/json' },
    body: '{"model":',
  })
  t.equal(broken.status, 400)
  t.match(await broken.json(), { error: { type: 'invalid_request_error' } })
})

test('nothing answers without the key', async t => {
  const { client } = await demo(t, 'sk-another')
  await t.rejects(client.chat.completions.create(says('x')), { status: 401, code: 'invalid_api_key' })
  await t.rejects(Promise.resolve(client.models.list()), { status: 401, code: 'invalid_api_key' })
})

test('a tool call for a long text costs the event loop no more than for a short one', async t => {
  const { client } = await demo(t)
  // Each kept one of the patterns busy for seconds, with its square: the key is public, and so was the door.
  for (const content of ['“'.repeat(30_000), 'a'.repeat(60_000), `${'in '.repeat(20_000)}Paris`]) {
    const before = process.cpuUsage()
    const called = await client.chat.completions.create({
      ...says(content),
      tools: [weather],
      tool_choice: 'required',
    })
    const { user, system } = process.cpuUsage(before)
    t.equal(called.choices[0]?.finish_reason, 'tool_calls')
    t.ok((user + system) / 1_000 < 1_000, `${content.slice(0, 3)}: ${(user + system) / 1_000} ms`)
  }
})

test('an echo ends at the limit, however long the text is', async t => {
  const { client } = await demo(t)
  const said = await client.chat.completions.create({ ...says('word '.repeat(200_000)), max_tokens: 3 })
  t.equal(said.choices[0]?.message.content, 'You said: word')
  t.equal(said.choices[0]?.finish_reason, 'length')
  t.match(said.usage, { prompt_tokens: 200_005, completion_tokens: 3 })
})
