import { randomUUID } from 'node:crypto'
import t from 'tap'
import {
  createTool,
  deleteTool,
  listTools,
  listToolVersions,
  promoteToolAlias,
  readTool,
  resolveTools,
  updateTool,
} from '../../../shared/contract/tools.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { auditOf, epochOf, http, toolbox } from './scene.js'

t.test('tools: 2xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.editor.session
  const { create, commit, read } = toolbox(cp, as)

  t.test('a new tool is a name only', async t => {
    const made = await cp.call(createTool, { as, body: { name: 'get_weather', description: 'Weather' } })
    t.equal(made.status, 201)
    const { id, createdAt, ...fields } = made.body
    t.same(fields, {
      teamId: ours.teamId,
      name: 'get_weather',
      description: 'Weather',
      createdBy: ours.editor.userId,
      callable: false,
      versionCount: 0,
      latestVersionNumber: null,
      executorType: null,
      aliases: [],
    })
    t.same(await read(id), { id, createdAt, ...fields })
    t.equal((await create('no-description')).description, null)
  })

  t.test('the first commit makes it callable; its fields follow its versions and aliases', async t => {
    const { id } = await create('follows')
    await commit(id)
    t.match(await read(id), {
      callable: true,
      versionCount: 1,
      latestVersionNumber: 1,
      executorType: 'client',
      aliases: [
        { alias: 'production', versionNumber: 1 },
        { alias: 'staging', versionNumber: 1 },
      ],
    })
    await commit(id, { executor: http() })
    t.match(await read(id), { versionCount: 2, latestVersionNumber: 2, executorType: 'client' })
    const promote = (alias: string, versionNumber: number) =>
      cp.call(promoteToolAlias, { as, params: { id, alias }, body: { versionNumber } })
    await promote('beta', 2)
    await promote('production', 2)
    const moved = await read(id)
    t.equal(moved.executorType, 'http', 'read from the version that production serves')
    t.same(moved.aliases, [
      { alias: 'production', versionNumber: 2 },
      { alias: 'beta', versionNumber: 2 },
      { alias: 'staging', versionNumber: 1 },
    ])
  })

  t.test('a tool with versions and no production alias is not callable until one is promoted', async t => {
    const { id } = await create('bare')
    await commit(id)
    await cp.deps.sql`delete from tool_aliases where tool_id = ${id} and alias = 'production'`
    t.match(await read(id), { callable: false, versionCount: 1, executorType: null })
    await cp.call(promoteToolAlias, { as, params: { id, alias: 'production' }, body: { versionNumber: 1 } })
    t.match(await read(id), { callable: true, executorType: 'client' })
  })

  t.test('name and description change, each alone; null clears the description', async t => {
    const { id } = await create('before', 'Before')
    const patch = async (body: object) => (await cp.call(updateTool, { as, params: { id }, body })).body
    t.match(await patch({ name: 'after' }), { name: 'after', description: 'Before' })
    t.match(await patch({ description: 'After' }), { name: 'after', description: 'After' })
    t.match(await patch({ name: 'after', description: null }), { name: 'after', description: null })
    t.match(await read(id), { name: 'after', description: null })
  })

  t.test('a deleted tool is gone and releases its name; its versions and aliases are kept', async t => {
    const { id } = await create('passing')
    await commit(id)
    const gone = await cp.call(deleteTool, { as, params: { id } })
    t.equal(gone.status, 204)
    t.equal(gone.text, '')
    const missing = { code: 'NOT_FOUND', message: 'Tool not found.' }
    t.same((await cp.call(readTool, { as, params: { id } })).error, missing)
    t.same((await cp.call(deleteTool, { as, params: { id } })).error, missing)
    t.same((await cp.call(updateTool, { as, params: { id }, body: { name: 'x' } })).error, missing)
    t.same((await cp.call(listToolVersions, { as, params: { id } })).error, missing)
    t.same((await commit(id)).error, missing)
    t.same((await cp.call(resolveTools, { as, body: { refs: [{ name: 'passing' }] } })).error, missing)
    t.notMatch((await cp.call(listTools, { as })).text, id)
    const { sql } = cp.deps
    t.equal((await sql`select 1 from tool_versions where tool_id = ${id}`).length, 1)
    t.equal((await sql`select 1 from tool_aliases where tool_id = ${id}`).length, 2)
    const again = await cp.call(createTool, { as, body: { name: 'passing' } })
    t.equal(again.status, 201)
    t.equal((await read(again.body.id)).versionCount, 0)
  })

  t.test('another team may have a tool of the same name', async t => {
    const theirs = await team(cp)
    await create('shared')
    const other = await cp.call(createTool, { as: theirs.owner.session, body: { name: 'shared' } })
    t.equal(other.status, 201)
  })
})

t.test('the list of tools', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const theirs = await team(cp)
  const as = ours.owner.session
  const { create, commit, read } = toolbox(cp, as)
  await toolbox(cp, theirs.owner.session).create('get_theirs')
  const names = ['get_weather', 'Get-Time', 'send_mail', 'get100', 'GET_x']
  for (const name of names) await create(name)
  const list = async (query: object) => (await cp.call(listTools, { as: ours.teamKey, query })).body

  t.test('is newest first, paged, with the full count', async t => {
    const all = await list({})
    t.match(all, { total: 5, page: 1, limit: 20 })
    t.same(
      all.data.map(tool => tool.name),
      [...names].reverse(),
    )
    const second = await list({ page: '2', limit: '2' })
    t.match(second, { total: 5, page: 2, limit: 2 })
    t.same(
      second.data.map(tool => tool.name),
      ['send_mail', 'Get-Time'],
    )
    t.match(await list({ page: '9' }), { data: [], total: 5 })
  })

  t.test('is searched by a part of the name, in any letter case, and counts what it finds', async t => {
    const found = await list({ search: 'gEt', limit: '1' })
    t.match(found, { total: 4, data: [{ name: 'GET_x' }] })
    t.equal((await list({ search: 't_' })).total, 2, 'an underscore is no wildcard')
    t.equal((await list({ search: '%' })).total, 0)
    t.equal((await list({ search: '  ' })).total, 5, 'blank: no filter')
    t.equal((await list({ search: 'theirs' })).total, 0)
  })

  t.test('has the fields of a single tool', async t => {
    const { id } = (await list({ search: 'send_mail' })).data[0] ?? { id: '' }
    await commit(id)
    t.same((await list({ search: 'send_mail' })).data[0], await read(id))
  })

  t.test('refuses a page or limit out of bounds', async t => {
    const refusal = async (query: object) => (await cp.call(listTools, { as, query })).error?.message
    t.equal(await refusal({ limit: '101' }), 'Number must be less than or equal to 100')
    t.equal(await refusal({ limit: '0' }), 'Number must be greater than or equal to 1')
    t.equal(await refusal({ page: '0' }), 'Number must be greater than or equal to 1')
    t.equal((await cp.call(listTools, { as, query: { search: '\u0000' } })).status, 400)
  })
})

t.test('tools: 4xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.owner.session
  const { create } = toolbox(cp, as)

  t.test('a name outside the pattern is refused', async t => {
    const { id } = await create('good')
    const message = 'A tool’s name must match ^[a-zA-Z0-9_-]{1,64}$.'
    for (const name of ['', 'a b', 'a.b', 'ä', 'a\n', 'a\u0000', 'x'.repeat(65)]) {
      const made = await cp.call(createTool, { as, body: { name } })
      t.equal(made.status, 400)
      t.same(made.error, { code: 'VALIDATION_ERROR', message })
      const renamed = await cp.call(updateTool, { as, params: { id }, body: { name } })
      t.same(renamed.error, { code: 'VALIDATION_ERROR', message })
    }
    t.equal((await cp.call(createTool, { as, body: { name: 'x'.repeat(64) } })).status, 201)
    const required = await cp.call(createTool, { as, body: {} as never })
    t.same(required.error, { code: 'VALIDATION_ERROR', message: 'Required' })
    const nul = await cp.call(createTool, { as, body: { name: 'nul', description: 'a\u0000' } })
    t.equal(nul.status, 400)
  })

  t.test('an active tool holds its name', async t => {
    await create('taken')
    const { id } = await create('free')
    const taken = { code: 'TOOL_NAME_TAKEN', message: "A tool named 'taken' already exists." }
    const made = await cp.call(createTool, { as, body: { name: 'taken' } })
    t.equal(made.status, 409)
    t.same(made.error, taken)
    const renamed = await cp.call(updateTool, { as, params: { id }, body: { name: 'taken' } })
    t.equal(renamed.status, 409)
    t.same(renamed.error, taken)
    t.equal((await cp.call(createTool, { as, body: { name: 'Taken' } })).status, 201, 'names have case')
    const own = await cp.call(updateTool, { as, params: { id }, body: { name: 'free' } })
    t.equal(own.status, 200, 'a tool may keep its own name')
  })

  t.test('two creates of one name at once make one tool', async t => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => cp.call(createTool, { as, body: { name: 'raced' } })),
    )
    t.same(answers.map(answer => answer.status).sort(), [201, 409, 409, 409, 409, 409])
    t.equal((await cp.call(listTools, { as, query: { search: 'raced' } })).body.total, 1)
  })

  t.test('a change of nothing is refused', async t => {
    const { id } = await create('still')
    for (const body of [{}, { other: 1 } as object]) {
      const { status, error } = await cp.call(updateTool, { as, params: { id }, body })
      t.equal(status, 400)
      t.same(error, {
        code: 'VALIDATION_ERROR',
        message: 'At least one of name or description must be provided.',
      })
    }
  })

  t.test('another team’s tool answers byte for byte like a missing one', async t => {
    const { id } = await create('ours-alone')
    const outsider = (await team(cp)).owner.session
    for (const missing of [randomUUID(), 'nonsense']) {
      for (const endpoint of [readTool, deleteTool, listToolVersions]) {
        const theirs = await cp.call(endpoint, { as: outsider, params: { id } })
        t.equal(theirs.status, 404)
        t.equal(theirs.text, (await cp.call(endpoint, { as: outsider, params: { id: missing } })).text)
        t.same(theirs.error, { code: 'NOT_FOUND', message: 'Tool not found.' })
      }
    }
    t.equal((await cp.call(readTool, { as, params: { id } })).status, 200)
  })

  t.test('a viewer and a team-scoped key read and do not write', async t => {
    const { id } = await create('guarded')
    const refused = { code: 'FORBIDDEN', message: 'Insufficient role for this action.' }
    for (const caller of [ours.viewer.session, ours.viewer.personalKey, ours.teamKey]) {
      t.same((await cp.call(createTool, { as: caller, body: { name: 'x' } })).error, refused)
      t.same((await cp.call(updateTool, { as: caller, params: { id }, body: { name: 'x' } })).error, refused)
      t.same((await cp.call(deleteTool, { as: caller, params: { id } })).error, refused)
      t.equal((await cp.call(readTool, { as: caller, params: { id } })).status, 200)
      t.equal((await cp.call(listTools, { as: caller })).status, 200)
    }
    t.equal((await cp.call(readTool, { as: ours.virtualKey, params: { id } })).status, 401)
  })
})

t.test('what happens to a tool is recorded and reaches the proxies', async t => {
  const cp = await startControlPlane(t)
  const { teamId, editor } = await team(cp)
  const as = editor.personalKey
  const { id } = await toolbox(cp, as).create('first')
  let epoch = await epochOf(cp, teamId)
  const moved = async (wanted: boolean, name: string) => {
    const now = await epochOf(cp, teamId)
    t.equal(now > epoch, wanted, name)
    epoch = now
  }
  await cp.call(updateTool, { as, params: { id }, body: { description: 'd' } })
  await moved(true, 'a description is part of a definition')
  await cp.call(updateTool, { as, params: { id }, body: { name: 'first' } })
  await cp.call(updateTool, { as, params: { id }, body: { name: 'second' } })
  await moved(true, 'a renamed tool')
  await cp.call(updateTool, { as, params: { id }, body: {} })
  await moved(false, 'a refused change')
  await cp.call(deleteTool, { as, params: { id } })
  await moved(true, 'a deleted tool')
  t.same(await auditOf(cp, teamId, id), [
    { event: 'tool_created', actorId: editor.userId, metadata: { toolId: id, name: 'first' } },
    {
      event: 'tool_renamed',
      actorId: editor.userId,
      metadata: { toolId: id, from: 'first', to: 'second' },
    },
    { event: 'tool_deleted', actorId: editor.userId, metadata: { toolId: id, name: 'second' } },
  ])
})
