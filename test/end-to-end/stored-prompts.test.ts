/** Stored prompts and tools in calls (spec 3, prompt, tool_refs, prompt_version_id; spec 4, section 9), on both ledgers. */
import { type Test, test } from 'tap'
import { createConnection } from '../../shared/contract/connections.js'
import { createModel } from '../../shared/contract/models.js'
import { setAliasPromptTool, setDefaultPromptTool } from '../../shared/contract/prompt-tools.js'
import {
  commitPromptVersion,
  createPrompt,
  deletePrompt,
  promotePromptAlias,
} from '../../shared/contract/prompts.js'
import { commitToolVersion, createTool } from '../../shared/contract/tools.js'
import { addVirtualKey, complete, expect } from '../support/gateway-team.js'
import { testRedis } from '../support/redis.js'
import { errorOf, hello, MODEL, type Scene, scene, traceOf } from '../support/scene.js'

const schema = (name: string) => ({ type: 'object', properties: { [name]: { type: 'string' } } })

async function addPrompt({ system, team }: Scene, name: string, contents: string[], model?: string) {
  const as = team.apiKey
  const { id } = await expect(system, createPrompt, { as, body: { name } })
  const versions: string[] = []
  for (const content of contents) {
    const messages = [
      { role: 'system', content: 'Be brief.', cache_control: { type: 'ephemeral' as const } },
      { role: 'user', content },
    ]
    const body = { messages, ...(model !== undefined && { model }) }
    versions.push((await expect(system, commitPromptVersion, { as, params: { id }, body })).id)
  }
  return { id, versions }
}

async function addTool({ system, team }: Scene, name: string): Promise<string> {
  const as = team.apiKey
  const { id } = await expect(system, createTool, { as, body: { name, description: `Does ${name}.` } })
  const body = { parametersSchema: schema(name), executor: { type: 'client' as const } }
  await expect(system, commitToolVersion, { as, params: { id }, body })
  return id
}

interface Sent {
  model: string
  messages: { role: string; content: unknown; cache_control?: unknown }[]
  tools?: { function: { name: string; description?: string; parameters: object } }[]
  [field: string]: unknown
}
const lastSent = ({ fake }: Scene) => fake.requests.at(-1)?.body as Sent
const toolNames = (sent: Sent) => (sent.tools ?? []).map(tool => tool.function.name)

async function rules(t: Test, redisUrl?: string): Promise<void> {
  const it = await scene(t, redisUrl)
  const { system, team, key } = it
  const as = team.apiKey
  const weather = await addTool(it, 'weather')
  const search = await addTool(it, 'search')
  const greet = await addPrompt(it, 'greet', ['Hello {{ name }}!', 'Good day, {{ name }}.'], MODEL)
  const params = { id: greet.id, toolId: weather }
  await expect(system, setDefaultPromptTool, { as, params, body: { tool_alias: 'production' } })
  const ask = (body: object, headers?: Record<string, string>) => complete(system, key, body, headers)
  const refusal = async (body: object) => errorOf(await ask(body))
  const prompt = { name: 'greet', variables: { name: 'Ada' } }

  await t.test('a stored prompt is rendered, its model and its bound tools come with it', async t => {
    const response = await ask({ prompt, temperature: 0.2 })
    t.equal(response.status, 200)
    t.ok(((await response.json()) as { choices: unknown[] }).choices.length > 0)
    const sent = lastSent(it)
    t.equal(sent.model, MODEL)
    t.equal(sent.temperature, 0.2, 'other fields pass through')
    t.same(sent.messages, [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello Ada!' },
    ])
    t.match(sent.tools, [
      {
        type: 'function',
        function: { name: 'weather', description: 'Does weather.', parameters: schema('weather') },
      },
    ])
    t.notOk(Object.keys(sent).some(field => ['prompt', 'variables', 'tool_refs'].includes(field)))
    const { spans } = await traceOf(it, response.headers.get('x-gateway-trace-id'))
    t.equal(spans[0]?.promptVersionId, greet.versions[0])
    t.equal(spans[0]?.payload, null, 'variables are payload: not kept without capture')
  })

  await t.test('a streamed call takes a stored prompt too', async t => {
    const text = await (await ask({ prompt, stream: true })).text()
    t.ok(text.trimEnd().endsWith('data: [DONE]'))
    t.equal(lastSent(it).messages[1]?.content, 'Hello Ada!')
  })

  await t.test('captured payloads hold the prompt’s variables', async t => {
    const response = await ask({ prompt }, { 'x-capture-payloads': 'true' })
    const { spans } = await traceOf(it, response.headers.get('x-gateway-trace-id'))
    t.same(spans[0]?.payload?.variables, { name: 'Ada' })
    t.match(spans[0]?.payload?.input, [{ role: 'system' }, { role: 'user', content: 'Hello Ada!' }])
  })

  await t.test(
    'an explicit model wins over the bound one, and scope is judged by what is called',
    async t => {
      const body = { publicName: 'second', connectionId: team.connectionId, upstreamModel: 'gpt-second' }
      await expect(system, createModel, { as, body })
      t.equal((await ask({ prompt, model: 'second' })).status, 200)
      t.equal(lastSent(it).model, 'gpt-second')
      const narrow = await addVirtualKey(system, team, { allowedModels: ['second'] })
      const refused = await complete(system, narrow.key, { prompt })
      t.equal(await errorOf(refused), `403 MODEL_NOT_ALLOWED Model '${MODEL}' is not allowed for this key.`)
      t.equal((await complete(system, narrow.key, { prompt, model: 'second' })).status, 200)
      for (const unknown of [
        { prompt: { name: 'nobody' } },
        { ...hello, tool_refs: [{ name: 'nothing' }] },
      ]) {
        const outside = await complete(system, narrow.key, { ...unknown, model: MODEL })
        t.match(await errorOf(outside), /^403 MODEL_NOT_ALLOWED/, 'scope comes before existence')
      }
    },
  )

  await t.test(
    'what is missing answers 404, what cannot be rendered 400, and no provider is called',
    async t => {
      const before = it.fake.requests.length
      t.equal(await refusal({ prompt: { name: 'nobody' } }), '404 NOT_FOUND Prompt not found.')
      t.match(await refusal({ prompt: { ...prompt, alias: 'canary' } }), /^404 NOT_FOUND .*canary/)
      t.equal(
        await refusal({ prompt: { name: 'greet' } }),
        '400 TEMPLATE_RENDER_ERROR Missing variables: name.',
      )
      for (const name of ['nothing', 'weather\0']) {
        t.match(await refusal({ ...hello, tool_refs: [{ name }] }), /^404 NOT_FOUND Tool not found\./)
      }
      t.match(
        await refusal({ ...hello, tool_refs: [{ name: 'weather', alias: 'canary' }] }),
        /^404 NOT_FOUND/,
      )
      t.match(await refusal({ ...hello, tool_refs: [{ name: 'weather', version: 9 }] }), /^404 NOT_FOUND/)
      const both = [{ name: 'weather', alias: 'production', version: 1 }]
      t.match(await refusal({ ...hello, tool_refs: both }), /^400 VALIDATION_ERROR/)
      t.match(await refusal({ prompt, messages: hello.messages }), /^400 VALIDATION_ERROR/)
      await addPrompt(it, 'unbound', ['Hi'])
      t.match(await refusal({ prompt: { name: 'unbound' } }), /^400 VALIDATION_ERROR Required/)
      t.equal(it.fake.requests.length, before)
    },
  )

  await t.test('referenced tools are merged with the call’s own; a shared name answers 400', async t => {
    const inline = { type: 'function', function: { name: 'inline', parameters: schema('x') } }
    const refs = [{ name: 'search' }]
    t.equal((await ask({ ...hello, tools: [inline], tool_refs: refs })).status, 200)
    t.same(toolNames(lastSent(it)).sort(), ['inline', 'search'])
    t.equal((await ask({ ...hello, tool_refs: [{ name: 'search', version: 1 }] })).status, 200)
    t.equal((await ask({ prompt, tool_refs: refs })).status, 200)
    t.same(toolNames(lastSent(it)).sort(), ['search', 'weather'])
    const clash = { type: 'function', function: { name: 'search', parameters: {} } }
    const shared = "400 VALIDATION_ERROR Tool name 'search' is given more than once."
    t.equal(await refusal({ ...hello, tools: [clash], tool_refs: refs }), shared)
    t.match(await refusal({ prompt, tool_refs: [{ name: 'weather' }] }), /^400 VALIDATION_ERROR/)
  })

  await t.test('prompt_version_id and variables are lineage: recorded, not rendered, not sent', async t => {
    const lineage = { prompt_version_id: greet.versions[1], variables: { name: 'Bob' } }
    const response = await ask({ ...hello, ...lineage }, { 'x-capture-payloads': 'true' })
    t.equal(response.status, 200)
    t.same(Object.keys(lastSent(it)).sort(), ['messages', 'model'])
    const { spans } = await traceOf(it, response.headers.get('x-gateway-trace-id'))
    t.equal(spans[0]?.promptVersionId, greet.versions[1])
    t.same(spans[0]?.payload?.variables, { name: 'Bob' })
    const unknown = '00000000-0000-4000-8000-000000000000'
    for (const id of [unknown, 'no-uuid']) {
      t.equal(
        await refusal({ ...hello, prompt_version_id: id }),
        `400 VALIDATION_ERROR prompt_version_id '${id}' is not a prompt version in this team.`,
      )
    }
    const long = await refusal({ ...hello, prompt_version_id: 'x'.repeat(1_500_000) })
    t.match(long, /^400 VALIDATION_ERROR prompt_version_id 'xxx.* is not a prompt version in this team\.$/)
  })

  await t.test(
    'a promoted alias and a changed binding hold for the very next call on another proxy',
    async t => {
      const another = { baseUrl: await system.startAnotherProxy() }
      const sentBy = async () => {
        t.equal((await complete(another, key, { prompt })).status, 200)
        const { messages } = lastSent(it)
        return [messages[1]?.content, ...toolNames(lastSent(it))]
      }
      t.same(await sentBy(), ['Hello Ada!', 'weather'])
      for (let round = 0; round < 5; round++) {
        for (const [versionNumber, content] of [
          [2, 'Good day, Ada.'],
          [1, 'Hello Ada!'],
        ] as const) {
          const alias = { id: greet.id, alias: 'production' }
          await expect(system, promotePromptAlias, { as, params: alias, body: { versionNumber } })
          t.same(await sentBy(), [content, 'weather'])
        }
      }
      const own = { id: greet.id, alias: 'production', toolId: weather }
      await expect(system, setAliasPromptTool, { as, params: own, body: { off: true } })
      t.same(await sentBy(), ['Hello Ada!'])
      const added = { id: greet.id, toolId: search }
      await expect(system, setDefaultPromptTool, { as, params: added, body: { pinned_version_number: 1 } })
      t.same(await sentBy(), ['Hello Ada!', 'search'], 'inherited per tool')
    },
  )

  await t.test('the newest active prompt of a name is taken, and a deleted one is gone at once', async t => {
    const newer = await addPrompt(it, 'greet', ['Newer {{ name }}'], MODEL)
    t.equal((await ask({ prompt })).status, 200)
    t.equal(lastSent(it).messages[1]?.content, 'Newer Ada')
    await expect(system, deletePrompt, { as, params: { id: newer.id } })
    t.equal((await ask({ prompt })).status, 200)
    t.equal(lastSent(it).messages[1]?.content, 'Hello Ada!')
    await expect(system, deletePrompt, { as, params: { id: greet.id } })
    t.equal(await refusal({ prompt }), '404 NOT_FOUND Prompt not found.')
  })
}

async function outage(t: Test): Promise<void> {
  const it = await scene(t)
  await addPrompt(it, 'greet', ['Hello {{ name }}!'], MODEL)
  const ask = (name: string) => complete(it.system, it.key, { prompt: { name, variables: { name: 'Ada' } } })
  t.equal((await ask('greet')).status, 200)
  await it.system.controlPlane.end('SIGKILL')
  t.equal((await ask('greet')).status, 200, 'what is remembered is served')
  const refused = await ask('another')
  t.ok(Number(refused.headers.get('retry-after')) >= 1)
  t.match(await errorOf(refused), /^503 UNAVAILABLE/)
}

async function markers(t: Test): Promise<void> {
  const it = await scene(t)
  const { system, team, fake, key } = it
  const config = { base_url: fake.baseUrl('anthropic') }
  const connection = await expect(system, createConnection, {
    as: team.apiKey,
    body: { provider: 'anthropic', label: 'A', apiKey: 'sk', config },
  })
  const body = { publicName: 'claude', connectionId: connection.id, upstreamModel: 'claude-test' }
  await expect(system, createModel, { as: team.apiKey, body })
  await addPrompt(it, 'cached', ['Hi'], 'claude')
  t.equal((await complete(system, key, { prompt: { name: 'cached' } })).status, 200)
  const sent = fake.requests.at(-1)?.body as { system: unknown }
  t.match(sent.system, [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }])
}

test('stored prompts and tools with the ledger on Redis', async t => {
  const redis = testRedis(t)
  if (redis !== null) await rules(t, redis.url)
})

test('stored prompts and tools with the ledger on PostgreSQL', async t => rules(t))

test('the caching marker of a stored message reaches Anthropic as a marker on its block', async t =>
  markers(t))

test('while the control plane is away, prompts in memory are served and others answer 503', async t =>
  outage(t))
