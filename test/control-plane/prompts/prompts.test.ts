import { randomUUID } from 'node:crypto'
import t from 'tap'
import {
  createPrompt,
  deletePrompt,
  findPromptByName,
  listPromptAliases,
  listPrompts,
  listPromptVersions,
  readPrompt,
  readPromptVersion,
  renderPromptVersion,
  updatePrompt,
} from '../../../shared/contract/prompts.js'
import { startControlPlane } from '../../support/control-plane.js'
import { commit, storedPrompt, trailOf } from '../../support/prompts.js'
import { team } from '../../support/seed.js'

t.test('prompts: 2xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.editor.session

  t.test('a prompt is a container: name, description, team, creator', async t => {
    const made = await cp.call(createPrompt, { as, body: { name: 'Greeter', description: 'Says hello' } })
    t.equal(made.status, 201)
    const { id, createdAt, ...rest } = made.body
    t.same(rest, {
      name: 'Greeter',
      description: 'Says hello',
      teamId: ours.teamId,
      createdBy: ours.editor.userId,
    })
    t.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    t.same((await cp.call(readPrompt, { as: ours.viewer.session, params: { id } })).body, made.body)
    t.equal((await cp.call(createPrompt, { as, body: { name: 'Bare' } })).body.description, null)
  })

  t.test('names need not be unique: by-name takes the newest active prompt', async t => {
    const name = 'Twice / überall 100%'
    const older = (await cp.call(createPrompt, { as, body: { name } })).body
    const newer = (await cp.call(createPrompt, { as, body: { name } })).body
    const find = () => cp.call(findPromptByName, { as: ours.viewer.personalKey, params: { name } })
    t.same((await find()).body, newer)
    await cp.call(deletePrompt, { as, params: { id: newer.id } })
    t.same((await find()).body, older, 'a deleted prompt gives its name back')
    await cp.call(deletePrompt, { as, params: { id: older.id } })
    const gone = await find()
    t.equal(gone.status, 404)
    t.same(gone.error, { code: 'NOT_FOUND', message: 'Prompt not found.' })
  })

  t.test('PATCH changes what it names; null clears the description; only a new name is recorded', async t => {
    const { id } = (await cp.call(createPrompt, { as, body: { name: 'Old', description: 'd' } })).body
    const patch = async (body: object) => (await cp.call(updatePrompt, { as, params: { id }, body })).body
    t.match(await patch({ name: 'New' }), { name: 'New', description: 'd' })
    t.match(await patch({ description: 'e' }), { name: 'New', description: 'e' })
    t.match(await patch({ name: 'New', description: null }), { name: 'New', description: null })
    t.match((await cp.call(readPrompt, { as, params: { id } })).body, { name: 'New', description: null })
    t.same(
      (await trailOf(cp, id)).map(({ event, metadata, actorId }) => [event, metadata, actorId]),
      [
        ['prompt_created', { name: 'Old' }, ours.editor.userId],
        ['prompt_renamed', { from: 'Old', to: 'New' }, ours.editor.userId],
      ],
    )
  })

  t.test('a deleted prompt is absent from lists and answers 404 everywhere; its history is kept', async t => {
    const { promptId: id, versionIds } = await storedPrompt(cp, as, { name: 'Gone', templates: ['a'] })
    t.equal((await cp.call(deletePrompt, { as, params: { id } })).status, 204)
    const again = await cp.call(deletePrompt, { as, params: { id } })
    t.equal(again.status, 404)
    t.same(again.error, { code: 'NOT_FOUND', message: 'Prompt not found.' })
    const reads = [
      await cp.call(readPrompt, { as, params: { id } }),
      await cp.call(listPromptVersions, { as, params: { id } }),
      await cp.call(readPromptVersion, { as, params: { id, version_number: '1' } }),
      await cp.call(listPromptAliases, { as, params: { id } }),
      await cp.call(renderPromptVersion, { as, params: { id }, body: {} }),
      await cp.call(updatePrompt, { as, params: { id }, body: { name: 'Back' } }),
    ]
    for (const answer of reads) t.equal(answer.text, again.text)
    t.equal((await cp.call(listPrompts, { as, query: { search: 'Gone' } })).body.total, 0)
    const kept = await cp.deps.sql`select id from prompt_versions where prompt_id = ${id}`
    t.equal(kept[0]?.id, versionIds[0])
    t.same((await trailOf(cp, id)).at(-1)?.event, 'prompt_deleted')
  })
})

t.test('the list of prompts', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const theirs = await team(cp)
  const as = ours.owner.session
  const names = ['Alpha', 'beta', '100% sure', 'under_score', 'back\\slash', 'ALPHABET']
  for (const name of names) await cp.call(createPrompt, { as, body: { name, description: 'alpha' } })
  await cp.call(createPrompt, { as: theirs.owner.session, body: { name: 'Alpha' } })
  const list = async (query: object) => (await cp.call(listPrompts, { as: ours.teamKey, query })).body
  const found = async (search: string) => (await list({ search })).data.map(prompt => prompt.name)

  t.test('is newest first, paginated, with the full filtered total; items have four fields', async t => {
    const whole = await list({})
    t.same(
      whole.data.map(prompt => prompt.name),
      [...names].reverse(),
    )
    t.match(whole, { total: 6, page: 1, limit: 20 })
    t.same(Object.keys(whole.data[0] ?? {}).sort(), ['createdAt', 'description', 'id', 'name'])
    const second = await list({ page: '2', limit: '4' })
    t.same([second.data.map(prompt => prompt.name), second.total], [['beta', 'Alpha'], 6])
    t.match(await list({ page: '9' }), { data: [], total: 6, page: 9 })
    t.match(await list({ search: 'alpha', limit: '1' }), { total: 2, data: [{ name: 'ALPHABET' }] })
  })

  t.test('search is a part of the name in any letter case, and takes wildcards as they stand', async t => {
    t.same(await found('LPHA'), ['ALPHABET', 'Alpha'])
    t.same(await found('%'), ['100% sure'])
    t.same(await found('_'), ['under_score'])
    t.same(await found('\\'), ['back\\slash'])
    t.same(await found('nothing like it'), [])
    t.equal((await found('')).length, 6)
  })

  t.test('limit is at most 100, page at least 1', async t => {
    const refusal = async (query: object) => (await cp.call(listPrompts, { as, query: query as never })).error
    t.same(await refusal({ limit: '101' }), {
      code: 'VALIDATION_ERROR',
      message: 'Number must be less than or equal to 100',
    })
    t.equal((await refusal({ page: '0' }))?.message, 'Number must be greater than or equal to 1')
    t.equal((await refusal({ limit: 'ten' }))?.code, 'VALIDATION_ERROR')
    t.equal((await cp.call(listPrompts, { as, query: { limit: '100' } })).status, 200)
  })
})

t.test('prompts: 4xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const theirs = await team(cp)
  const as = ours.owner.session
  const { id } = (await cp.call(createPrompt, { as, body: { name: 'Ours' } })).body

  t.test('name is required, 1 to 200 characters, without NUL', async t => {
    const refusal = async (body: object) => (await cp.call(createPrompt, { as, body: body as never })).error
    t.same(await refusal({}), { code: 'VALIDATION_ERROR', message: 'Required' })
    t.equal((await refusal({ name: ' ' }))?.message, 'String must contain at least 1 character(s)')
    t.equal(
      (await refusal({ name: 'x'.repeat(201) }))?.message,
      'String must contain at most 200 character(s)',
    )
    t.equal((await refusal({ name: 5 }))?.message, 'Expected string, received number')
    t.equal((await refusal({ name: 'a\u0000b' }))?.message, 'Text must not contain the NUL character.')
    t.equal((await refusal({ name: 'a', description: '\u0000' }))?.code, 'VALIDATION_ERROR')
    const named = await cp.call(findPromptByName, { as, params: { name: 'a\u0000b' } })
    t.equal(named.status, 400)
  })

  t.test('an empty PATCH is refused', async t => {
    for (const body of [{}, { model: 'x' }]) {
      const { status, error } = await cp.call(updatePrompt, { as, params: { id }, body: body as never })
      t.equal(status, 400)
      t.same(error, {
        code: 'VALIDATION_ERROR',
        message: 'At least one of name or description must be provided.',
      })
    }
    t.equal((await cp.call(updatePrompt, { as, params: { id }, body: { name: '' } })).status, 400)
  })

  t.test('a viewer and a team-scoped key may read and not write', async t => {
    for (const who of [ours.viewer.session, ours.viewer.personalKey, ours.teamKey]) {
      const refusals = [
        await cp.call(createPrompt, { as: who, body: { name: 'No' } }),
        await cp.call(updatePrompt, { as: who, params: { id }, body: { name: 'No' } }),
        await cp.call(deletePrompt, { as: who, params: { id } }),
      ]
      for (const { status, error } of refusals) {
        t.equal(status, 403)
        t.same(error, { code: 'FORBIDDEN', message: 'Insufficient role for this action.' })
      }
      t.equal((await cp.call(readPrompt, { as: who, params: { id } })).status, 200)
    }
  })

  t.test('another team’s prompt answers byte for byte like an unknown one', async t => {
    const outsider = theirs.owner.session
    for (const missing of [randomUUID(), 'nonsense']) {
      for (const [endpoint, body] of [
        [readPrompt, undefined],
        [updatePrompt, { name: 'Taken' }],
        [deletePrompt, undefined],
      ] as const) {
        const ask = (promptId: string) =>
          cp.call(endpoint as typeof updatePrompt, {
            as: outsider,
            params: { id: promptId },
            ...(body !== undefined && { body }),
          })
        const [foreign, unknown] = [await ask(id), await ask(missing)]
        t.equal(foreign.status, 404)
        t.equal(foreign.text, unknown.text)
      }
    }
    const named = await cp.call(findPromptByName, { as: outsider, params: { name: 'Ours' } })
    t.same(named.error, { code: 'NOT_FOUND', message: 'Prompt not found.' })
    t.equal((await cp.call(readPrompt, { as, params: { id } })).body.name, 'Ours')
  })
})

t.test('every change of a prompt moves the team’s epoch, so that proxies ask again', async t => {
  const cp = await startControlPlane(t)
  const { owner, teamId } = await team(cp)
  const as = owner.session
  const epoch = async () =>
    Number((await cp.deps.sql`select epoch from teams where id = ${teamId}`)[0]?.epoch)
  let last = await epoch()
  const moved = async (what: string) => {
    const now = await epoch()
    t.ok(now > last, what)
    last = now
  }
  const { id } = (await cp.call(createPrompt, { as, body: { name: 'P' } })).body
  await moved('created')
  await commit(cp, as, id)
  await moved('version committed')
  await cp.call(updatePrompt, { as, params: { id }, body: { name: 'Q' } })
  await moved('renamed')
  await cp.call(deletePrompt, { as, params: { id } })
  await moved('deleted')
})
