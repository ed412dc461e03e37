import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createConnection } from '../../../shared/contract/connections.js'
import { createModel } from '../../../shared/contract/models.js'
import { setAliasPromptTool, setDefaultPromptTool } from '../../../shared/contract/prompt-tools.js'
import {
  commitPromptVersion,
  createPrompt,
  promotePromptAlias,
  renderPromptVersion,
} from '../../../shared/contract/prompts.js'
import { deleteTool, updateTool } from '../../../shared/contract/tools.js'
import { startControlPlane } from '../../support/control-plane.js'
import { storedPrompt, storedTool } from '../../support/prompts.js'
import { team } from '../../support/seed.js'

t.test('render: 200', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.owner.session
  const render = async (id: string, body: object, who = as) =>
    (await cp.call(renderPromptVersion, { as: who, params: { id }, body })).body

  t.test('production is the default; the answer names prompt, version, alias and model', async t => {
    const connection = { provider: 'openai' as const, label: 'Main', apiKey: 'sk-test' }
    const { id: connectionId } = (await cp.call(createConnection, { as, body: connection })).body
    await cp.call(createModel, { as, body: { publicName: 'fast', connectionId, upstreamModel: 'gpt-test' } })
    const { id } = (await cp.call(createPrompt, { as, body: { name: 'Greeter' } })).body
    const messages = [
      { role: 'system', content: 'Be kind.', cache_control: { type: 'ephemeral' as const } },
      { role: 'user', content: 'Hello {{ name }}' },
    ]
    const made = (
      await cp.call(commitPromptVersion, { as, params: { id }, body: { messages, model: 'fast' } })
    ).body
    t.same(await render(id, { variables: { name: 'Ada', unused: 1 } }), {
      promptId: id,
      promptName: 'Greeter',
      versionId: made.id,
      versionNumber: 1,
      alias: 'production',
      model: 'fast',
      messages: [messages[0], { role: 'user', content: 'Hello Ada' }],
      tools: [],
      toolResolutions: [],
    })
  })

  t.test('alias or versionNumber chooses the version; variables may be left out', async t => {
    const { promptId: id } = await storedPrompt(cp, as, { templates: ['one', 'two', 'three'] })
    await cp.call(promotePromptAlias, { as, params: { id, alias: 'canary' }, body: { versionNumber: 2 } })
    const said = async (body: object) => {
      const { alias, versionNumber, messages } = await render(id, body)
      return [alias, versionNumber, messages[0]?.content]
    }
    t.same(await said({}), ['production', 1, 'one'])
    t.same(await said({ alias: 'canary' }), ['canary', 2, 'two'])
    t.same(await said({ versionNumber: 3 }), [null, 3, 'three'])
    t.same(await said({ alias: 'canary', versionNumber: 3 }), ['canary', 3, 'three'])
  })

  t.test('a viewer and a team-scoped key may render', async t => {
    const { promptId: id } = await storedPrompt(cp, as, { templates: ['hi'] })
    for (const who of [ours.viewer.session, ours.viewer.personalKey, ours.teamKey]) {
      t.equal((await render(id, {}, who)).messages[0]?.content, 'hi')
    }
  })

  t.test('tools are those bound to the alias, resolved as of now, in the order of the bindings', async t => {
    const { promptId: id } = await storedPrompt(cp, as, { templates: ['x'] })
    const [a, b, c, d] = [
      await storedTool(cp, as, 'a', 2),
      await storedTool(cp, as, 'b'),
      await storedTool(cp, as, 'c'),
      await storedTool(cp, as, 'd'),
    ]
    const pinned = (pinned_version_number: number) => ({ pinned_version_number })
    const aliased = { tool_alias: 'production' }
    for (const toolId of [a, b, c])
      await cp.call(setDefaultPromptTool, { as, params: { id, toolId }, body: aliased })
    const own = (toolId: string, body: object) =>
      cp.call(setAliasPromptTool, { as, params: { id, alias: 'staging', toolId }, body })
    await own(d, aliased)
    await own(b, { off: true })
    await own(a, pinned(2))
    const attached = (toolId: string, toolName: string, over: object = {}) => ({
      toolId,
      toolName,
      toolAlias: 'production',
      pinnedVersionNumber: null,
      resolvedVersionNumber: 1,
      status: 'attached',
      ...over,
    })
    const definition = (name: string, version: number) => ({
      type: 'function',
      function: { name, description: `${name} v${version}`, parameters: { type: 'object' } },
    })
    const production = await render(id, {})
    t.same(production.toolResolutions, [attached(a, 'a'), attached(b, 'b'), attached(c, 'c')])
    t.same(production.tools, [definition('a', 1), definition('b', 1), definition('c', 1)])
    const staging = await render(id, { alias: 'staging' })
    t.same(
      staging.toolResolutions,
      [
        attached(a, 'a', { toolAlias: null, pinnedVersionNumber: 2, resolvedVersionNumber: 2 }),
        attached(b, 'b', { toolAlias: null, resolvedVersionNumber: null, status: 'off' }),
        attached(c, 'c'),
        attached(d, 'd'),
      ],
      'a row of the alias takes the place of the default one; the alias’s own tools follow; c is inherited',
    )
    t.same(staging.tools, [definition('a', 2), definition('c', 1), definition('d', 1)])
    t.same(
      (await render(id, { versionNumber: 1 })).tools,
      production.tools,
      'by number: the default bindings',
    )
    const both = await render(id, { versionNumber: 1, alias: 'staging' })
    t.same(both.tools, staging.tools, 'by both: the alias chooses the bindings')
    const unborn = await render(id, { versionNumber: 1, alias: 'unborn' })
    t.same(unborn.tools, production.tools)
  })

  t.test('a binding that stands for nothing any more is unresolved with a reason, not an error', async t => {
    const { promptId: id } = await storedPrompt(cp, as, { templates: ['x'] })
    const [gone, kept, moved] = [
      await storedTool(cp, as, 'gone'),
      await storedTool(cp, as, 'kept'),
      await storedTool(cp, as, 'moved'),
    ]
    for (const toolId of [gone, kept, moved])
      await cp.call(setDefaultPromptTool, { as, params: { id, toolId }, body: { tool_alias: 'staging' } })
    await cp.call(deleteTool, { as, params: { id: gone } })
    await cp.call(updateTool, { as, params: { id: kept }, body: { name: 'renamed' } })
    await cp.deps.sql`delete from tool_aliases where tool_id = ${moved} and alias = 'staging'`
    const { tools, toolResolutions } = await render(id, {})
    t.same(
      tools.map(tool => tool.function.name),
      ['renamed'],
    )
    t.same(
      toolResolutions.map(({ toolName, status, resolvedVersionNumber, reason }) => [
        toolName,
        status,
        resolvedVersionNumber,
        reason,
      ]),
      [
        ['gone', 'unresolved', null, "Tool 'gone' was deleted."],
        ['renamed', 'attached', 1, undefined],
        ['moved', 'unresolved', null, "Tool 'moved' has no alias 'staging'."],
      ],
    )
  })
})

t.test('render: 4xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.owner.session
  const ask = (id: string, body: object = {}) =>
    cp.call(renderPromptVersion, { as, params: { id }, body: body as never })

  t.test('missing variables are named', async t => {
    const { promptId: id } = await storedPrompt(cp, as, { templates: ['{{ a }} {{ b }} {{ c }}'] })
    const { status, error } = await ask(id, { variables: { b: 'x' } })
    t.equal(status, 400)
    t.same(error, { code: 'TEMPLATE_RENDER_ERROR', message: 'Missing variables: a, c.' })
  })

  t.test('a missing alias, version or prompt answers 404 with its name', async t => {
    const { promptId: id } = await storedPrompt(cp, as, { templates: ['x'] })
    const { promptId: empty } = await storedPrompt(cp, as)
    const theirs = await team(cp)
    const { promptId: foreign } = await storedPrompt(cp, theirs.owner.session, { templates: ['x'] })
    const cases: [string, object, string][] = [
      [id, { alias: 'nightly' }, "Alias 'nightly' not found for this prompt."],
      [id, { versionNumber: 7 }, 'Version 7 not found for this prompt.'],
      [empty, {}, "Alias 'production' not found for this prompt."],
      [empty, { versionNumber: 1 }, 'Version 1 not found for this prompt.'],
      [randomUUID(), {}, 'Prompt not found.'],
      ['nonsense', {}, 'Prompt not found.'],
      [foreign, {}, 'Prompt not found.'],
      [foreign, { alias: 'nightly' }, 'Prompt not found.'],
      [foreign, { versionNumber: 7 }, 'Prompt not found.'],
    ]
    for (const [promptId, body, message] of cases) {
      const { status, error } = await ask(promptId, body)
      t.equal(status, 404)
      t.same(error, { code: 'NOT_FOUND', message })
    }
  })

  t.test('fields are checked', async t => {
    const { promptId: id } = await storedPrompt(cp, as, { templates: ['x'] })
    const refusal = async (body: object) => {
      const { status, error } = await ask(id, body)
      t.equal(status, 400)
      return error?.message
    }
    t.equal(await refusal({ versionNumber: 1.5 }), 'Expected integer, received float')
    t.equal(await refusal({ versionNumber: 0 }), 'Number must be greater than or equal to 1')
    t.equal(await refusal({ variables: ['a'] }), 'Expected object, received array')
    t.equal(await refusal({ alias: 5 }), 'Expected string, received number')
    t.equal(await refusal({ alias: 'a\u0000' }), 'Text must not contain the NUL character.')
  })
})
