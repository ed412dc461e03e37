import { randomUUID } from 'node:crypto'
import t from 'tap'
import { listPromptTools, setAliasPromptTool } from '../../../shared/contract/prompt-tools.js'
import {
  deletePromptAlias,
  listPromptAliases,
  promotePromptAlias,
  renderPromptVersion,
} from '../../../shared/contract/prompts.js'
import { startControlPlane } from '../../support/control-plane.js'
import { storedPrompt, storedTool, trailOf } from '../../support/prompts.js'
import { team } from '../../support/seed.js'

t.test('aliases of a prompt', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.editor.session
  const three = { templates: ['one', 'two', 'three'] }
  const promote = (id: string, alias: string, versionNumber: unknown, who = as) =>
    cp.call(promotePromptAlias, { as: who, params: { id, alias }, body: { versionNumber } as never })
  const remove = (id: string, alias: string, who = as) =>
    cp.call(deletePromptAlias, { as: who, params: { id, alias } })
  const list = async (id: string) =>
    (await cp.call(listPromptAliases, { as: ours.viewer.session, params: { id } })).body.data

  t.test('promote points an alias at a version, keeps its id, and serves the next render', async t => {
    const { promptId: id, versionIds } = await storedPrompt(cp, as, three)
    const [production] = await list(id)
    const { status, body } = await promote(id, 'production', 2)
    t.equal(status, 200)
    t.same(Object.keys(body).sort(), ['alias', 'id', 'updatedAt', 'versionId', 'versionNumber'])
    t.match(body, { id: production?.id, alias: 'production', versionId: versionIds[1], versionNumber: 2 })
    t.ok(body.updatedAt >= (production?.updatedAt ?? ''))
    t.same((await list(id))[0], body)
    t.match((await list(id))[1], { alias: 'staging', versionNumber: 1 }, 'no other alias moves')
    const rendered = await cp.call(renderPromptVersion, { as, params: { id }, body: {} })
    t.equal(rendered.body.messages[0]?.content, 'two')
  })

  t.test('promote makes a new alias; the list has production, staging, then names', async t => {
    const { promptId: id } = await storedPrompt(cp, as, three)
    for (const alias of ['z', 'canary', '0-a_b']) t.equal((await promote(id, alias, 3)).status, 200)
    t.same(
      (await list(id)).map(row => [row.alias, row.versionNumber]),
      [
        ['production', 1],
        ['staging', 1],
        ['0-a_b', 3],
        ['canary', 3],
        ['z', 3],
      ],
    )
  })

  t.test('each promotion is in the trail, with the version before it', async t => {
    const { promptId: id } = await storedPrompt(cp, as, three)
    await promote(id, 'production', 3)
    await promote(id, 'canary', 2)
    await promote(id, 'canary', 2)
    await remove(id, 'canary')
    t.same(
      (await trailOf(cp, id))
        .filter(row => row.event === 'prompt_alias_promoted')
        .map(row => [row.metadata, row.actorId]),
      [
        [{ alias: 'production', versionNumber: 3, fromVersionNumber: 1 }, ours.editor.userId],
        [{ alias: 'canary', versionNumber: 2, fromVersionNumber: null }, ours.editor.userId],
        [{ alias: 'canary', versionNumber: 2, fromVersionNumber: 2 }, ours.editor.userId],
        [{ alias: 'canary', versionNumber: null, fromVersionNumber: 2 }, ours.editor.userId],
      ],
    )
  })

  t.test('two promotions at once leave one of the two', async t => {
    const { promptId: id } = await storedPrompt(cp, as, three)
    const answers = await Promise.all([promote(id, 'canary', 2), promote(id, 'canary', 3)])
    t.same(
      answers.map(answer => answer.status),
      [200, 200],
    )
    t.equal(answers[0]?.body.id, answers[1]?.body.id)
    t.match((await list(id))[2]?.versionNumber.toString(), /^[23]$/)
  })

  t.test('a missing version, and a prompt with none, answer 404', async t => {
    const { promptId: id } = await storedPrompt(cp, as, three)
    const missing = await promote(id, 'production', 7)
    t.equal(missing.status, 404)
    t.same(missing.error, { code: 'NOT_FOUND', message: 'Version 7 not found for this prompt.' })
    const { promptId: empty } = await storedPrompt(cp, as)
    t.same(await list(empty), [])
    t.equal((await promote(empty, 'production', 1)).error?.message, 'Version 1 not found for this prompt.')
  })

  t.test('alias names and version numbers are checked', async t => {
    const { promptId: id } = await storedPrompt(cp, as, three)
    for (const alias of ['Upper', '-dash', '_under', 'a b', 'ä', 'x'.repeat(65)]) {
      const { status, error } = await promote(id, alias, 1)
      t.equal(status, 400, alias)
      t.same(error, {
        code: 'VALIDATION_ERROR',
        message: 'An alias must match ^[a-z0-9][a-z0-9_-]{0,63}$.',
      })
    }
    t.equal((await promote(id, 'x'.repeat(64), 1)).status, 200)
    t.equal((await promote(id, 'a', undefined)).error?.message, 'Required')
    for (const number of [0, -1, 1.5, '1', null, 2 ** 31])
      t.equal((await promote(id, 'a', number)).status, 400)
  })

  t.test('an alias can be deleted, production cannot', async t => {
    const { promptId: id } = await storedPrompt(cp, as, three)
    const refused = await remove(id, 'production')
    t.equal(refused.status, 409)
    t.same(refused.error, { code: 'CONFLICT', message: "The alias 'production' cannot be deleted." })
    t.equal((await remove(id, 'staging')).status, 204)
    t.same(
      (await list(id)).map(row => row.alias),
      ['production'],
    )
    const again = await remove(id, 'staging')
    t.equal(again.status, 404)
    t.same(again.error, { code: 'NOT_FOUND', message: "Alias 'staging' not found for this prompt." })
    const rendered = await cp.call(renderPromptVersion, { as, params: { id }, body: { alias: 'staging' } })
    t.equal(rendered.error?.message, "Alias 'staging' not found for this prompt.")
  })

  t.test('the bindings of a deleted alias stay, and hold again when it is promoted anew', async t => {
    const { promptId: id } = await storedPrompt(cp, as, three)
    const toolId = await storedTool(cp, as, 'kept')
    await promote(id, 'canary', 2)
    const params = { id, toolId, alias: 'canary' }
    await cp.call(setAliasPromptTool, { as, params, body: { tool_alias: 'production' } })
    await remove(id, 'canary')
    const tools = async () =>
      (await cp.call(listPromptTools, { as, params: { id } })).body.data.aliases.find(
        row => row.alias === 'canary',
      )
    t.match(await tools(), { versionNumber: null, customised: true, bindings: [{ toolName: 'kept' }] })
    await promote(id, 'canary', 3)
    t.match(await tools(), { versionNumber: 3, customised: true })
  })

  t.test('a viewer and a team-scoped key may list, not promote or delete', async t => {
    const { promptId: id } = await storedPrompt(cp, as, three)
    for (const who of [ours.viewer.session, ours.teamKey]) {
      t.equal((await promote(id, 'production', 2, who)).status, 403)
      t.equal((await remove(id, 'staging', who)).status, 403)
      t.equal((await cp.call(listPromptAliases, { as: who, params: { id } })).status, 200)
    }
  })

  t.test('another team’s prompt answers byte for byte like an unknown one', async t => {
    const theirs = await team(cp)
    const { promptId: foreign } = await storedPrompt(cp, theirs.owner.session, three)
    for (const missing of [randomUUID(), 'nonsense']) {
      t.equal((await promote(foreign, 'production', 1)).text, (await promote(missing, 'production', 1)).text)
      for (const alias of ['production', 'staging']) {
        const gone = await remove(missing, alias)
        t.equal((await remove(foreign, alias)).text, gone.text)
        t.same(gone.error, { code: 'NOT_FOUND', message: 'Prompt not found.' })
      }
      const lists = [foreign, missing].map(id => cp.call(listPromptAliases, { as, params: { id } }))
      const [one, other] = await Promise.all(lists)
      t.equal(one?.status, 404)
      t.equal(one?.text, other?.text)
    }
  })
})
