import { randomUUID } from 'node:crypto'
import t from 'tap'
import {
  listPromptTools,
  removeAliasPromptTool,
  removeAliasPromptTools,
  removeDefaultPromptTool,
  setAliasPromptTool,
  setDefaultPromptTool,
} from '../../../shared/contract/prompt-tools.js'
import { promotePromptAlias, renderPromptVersion } from '../../../shared/contract/prompts.js'
import { createTool, deleteTool, promoteToolAlias } from '../../../shared/contract/tools.js'
import {
  type ControlPlane,
  type Credential,
  headersOf,
  startControlPlane,
} from '../../support/control-plane.js'
import { storedPrompt, storedTool, trailOf } from '../../support/prompts.js'
import { team } from '../../support/seed.js'

/** The six endpoints, for one caller. */
function bindingsOf(cp: ControlPlane, as: Credential) {
  const json = (body: object) => body as never
  return {
    list: async (id: string) => (await cp.call(listPromptTools, { as, params: { id } })).body.data,
    set: (id: string, toolId: string, body: object) =>
      cp.call(setDefaultPromptTool, { as, params: { id, toolId }, body: json(body) }),
    setAt: (id: string, alias: string, toolId: string, body: object) =>
      cp.call(setAliasPromptTool, { as, params: { id, alias, toolId }, body: json(body) }),
    remove: (id: string, toolId: string) => cp.call(removeDefaultPromptTool, { as, params: { id, toolId } }),
    removeAt: (id: string, alias: string, toolId: string) =>
      cp.call(removeAliasPromptTool, { as, params: { id, alias, toolId } }),
    removeAll: (id: string, alias: string) => cp.call(removeAliasPromptTools, { as, params: { id, alias } }),
  }
}

const aliased = { tool_alias: 'production' }

t.test('bindings: 2xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.editor.session
  const { list, set, setAt, remove, removeAt, removeAll } = bindingsOf(cp, as)
  const promptId = async () => (await storedPrompt(cp, as, { templates: ['x', 'y'] })).promptId
  const [first, second, third] = [
    await storedTool(cp, as, 'first', 3),
    await storedTool(cp, as, 'second'),
    await storedTool(cp, as, 'third'),
  ]
  const attached = async (id: string, alias: string) =>
    (await cp.call(renderPromptVersion, { as, params: { id }, body: { alias } })).body.tools.map(
      tool => tool.function.description,
    )

  t.test('a default binding by alias and by pinned version, with the version that it stands for', async t => {
    const id = await promptId()
    const byAlias = await set(id, first, aliased)
    t.equal(byAlias.status, 200)
    t.same(byAlias.body, {
      toolId: first,
      toolName: 'first',
      toolAlias: 'production',
      pinnedVersionNumber: null,
      off: false,
      resolvedVersionNumber: 1,
      position: 0,
    })
    const pinned = await set(id, second, { pinned_version_number: 1 })
    t.match(pinned.body, { toolAlias: null, pinnedVersionNumber: 1, resolvedVersionNumber: 1, position: 1 })
    const changed = await set(id, first, { pinned_version_number: 3, tool_alias: null })
    t.match(
      changed.body,
      { toolAlias: null, pinnedVersionNumber: 3, resolvedVersionNumber: 3, position: 0 },
      'a changed binding keeps its position',
    )
    t.same((await list(id)).default, [changed.body, pinned.body])
  })

  t.test('positions: next free of the default rows or of the alias', async t => {
    const id = await promptId()
    const position = async (answer: Promise<{ body: { position: number } }>) => (await answer).body.position
    t.equal(await position(set(id, first, aliased)), 0)
    t.equal(await position(set(id, second, aliased)), 1)
    t.equal(await position(setAt(id, 'staging', second, { off: true })), 0)
    await remove(id, first)
    t.equal(await position(set(id, third, aliased)), 2)
    t.equal(await position(set(id, first, aliased)), 3)
    t.equal(await position(setAt(id, 'staging', first, aliased)), 1)
    const tools = [first, second, third]
    const fresh = await promptId()
    const answers = await Promise.all(tools.map(toolId => position(set(fresh, toolId, aliased))))
    t.same(answers.sort(), [0, 1, 2], 'also when set at once')
  })

  t.test(
    'an alias inherits per tool, can have its own row, can turn a tool off, and can go back',
    async t => {
      const id = await promptId()
      await set(id, first, aliased)
      await set(id, second, aliased)
      t.same(await attached(id, 'staging'), ['first v1', 'second v1'])
      await setAt(id, 'staging', first, { pinned_version_number: 2 })
      t.same(await attached(id, 'staging'), ['first v2', 'second v1'])
      const off = await setAt(id, 'staging', second, { off: true })
      t.match(off.body, {
        off: true,
        toolAlias: null,
        pinnedVersionNumber: null,
        resolvedVersionNumber: null,
      })
      t.same(await attached(id, 'staging'), ['first v2'])
      t.same(await attached(id, 'production'), ['first v1', 'second v1'], 'other aliases keep the default')
      t.equal((await removeAt(id, 'staging', second)).status, 204, 'removing an off row restores inheritance')
      t.same(await attached(id, 'staging'), ['first v2', 'second v1'])
      t.equal((await removeAll(id, 'staging')).status, 204)
      t.same(await attached(id, 'staging'), ['first v1', 'second v1'])
      t.equal((await remove(id, second)).status, 204)
      t.same(await attached(id, 'staging'), ['first v1'])
    },
  )

  t.test('bindings are resolved at use time: a promoted tool alias moves them with no commit', async t => {
    const id = await promptId()
    const toolId = await storedTool(cp, as, 'moving', 2)
    await set(id, toolId, aliased)
    t.same(await attached(id, 'production'), ['moving v1'])
    const params = { id: toolId, alias: 'production' }
    await cp.call(promoteToolAlias, { as, params, body: { versionNumber: 2 } })
    t.same(await attached(id, 'production'), ['moving v2'])
    t.equal((await list(id)).default[0]?.resolvedVersionNumber, 2)
  })

  t.test('an alias name that does not exist yet answers 200 and is listed without a version', async t => {
    const id = await promptId()
    t.equal((await setAt(id, 'canary', first, aliased)).status, 200)
    t.match(
      (await list(id)).aliases.find(row => row.alias === 'canary'),
      { versionNumber: null, customised: true, bindings: [{ toolId: first }] },
    )
    await cp.call(promotePromptAlias, { as, params: { id, alias: 'canary' }, body: { versionNumber: 2 } })
    t.same(await attached(id, 'canary'), ['first v1'])
    t.match((await list(id)).aliases[2], { alias: 'canary', versionNumber: 2, customised: true })
  })

  t.test('the list: production, staging, then names; customised false has no bindings', async t => {
    const { promptId: empty } = await storedPrompt(cp, as)
    t.same(await list(empty), { default: [], aliases: [] })
    const id = await promptId()
    await set(id, first, aliased)
    for (const alias of ['zeta', 'beta']) await setAt(id, alias, first, { off: true })
    await cp.call(promotePromptAlias, { as, params: { id, alias: 'alpha' }, body: { versionNumber: 2 } })
    const { aliases } = await list(id)
    t.same(
      aliases.map(({ alias, versionNumber, customised, bindings }) => [
        alias,
        versionNumber,
        customised,
        bindings.length,
      ]),
      [
        ['production', 1, false, 0],
        ['staging', 1, false, 0],
        ['alpha', 2, false, 0],
        ['beta', null, true, 1],
        ['zeta', null, true, 1],
      ],
    )
    const viewer = bindingsOf(cp, ours.viewer.personalKey)
    t.same((await viewer.list(id)).aliases, aliases)
    t.same((await bindingsOf(cp, ours.teamKey).list(id)).aliases, aliases)
  })

  t.test('bindings of a deleted tool are absent from the list and can still be removed', async t => {
    const id = await promptId()
    const toolId = await storedTool(cp, as, 'doomed')
    await set(id, toolId, aliased)
    await setAt(id, 'staging', toolId, { off: true })
    await cp.call(deleteTool, { as, params: { id: toolId } })
    const { aliases, ...rest } = await list(id)
    t.same(rest.default, [])
    t.same(
      aliases.map(row => row.customised),
      [false, false],
    )
    t.same(await attached(id, 'production'), [])
    t.equal((await remove(id, toolId)).status, 204)
    t.equal((await removeAll(id, 'staging')).status, 204)
  })

  t.test('a binding whose tool lost the alias resolves to null and stays listed', async t => {
    const id = await promptId()
    const toolId = await storedTool(cp, as, 'lost')
    await set(id, toolId, { tool_alias: 'staging' })
    await cp.deps.sql`delete from tool_aliases where tool_id = ${toolId} and alias = 'staging'`
    t.match((await list(id)).default, [{ toolAlias: 'staging', resolvedVersionNumber: null, off: false }])
  })

  t.test('each change is in the trail of the prompt and of the tool, and moves the epoch', async t => {
    const id = await promptId()
    const epoch = async () =>
      Number((await cp.deps.sql`select epoch from teams where id = ${ours.teamId}`)[0]?.epoch)
    const before = await epoch()
    await set(id, first, aliased)
    await set(id, first, { tool_alias: 'staging' })
    await setAt(id, 'canary', first, { pinned_version_number: 2 })
    await setAt(id, 'canary', second, { off: true })
    await remove(id, first)
    await removeAll(id, 'canary')
    t.ok((await epoch()) >= before + 6)
    const route = { toolId: first, toolName: 'first', promptAlias: null, off: false }
    const set1 = { ...route, toToolAlias: 'production', fromToolAlias: null, toPinnedVersionNumber: null }
    const canary = { promptAlias: 'canary', toToolAlias: null, fromToolAlias: null }
    const rows = (await trailOf(cp, id)).filter(row => row.event.startsWith('prompt_tool_route'))
    t.same(
      rows.map(({ event, metadata }) => [event.replace('prompt_tool_route_', ''), metadata]),
      [
        ['set', set1],
        ['set', { ...set1, toToolAlias: 'staging', fromToolAlias: 'production' }],
        ['set', { ...route, ...canary, toPinnedVersionNumber: 2 }],
        ['set', { ...canary, toolId: second, toolName: 'second', toPinnedVersionNumber: null, off: true }],
        ['removed', { toolId: first, toolName: 'first', promptAlias: null, fromToolAlias: 'staging' }],
        ['removed', { toolId: first, toolName: 'first', promptAlias: 'canary', fromToolAlias: null }],
        ['removed', { toolId: second, toolName: 'second', promptAlias: 'canary', fromToolAlias: null }],
      ],
    )
    t.ok(rows.every(row => row.toolId === row.metadata.toolId && row.actorId === ours.editor.userId))
  })

  t.test('a tool id in capitals names the same tool, in the answer and in the trail', async t => {
    const id = await promptId()
    t.match(await set(id, first.toUpperCase(), aliased), { status: 200, body: { toolId: first } })
    const rows = (await trailOf(cp, id)).filter(row => row.event === 'prompt_tool_route_set')
    t.match(rows, [{ metadata: { toolId: first } }])
  })
})

t.test('bindings: 4xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const theirs = await team(cp)
  const as = ours.owner.session
  const mine = bindingsOf(cp, as)
  const { promptId: id } = await storedPrompt(cp, as, { templates: ['x'] })
  const toolId = await storedTool(cp, as, 'search')
  const foreignTool = await storedTool(cp, theirs.owner.session, 'theirs')
  const { promptId: foreignPrompt } = await storedPrompt(cp, theirs.owner.session, { templates: ['x'] })
  const notFound = (message: string) => ({ code: 'NOT_FOUND', message })

  t.test('exactly one of tool_alias, pinned_version_number or off', async t => {
    const message = 'Provide exactly one of tool_alias, pinned_version_number, or off.'
    const neither = [{}, { tool_alias: null }, { tool_alias: 'production', pinned_version_number: 1 }]
    for (const body of neither) {
      const answer = await mine.set(id, toolId, body)
      t.equal(answer.status, 400)
      t.same(answer.error, { code: 'VALIDATION_ERROR', message })
    }
    const more = [
      { off: false },
      { off: true, tool_alias: 'production' },
      { off: true, pinned_version_number: 1 },
    ]
    for (const body of [...neither, ...more]) {
      t.same((await mine.setAt(id, 'staging', toolId, body)).error, { code: 'VALIDATION_ERROR', message })
    }
    t.equal((await mine.setAt(id, 'staging', toolId, { ...aliased, off: false })).status, 200)
    await mine.removeAt(id, 'staging', toolId)
  })

  t.test('off is refused on the default endpoint', async t => {
    for (const body of [{ off: true }, { off: true, ...aliased }, { off: 'yes' }]) {
      const { status, error } = await mine.set(id, toolId, body)
      t.equal(status, 400)
      t.match(error, { code: 'VALIDATION_ERROR', message: /^off is for the binding of one prompt alias/ })
    }
    t.same((await mine.list(id)).default, [])
  })

  t.test('types are checked', async t => {
    const bodies = [
      { tool_alias: 5 },
      { tool_alias: '' },
      { pinned_version_number: '1' },
      { pinned_version_number: 0 },
      { pinned_version_number: 1.5 },
      { off: 'yes' },
    ]
    for (const body of bodies) t.equal((await mine.setAt(id, 'staging', toolId, body)).status, 400)
    t.equal((await mine.setAt(id, 'Not An Alias', toolId, aliased)).status, 400)
  })

  t.test('an alias or version that the tool does not have is named', async t => {
    const refusal = async (body: object, tool = toolId) => {
      const answers = [await mine.set(id, tool, body), await mine.setAt(id, 'canary', tool, body)]
      t.same(
        answers.map(answer => answer.status),
        [400, 400],
      )
      t.equal(answers[0]?.text, answers[1]?.text)
      return answers[0]?.error
    }
    const code = 'VALIDATION_ERROR'
    t.same(await refusal({ tool_alias: 'nope' }), { code, message: "Tool 'search' has no alias 'nope'." })
    t.same(await refusal({ pinned_version_number: 9 }), { code, message: "Tool 'search' has no version 9." })
    t.equal((await refusal({ tool_alias: 'a\u0000' }))?.code, code)
    const shell = (await cp.call(createTool, { as, body: { name: 'shell' } })).body.id
    t.same(await refusal(aliased, shell), { code, message: "Tool 'shell' has no alias 'production'." })
  })

  t.test('an unknown, deleted or foreign tool is not found', async t => {
    const deleted = await storedTool(cp, as, 'deleted')
    await cp.call(deleteTool, { as, params: { id: deleted } })
    for (const missing of [randomUUID(), 'nonsense', foreignTool, deleted]) {
      for (const answer of [
        await mine.set(id, missing, aliased),
        await mine.setAt(id, 'staging', missing, aliased),
        await mine.setAt(id, 'staging', missing, { off: true }),
      ]) {
        t.equal(answer.status, 404)
        t.same(answer.error, notFound('Tool not found.'))
      }
      t.same((await mine.remove(id, missing)).error, notFound('No binding set for that tool.'))
    }
  })

  t.test('removing what is not set answers 404', async t => {
    const missing = await mine.remove(id, toolId)
    t.equal(missing.status, 404)
    t.same(missing.error, notFound('No binding set for that tool.'))
    await mine.set(id, toolId, aliased)
    t.same((await mine.removeAt(id, 'staging', toolId)).error, notFound('No binding set for that tool.'))
    const none = await mine.removeAll(id, 'staging')
    t.equal(none.status, 404)
    t.same(none.error, notFound("Alias 'staging' has no bindings of its own."))
    t.equal((await mine.list(id)).default.length, 1, 'the default row stays')
    t.equal((await mine.remove(id, toolId)).status, 204)
  })

  t.test('an empty alias in a path never means the default rows', async t => {
    await mine.set(id, toolId, aliased)
    for (const path of [`tools/${toolId}`, 'tools']) {
      const url = `/api/v1/prompts/${id}/aliases//${path}`
      const answer = await cp.app.inject({ method: 'DELETE', url, headers: headersOf(as) })
      t.ok(answer.statusCode === 400 || answer.statusCode === 404, `${answer.statusCode}`)
    }
    t.equal((await mine.list(id)).default.length, 1)
    await mine.remove(id, toolId)
  })

  t.test('an unknown and a foreign prompt are not found, whatever is asked of them', async t => {
    for (const prompt of [randomUUID(), 'nonsense', foreignPrompt]) {
      const answers = [
        await cp.call(listPromptTools, { as, params: { id: prompt } }),
        await mine.set(prompt, toolId, aliased),
        await mine.set(prompt, foreignTool, aliased),
        await mine.setAt(prompt, 'staging', toolId, { off: true }),
        await mine.remove(prompt, toolId),
        await mine.removeAt(prompt, 'staging', toolId),
        await mine.removeAll(prompt, 'staging'),
      ]
      for (const { status, error } of answers) {
        t.equal(status, 404)
        t.same(error, notFound('Prompt not found.'))
      }
    }
  })

  t.test('a viewer and a team-scoped key are refused every write', async t => {
    for (const who of [ours.viewer.session, ours.viewer.personalKey, ours.teamKey]) {
      const theirs = bindingsOf(cp, who)
      const answers = [
        await theirs.set(id, toolId, aliased),
        await theirs.setAt(id, 'staging', toolId, {}),
        await theirs.remove(id, toolId),
        await theirs.removeAt(id, 'staging', toolId),
        await theirs.removeAll(id, 'staging'),
      ]
      for (const { status, error } of answers) {
        t.equal(status, 403)
        t.same(error, { code: 'FORBIDDEN', message: 'Insufficient role for this action.' })
      }
    }
  })
})
