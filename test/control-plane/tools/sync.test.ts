import { randomUUID } from 'node:crypto'
import t from 'tap'
import { deleteTool, listToolVersions, promoteToolAlias, syncTool } from '../../../shared/contract/tools.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { auditOf, epochOf, http, PUBLIC_URL, toolbox } from './scene.js'

const schema = { type: 'object', properties: { a: { type: 'string' }, b: { type: 'integer' } } }
const client = { type: 'client' as const }

t.test('sync', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.editor.personalKey
  const { create, commit, read } = toolbox(cp, as)
  const sync = (id: string, fields: object = {}, caller = as) =>
    cp.call(syncTool, {
      as: caller,
      params: { id },
      body: { parametersSchema: schema, executor: client, ...fields },
    })

  t.test('the first one commits version 1 for production, staging and the alias that it names', async t => {
    const { id } = await create('first')
    const { status, body } = await sync(id, { description: 'd', alias: 'canary' })
    t.equal(status, 200)
    t.match(body, {
      created: true,
      superseded: null,
      version: {
        toolId: id,
        versionNumber: 1,
        description: 'd',
        changelog: null,
        source: 'code',
        parametersSchema: schema,
        executor: client,
        createdBy: ours.editor.userId,
      },
    })
    t.same(
      body.version.aliases?.map(({ alias, versionNumber }) => [alias, versionNumber]),
      [
        ['production', 1],
        ['staging', 1],
        ['canary', 1],
      ],
    )
    t.same(
      (await auditOf(cp, ours.teamId, id)).map(row => row.event),
      ['tool_created', 'tool_version_committed'],
      'nothing was superseded',
    )
  })

  t.test('the same again writes nothing, whatever the order of keys', async t => {
    const { id } = await create('same')
    const executor = http({ method: 'POST', resultSchema: { type: 'object', title: 't' } })
    const first = (await sync(id, { executor })).body
    const epoch = await epochOf(cp, ours.teamId)
    const turned = {
      resultSchemaSeverity: 'warning',
      argMapping: {},
      method: 'POST',
      resultSchema: { title: 't', type: 'object' },
      url: PUBLIC_URL,
      type: 'http',
    }
    const parametersSchema = {
      properties: { b: { type: 'integer' }, a: { type: 'string' } },
      type: 'object',
    }
    for (const fields of [
      { executor },
      { executor: turned, parametersSchema },
      { executor, description: null },
    ]) {
      const again = (await sync(id, fields)).body
      const { aliases: _, ...version } = first.version
      t.same(again, { created: false, version, superseded: null })
    }
    t.equal(await epochOf(cp, ours.teamId), epoch, 'no proxy reloads')
    t.equal((await read(id)).versionCount, 1)
    t.equal((await auditOf(cp, ours.teamId, id)).length, 2)
  })

  t.test('a difference commits a version from code, moves the alias and says what it replaced', async t => {
    const { id } = await create('moved')
    await commit(id, { source: 'dashboard', parametersSchema: schema })
    const changes = [
      { description: 'new' },
      { description: 'new', parametersSchema: { type: 'object' } },
      { description: 'new', executor: http() },
      { description: 'new', executor: http({ headers: [{ name: 'a', value: 'b' }] }) },
      { description: 'new', executor: http({ resultSchema: {}, resultSchemaSeverity: 'error' }) },
    ]
    for (const [index, fields] of changes.entries()) {
      const { body } = await sync(id, fields)
      t.equal(body.created, true)
      t.equal(body.version.versionNumber, index + 2)
      t.notOk('aliases' in body.version)
      t.same(body.superseded, { versionNumber: index + 1, source: index === 0 ? 'dashboard' : 'code' })
    }
    t.match(await read(id), {
      executorType: 'http',
      aliases: [
        { alias: 'production', versionNumber: 6 },
        { alias: 'staging', versionNumber: 1 },
      ],
    })
    const about = { toolId: id, toolName: 'moved' }
    t.same((await auditOf(cp, ours.teamId, id)).slice(2, 4), [
      {
        event: 'tool_version_committed',
        actorId: ours.editor.userId,
        metadata: { ...about, via: 'sync', source: 'code', versionNumber: 2 },
      },
      {
        event: 'tool_version_superseded',
        actorId: ours.editor.userId,
        metadata: {
          ...about,
          alias: 'production',
          supersededVersionNumber: 1,
          newVersionNumber: 2,
          supersededSource: 'dashboard',
        },
      },
    ])
  })

  t.test('it is compared with what its alias serves, not with the latest version', async t => {
    const { id } = await create('alias')
    await sync(id, { description: 'one' })
    await sync(id, { description: 'two', alias: 'staging' })
    t.match(await sync(id, { description: 'one' }), {
      body: { created: false, version: { versionNumber: 1 } },
    })
    const back = (await sync(id, { description: 'one', alias: 'staging' })).body
    t.match(back, {
      created: true,
      version: { versionNumber: 3 },
      superseded: { versionNumber: 2, source: 'code' },
    })
    await cp.call(promoteToolAlias, { as, params: { id, alias: 'production' }, body: { versionNumber: 2 } })
    t.match((await sync(id, { description: 'one' })).body, {
      created: true,
      version: { versionNumber: 4 },
      superseded: { versionNumber: 2 },
    })
  })

  t.test('an alias that the tool does not have yet is made, and supersedes nothing', async t => {
    const { id } = await create('new-alias')
    await sync(id, { description: 'one' })
    const { body } = await sync(id, { description: 'one', alias: 'canary' })
    t.match(body, { created: true, version: { versionNumber: 2 } })
    t.equal(body.superseded, null)
    t.same((await read(id)).aliases, [
      { alias: 'production', versionNumber: 1 },
      { alias: 'canary', versionNumber: 2 },
      { alias: 'staging', versionNumber: 1 },
    ])
    t.match(
      (await auditOf(cp, ours.teamId, id)).map(row => row.event),
      ['tool_created', 'tool_version_committed', 'tool_version_committed'],
    )
  })

  t.test('equal syncs at once commit one version', async t => {
    const { id } = await create('raced')
    for (const description of ['first', 'second']) {
      const answers = await Promise.all(Array.from({ length: 6 }, () => sync(id, { description })))
      t.equal(answers.filter(answer => answer.body.created).length, 1, description)
      t.equal(new Set(answers.map(answer => answer.body.version.id)).size, 1)
    }
    t.equal((await read(id)).versionCount, 2)
  })

  t.test('syncs and commits at once never share a number, and the alias serves the last sync', async t => {
    const { id } = await create('mixed')
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        index % 2 === 0 ? sync(id, { description: `${index}` }) : commit(id, { description: `${index}` }),
      ),
    )
    t.same([...new Set(answers.map(answer => answer.status))].sort(), [200, 201])
    const { data } = (await cp.call(listToolVersions, { as, params: { id } })).body
    t.same(
      data.map(version => version.versionNumber),
      [8, 7, 6, 5, 4, 3, 2, 1],
    )
    const lastSync = data.find(version => version.source === 'code')
    t.equal((await read(id)).aliases[0]?.versionNumber, lastSync?.versionNumber)
  })

  t.test('what a commit refuses, it refuses, and nothing moves', async t => {
    const { id } = await create('refused')
    const { status, error } = await sync(id, { executor: http({ url: 'http://127.0.0.1/' }) })
    t.equal(status, 400)
    t.match(error?.message, /^The executor's URL cannot be called: /)
    t.equal((await sync(id, { executor: undefined })).error?.message, 'Required')
    t.equal((await sync(id, { alias: 'Bad' })).status, 400)
    t.equal((await read(id)).versionCount, 0)
    for (const caller of [ours.viewer.session, ours.teamKey])
      t.equal((await sync(id, {}, caller)).status, 403)
    const missing = { code: 'NOT_FOUND', message: 'Tool not found.' }
    t.same((await sync(id, {}, (await team(cp)).owner.session)).error, missing)
    t.same((await sync(randomUUID())).error, missing)
    await sync(id)
    await cp.call(deleteTool, { as, params: { id } })
    t.same((await sync(id)).error, missing)
  })
})
