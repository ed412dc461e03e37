import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createConnection } from '../../../shared/contract/connections.js'
import { createModel, deleteModel, updateModel } from '../../../shared/contract/models.js'
import { setAliasPromptTool, setDefaultPromptTool } from '../../../shared/contract/prompt-tools.js'
import {
  commitPromptVersion,
  createPrompt,
  deletePrompt,
  findPromptVersion,
  listPromptAliases,
  listPromptVersions,
  readPromptVersion,
} from '../../../shared/contract/prompts.js'
import { type ControlPlane, type Credential, startControlPlane } from '../../support/control-plane.js'
import { commit, storedPrompt, storedTool, trailOf } from '../../support/prompts.js'
import { team } from '../../support/seed.js'

const cached = [
  { role: 'system', content: 'You help {{ company }}.', cache_control: { type: 'ephemeral' as const } },
  { role: 'user', content: '{{ question }}' },
]

async function model(cp: ControlPlane, as: Credential, publicName: string): Promise<string> {
  const connection = { provider: 'openai' as const, label: 'Main', apiKey: 'sk-test' }
  const { id: connectionId } = (await cp.call(createConnection, { as, body: connection })).body
  const body = { publicName, connectionId, upstreamModel: 'gpt-test' }
  return (await cp.call(createModel, { as, body })).body.modelId
}

t.test('committing versions', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.editor.session
  const promptOf = async () => (await cp.call(createPrompt, { as, body: { name: 'P' } })).body.id

  t.test(
    'the first commit sets production and staging and answers them; later ones move no alias',
    async t => {
      const id = await promptOf()
      const first = await cp.call(commitPromptVersion, { as, params: { id }, body: { messages: cached } })
      t.equal(first.status, 201)
      const { id: versionId, createdAt, aliases, ...rest } = first.body
      t.same(rest, {
        promptId: id,
        versionNumber: 1,
        messages: cached,
        variables: ['company', 'question'],
        model: null,
        createdBy: ours.editor.userId,
      })
      t.same(
        aliases?.map(({ id: _, ...row }) => row),
        ['production', 'staging'].map(alias => ({
          alias,
          versionId,
          versionNumber: 1,
          updatedAt: createdAt,
        })),
      )
      t.same((await cp.call(listPromptAliases, { as, params: { id } })).body.data, aliases)
      const second = await cp.call(commitPromptVersion, { as, params: { id }, body: { messages: cached } })
      t.equal(second.body.versionNumber, 2)
      t.notOk('aliases' in second.body)
      t.same((await cp.call(listPromptAliases, { as, params: { id } })).body.data, aliases)
      t.same(
        (await trailOf(cp, id)).slice(1).map(({ event, metadata }) => [event, metadata]),
        [
          ['version_committed', { versionNumber: 1, versionId }],
          ['version_committed', { versionNumber: 2, versionId: second.body.id }],
        ],
      )
    },
  )

  t.test('variables are derived from the messages and never taken from the request', async t => {
    const id = await promptOf()
    const body = { messages: cached, variables: ['injected'] } as never
    for (const _ of [1, 2]) {
      const { variables } = (await cp.call(commitPromptVersion, { as, params: { id }, body })).body
      t.same(variables, ['company', 'question'])
    }
    t.same((await commit(cp, as, id, 'no names')).variables, [])
  })

  t.test('commits at once take the next numbers, each once, and only one of them is the first', async t => {
    const id = await promptOf()
    const commits = await Promise.all([1, 2, 3, 4, 5, 6].map(() => commit(cp, as, id)))
    t.same(commits.map(one => one.versionNumber).sort(), [1, 2, 3, 4, 5, 6])
    t.same(
      commits.filter(one => one.aliases !== undefined).map(one => one.versionNumber),
      [1],
    )
  })

  t.test('model is a publicName, shown as it is called now, null once it left the registry', async t => {
    const id = await promptOf()
    const modelId = await model(cp, ours.owner.session, 'fast')
    const body = { messages: cached, model: 'fast' }
    const made = (await cp.call(commitPromptVersion, { as, params: { id }, body })).body
    t.equal(made.model, 'fast')
    const shown = async () =>
      (await cp.call(readPromptVersion, { as, params: { id, version_number: '1' } })).body.model
    t.equal(await shown(), 'fast')
    const owner = ours.owner.session
    await cp.call(updateModel, { as: owner, params: { id: modelId }, body: { publicName: 'faster' } })
    t.equal(await shown(), 'faster')
    await cp.call(deleteModel, { as: owner, params: { id: modelId } })
    t.equal(await shown(), null)
    const { status, error } = await cp.call(commitPromptVersion, { as, params: { id }, body })
    t.equal(status, 400)
    t.same(error, {
      code: 'VALIDATION_ERROR',
      message: "Model 'fast' is not registered. Add it under Gateway → Models.",
    })
    t.equal(
      (await cp.call(commitPromptVersion, { as, params: { id }, body: { ...body, model: null } })).status,
      201,
    )
  })

  t.test('a model of another team, and a model’s uuid, are not registered', async t => {
    const theirs = await team(cp)
    await model(cp, theirs.owner.session, 'theirs')
    const mine = await model(cp, ours.owner.session, 'mine')
    const id = await promptOf()
    for (const name of ['theirs', mine, '', 'a\u0000b']) {
      const body = { messages: cached, model: name }
      const { status, error } = await cp.call(commitPromptVersion, { as, params: { id }, body })
      t.equal(status, 400, name)
      t.equal(error?.code, 'VALIDATION_ERROR')
    }
    t.equal((await cp.call(listPromptVersions, { as, params: { id } })).body.total, 0)
  })

  t.test('messages are required and checked', async t => {
    const id = await promptOf()
    const refusal = async (messages: unknown) => {
      const body = { messages } as never
      const { status, error } = await cp.call(commitPromptVersion, { as, params: { id }, body })
      t.equal(status, 400)
      t.equal(error?.code, 'VALIDATION_ERROR')
      return error?.message
    }
    const one = { role: 'user', content: 'x' }
    t.equal(await refusal(undefined), 'Required')
    t.equal(await refusal('text'), 'Expected array, received string')
    t.equal(await refusal([]), 'Array must contain at least 1 element(s)')
    t.equal(await refusal([{ content: 'x' }]), 'messages.0.role: Required')
    t.equal(await refusal([one, { role: 'user' }]), 'messages.1.content: Required')
    t.equal(
      await refusal([{ role: '', content: 'x' }]),
      'messages.0.role: String must contain at least 1 character(s)',
    )
    t.equal(
      await refusal([{ role: 'user', content: [one] }]),
      'messages.0.content: Expected string, received array',
    )
    t.equal(
      await refusal([{ role: 'user', content: 'a\u0000b' }]),
      'messages.0.content: Text must not contain the NUL character.',
    )
    t.equal(
      await refusal([{ ...one, tool_calls: [] }]),
      "messages.0: Unrecognized key(s) in object: 'tool_calls'",
      'dropping it would change what the model reads',
    )
    t.equal((await cp.call(listPromptVersions, { as, params: { id } })).body.total, 0)
  })

  t.test('any role is taken; an empty content too', async t => {
    const id = await promptOf()
    const roles = ['system', 'user', 'assistant', 'developer', 'tool', 'narrator']
    const messages = roles.map(role => ({ role, content: '' }))
    const made = (await cp.call(commitPromptVersion, { as, params: { id }, body: { messages } })).body
    t.same(made.messages, messages)
  })

  t.test("cache_control.type must be 'ephemeral'", async t => {
    const id = await promptOf()
    for (const mark of [{ type: 'persistent' }, {}, { type: null }, 'ephemeral', null]) {
      const messages = [{ role: 'user', content: 'x', cache_control: mark }]
      const body = { messages } as never
      const { status, error } = await cp.call(commitPromptVersion, { as, params: { id }, body })
      t.equal(status, 400)
      t.equal(error?.code, 'VALIDATION_ERROR')
      t.match(error?.message, /cache_control\.type must be 'ephemeral'$/)
    }
    const longer = [{ role: 'user', content: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } }]
    const refused = await cp.call(commitPromptVersion, {
      as,
      params: { id },
      body: { messages: longer } as never,
    })
    t.equal(refused.error?.message, "messages.0.cache_control: Unrecognized key(s) in object: 'ttl'")
  })

  t.test('a template that cannot be read answers TEMPLATE_PARSE_ERROR and commits nothing', async t => {
    const id = await promptOf()
    for (const content of ['Hello {{ name', '{% if x %}open', '{% nonsense %}']) {
      const messages = [
        { role: 'system', content: 'fine' },
        { role: 'user', content },
      ]
      const { status, error } = await cp.call(commitPromptVersion, { as, params: { id }, body: { messages } })
      t.equal(status, 400, content)
      t.equal(error?.code, 'TEMPLATE_PARSE_ERROR')
      t.match(error?.message, /^messages\.1\.content: /)
    }
    t.equal((await cp.call(listPromptVersions, { as, params: { id } })).body.total, 0)
  })

  t.test('a body above 1 MB answers 413, and one below it is stored whole', async t => {
    const id = await promptOf()
    const sized = (length: number) => ({ messages: [{ role: 'user', content: 'x'.repeat(length) }] })
    const big = await cp.call(commitPromptVersion, { as, params: { id }, body: sized(1024 * 1024) })
    t.equal(big.status, 413)
    t.equal(big.error?.code, 'PAYLOAD_TOO_LARGE')
    const made = await cp.call(commitPromptVersion, { as, params: { id }, body: sized(500_000) })
    t.equal(made.body.messages[0]?.content.length, 500_000)
  })

  t.test('a viewer and a team-scoped key are refused', async t => {
    const id = await promptOf()
    for (const who of [ours.viewer.session, ours.viewer.personalKey, ours.teamKey]) {
      const { status, error } = await cp.call(commitPromptVersion, {
        as: who,
        params: { id },
        body: {} as never,
      })
      t.equal(status, 403)
      t.same(error, { code: 'FORBIDDEN', message: 'Insufficient role for this action.' })
    }
  })

  t.test('an unknown and a foreign prompt are not found', async t => {
    const theirs = await team(cp)
    const { promptId } = await storedPrompt(cp, theirs.owner.session)
    for (const id of [randomUUID(), 'nonsense', promptId]) {
      const { status, error } = await cp.call(commitPromptVersion, {
        as,
        params: { id },
        body: { messages: cached },
      })
      t.equal(status, 404)
      t.same(error, { code: 'NOT_FOUND', message: 'Prompt not found.' })
    }
  })
})

t.test('reading versions', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.viewer.session
  const writer = ours.owner.session
  const templates = ['one', 'two {{ b }} {{ a }}', 'three']
  const { promptId: id, versionIds } = await storedPrompt(cp, writer, { templates })

  t.test('the list is newest first and paginated; items have six fields and no messages', async t => {
    const { body } = await cp.call(listPromptVersions, { as, params: { id }, query: { limit: '2' } })
    t.same(
      body.data.map(version => version.versionNumber),
      [3, 2],
    )
    t.match(body, { total: 3, page: 1, limit: 2 })
    t.same(Object.keys(body.data[0] ?? {}).sort(), [
      'createdAt',
      'createdBy',
      'id',
      'promptId',
      'variables',
      'versionNumber',
    ])
    t.same(body.data[1]?.variables, ['b', 'a'])
    const over = await cp.call(listPromptVersions, { as, params: { id }, query: { limit: '101' } })
    t.equal(over.error?.message, 'Number must be less than or equal to 100')
  })

  t.test('one version comes with its messages; a missing one names its number', async t => {
    const { body } = await cp.call(readPromptVersion, { as, params: { id, version_number: '2' } })
    t.match(body, { id: versionIds[1], promptId: id, versionNumber: 2, model: null })
    t.same(body.messages, [{ role: 'user', content: 'two {{ b }} {{ a }}' }])
    t.notOk('aliases' in body)
    for (const number of ['7', '0', '-1', 'x', '1.0', '99999999999', '01']) {
      const { status, error } = await cp.call(readPromptVersion, {
        as,
        params: { id, version_number: number },
      })
      t.equal(status, 404)
      t.same(error, { code: 'NOT_FOUND', message: `Version ${number} not found for this prompt.` })
    }
  })

  t.test('GET /prompt-versions/:versionId shows a version, its prompt and the default tools', async t => {
    const search = await storedTool(cp, writer, 'search')
    const book = await storedTool(cp, writer, 'book')
    const bind = (toolId: string) =>
      cp.call(setDefaultPromptTool, {
        as: writer,
        params: { id, toolId },
        body: { tool_alias: 'production' },
      })
    await bind(search)
    const off = { params: { id, toolId: search, alias: 'production' }, body: { off: true } }
    await cp.call(setAliasPromptTool, { as: writer, ...off })
    await cp.call(setAliasPromptTool, {
      as: writer,
      params: { id, toolId: book, alias: 'production' },
      body: { tool_alias: 'production' },
    })
    const find = async (versionId: string, who = as) =>
      cp.call(findPromptVersion, { as: who, params: { versionId } })
    const expected = {
      promptId: id,
      promptName: 'Greeter',
      versionNumber: 2,
      messages: [{ role: 'user', content: 'two {{ b }} {{ a }}' }],
      variables: ['b', 'a'],
      tools: [
        {
          type: 'function',
          function: { name: 'search', description: 'search v1', parameters: { type: 'object' } },
        },
      ],
      model: null,
    }
    for (const who of [as, ours.teamKey, ours.editor.personalKey]) {
      t.same((await find(versionIds[1] ?? '', who)).body, expected)
    }
    const other = await team(cp)
    const unknown = await find(randomUUID())
    t.equal(unknown.status, 404)
    t.same(unknown.error, { code: 'NOT_FOUND', message: 'Prompt version not found.' })
    t.equal((await find('nonsense')).text, unknown.text)
    t.equal((await find(versionIds[1] ?? '', other.owner.session)).text, unknown.text)
    await cp.call(deletePrompt, { as: writer, params: { id } })
    t.same((await find(versionIds[1] ?? '')).body, expected, 'history of a deleted prompt is kept')
  })
})
