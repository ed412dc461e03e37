import { randomUUID } from 'node:crypto'
import t from 'tap'
import {
  foreignVersionIds,
  isPromptVersionOf,
  resolvePrompt,
} from '../../../control-plane/prompts/resolve.js'
import { deletePrompt } from '../../../shared/contract/prompts.js'
import { startControlPlane } from '../../support/control-plane.js'
import { storedPrompt } from '../../support/prompts.js'
import { team } from '../../support/seed.js'

t.test('what the proxy’s look-up and ingestion ask of prompts', async t => {
  const cp = await startControlPlane(t)
  const { sql } = cp.deps
  const ours = await team(cp)
  const theirs = await team(cp)
  const as = ours.owner.session

  t.test('a prompt by name is the team’s newest active one; its messages are still templates', async t => {
    const older = await storedPrompt(cp, as, { name: 'Twice', templates: ['old {{ a }}'] })
    const newer = await storedPrompt(cp, as, { name: 'Twice', templates: ['new {{ b }}'] })
    await storedPrompt(cp, theirs.owner.session, { name: 'Twice', templates: ['theirs'] })
    const find = () => resolvePrompt(sql, ours.teamId, { name: 'Twice' }, { alias: 'production' })
    t.same(await find(), {
      promptId: newer.promptId,
      promptName: 'Twice',
      versionId: newer.versionIds[0],
      versionNumber: 1,
      alias: 'production',
      model: null,
      messages: [{ role: 'user', content: 'new {{ b }}' }],
      variables: ['b'],
      tools: [],
      toolResolutions: [],
    })
    await cp.call(deletePrompt, { as, params: { id: newer.promptId } })
    t.equal((await find()).promptId, older.promptId)
  })

  t.test('the newest prompt of a name counts even when it has no version yet', async t => {
    await storedPrompt(cp, as, { name: 'Shell', templates: ['old'] })
    await storedPrompt(cp, as, { name: 'Shell' })
    const found = resolvePrompt(sql, ours.teamId, { name: 'Shell' }, {})
    await t.rejects(found, { code: 'NOT_FOUND', message: "Alias 'production' not found for this prompt." })
  })

  t.test('what no text can be called is not found', async t => {
    const find = (name: string, alias: string) => resolvePrompt(sql, ours.teamId, { name }, { alias })
    await t.rejects(find('a\u0000', 'production'), { code: 'NOT_FOUND', message: 'Prompt not found.' })
    await t.rejects(find('Twice', 'a\u0000'), { code: 'NOT_FOUND' })
  })

  t.test(
    'prompt versions of other teams are told apart, in one statement; deleted prompts count',
    async t => {
      const mine = await storedPrompt(cp, as, { templates: ['1', '2'] })
      const foreign = await storedPrompt(cp, theirs.owner.session, { templates: ['x'] })
      await cp.call(deletePrompt, { as, params: { id: mine.promptId } })
      const [one = '', two = ''] = mine.versionIds
      const other = foreign.versionIds[0] ?? ''
      const unknown = randomUUID()
      t.same(
        await foreignVersionIds(sql, ours.teamId, [one, other, two.toUpperCase(), unknown, 'x', other, one]),
        [other, unknown, 'x'],
      )
      t.same(await foreignVersionIds(sql, ours.teamId, []), [])
      t.equal(await isPromptVersionOf(sql, ours.teamId, one), true)
      t.equal(await isPromptVersionOf(sql, ours.teamId, other), false)
      t.equal(await isPromptVersionOf(sql, ours.teamId, 'nonsense'), false)
    },
  )
})
