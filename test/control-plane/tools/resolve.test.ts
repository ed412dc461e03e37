import t from 'tap'
import {
  resolveToolReferences,
  resolveToolVersions,
  toolDefinition,
} from '../../../control-plane/tools/resolve.js'
import { deleteTool, promoteToolAlias, resolveTools, updateTool } from '../../../shared/contract/tools.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { http, toolbox } from './scene.js'

t.test('resolving tools', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.owner.session
  const { create, commit } = toolbox(cp, as)
  const weather = await create('get_weather', 'The tool’s own')
  const schema = { type: 'object', properties: { z: {}, a: {} } }
  await commit(weather.id, { parametersSchema: schema })
  await commit(weather.id, { description: 'Second', executor: http() })
  const mail = await create('send_mail')
  await commit(mail.id)
  await create('shell')
  const resolve = (refs: object[], caller = ours.viewer.personalKey) =>
    cp.call(resolveTools, { as: caller, body: { refs: refs as never } })

  t.test('answers in the order of the references, production unless told otherwise', async t => {
    const { status, body } = await resolve([
      { name: 'send_mail' },
      { name: 'get_weather', version: 2 },
      { name: 'get_weather' },
      { name: 'get_weather', alias: 'staging' },
      { name: 'get_weather', alias: null, version: null },
    ])
    t.equal(status, 200)
    t.same(
      body.data.map(({ name, toolId, versionNumber, executorType }) => [
        name,
        toolId,
        versionNumber,
        executorType,
      ]),
      [
        ['send_mail', mail.id, 1, 'client'],
        ['get_weather', weather.id, 2, 'http'],
        ['get_weather', weather.id, 1, 'client'],
        ['get_weather', weather.id, 1, 'client'],
        ['get_weather', weather.id, 1, 'client'],
      ],
    )
    t.same((await resolve([])).body, { data: [] })
    t.equal((await resolve([{ name: 'send_mail' }], ours.teamKey)).status, 200)
  })

  t.test(
    'a definition is an item of tools: the version’s description, else the tool’s, else none',
    async t => {
      const { data } = (
        await resolve([{ name: 'get_weather' }, { name: 'get_weather', version: 2 }, { name: 'send_mail' }])
      ).body
      t.same(
        data.map(tool => tool.definition),
        [
          {
            type: 'function',
            function: { name: 'get_weather', description: 'The tool’s own', parameters: schema },
          },
          {
            type: 'function',
            function: { name: 'get_weather', description: 'Second', parameters: { type: 'object' } },
          },
          { type: 'function', function: { name: 'send_mail', parameters: { type: 'object' } } },
        ],
      )
      t.equal(
        JSON.stringify(data[0]?.definition.function.parameters),
        JSON.stringify(schema),
        'in its own order',
      )
      const blank = toolDefinition('a', 'own', { description: ' ', parametersSchema: {} })
      t.equal(blank.function.description, 'own')
    },
  )

  t.test('what is missing is a 404 that names it', async t => {
    const missing = async (ref: object) => {
      const { status, error } = await resolve([{ name: 'send_mail' }, ref])
      t.equal(status, 404)
      t.equal(error?.code, 'NOT_FOUND')
      return error?.message
    }
    t.equal(await missing({ name: 'nobody' }), 'Tool not found.')
    t.equal(
      await missing({ name: 'get_weather', alias: 'canary' }),
      "Tool 'get_weather' has no alias 'canary'.",
    )
    t.equal(await missing({ name: 'get_weather', version: 9 }), "Tool 'get_weather' has no version 9.")
    t.equal(await missing({ name: 'shell' }), "Tool 'shell' has no alias 'production'.")
    const theirs = await team(cp)
    const foreign = await resolve([{ name: 'get_weather' }], theirs.viewer.session)
    t.same(foreign.error, { code: 'NOT_FOUND', message: 'Tool not found.' })
  })

  t.test('references are checked', async t => {
    const refusal = async (refs: unknown) => {
      const { status, error } = await resolve(refs as object[])
      t.equal(status, 400)
      return error?.message
    }
    t.equal(
      await refusal([{ name: 'get_weather', alias: 'production', version: 1 }]),
      'refs.0: Provide at most one of alias or version.',
    )
    t.equal(await refusal(undefined), 'Required')
    t.equal(await refusal([{}]), 'refs.0.name: Required')
    t.equal(
      await refusal([{ name: 'a', version: 0 }]),
      'refs.0.version: Number must be greater than or equal to 1',
    )
    t.equal(await refusal([{ name: 'a', version: '1' }]), 'refs.0.version: Expected number, received string')
    t.equal(await refusal(Array(129).fill({ name: 'a' })), 'Array must contain at most 128 element(s)')
    t.equal((await resolve([{ name: 'get_weather' }], ours.virtualKey)).status, 401)
  })

  t.test('a moved alias, a new name and a deleted tool count from the next call', async t => {
    const { id } = await create('moving')
    await commit(id)
    await commit(id)
    await cp.call(promoteToolAlias, { as, params: { id, alias: 'production' }, body: { versionNumber: 2 } })
    t.equal((await resolve([{ name: 'moving' }])).body.data[0]?.versionNumber, 2)
    await cp.call(updateTool, { as, params: { id }, body: { name: 'moved' } })
    t.equal((await resolve([{ name: 'moving' }])).status, 404)
    t.equal((await resolve([{ name: 'moved' }])).body.data[0]?.definition.function.name, 'moved')
    await cp.call(deleteTool, { as, params: { id } })
    t.equal((await resolve([{ name: 'moved' }])).status, 404)
  })

  t.test('by name for calls and by id for bindings: found or missing, each in its place', async t => {
    const { sql } = cp.deps
    const { teamId } = ours
    const byName = await resolveToolReferences(sql, teamId, [
      { name: 'nobody', alias: null, version: null },
      { name: 'get_weather', alias: null, version: 2 },
      { name: 'get_weather', alias: 'a"b\\c', version: null },
      { name: 'get_weather\0', alias: null, version: null },
      { name: 'get_weather', alias: 'staging\0', version: null },
    ])
    t.same(byName[0], { missing: 'Tool not found.' })
    t.same(byName[3], { missing: 'Tool not found.' }, 'no text of PostgreSQL has a NUL')
    t.same(byName[4], { missing: "Tool 'get_weather' has no alias 'staging\0'." })
    t.match(byName[1], {
      toolId: weather.id,
      versionNumber: 2,
      executorType: 'http',
      versionId: /^[0-9a-f-]{36}$/,
    })
    t.same(byName[2], { missing: "Tool 'get_weather' has no alias 'a\"b\\c'." })
    t.same(await resolveToolReferences(sql, teamId, []), [])
    const gone = await create('gone')
    await commit(gone.id)
    await cp.call(deleteTool, { as, params: { id: gone.id } })
    const byId = await resolveToolVersions(sql, teamId, [
      { toolId: gone.id, alias: 'production', versionNumber: null },
      { toolId: mail.id, alias: 'production', versionNumber: null },
      { toolId: weather.id, alias: null, versionNumber: 2 },
      { toolId: weather.id, alias: null, versionNumber: 3 },
      { toolId: weather.id, alias: 'canary', versionNumber: null },
      { toolId: weather.id, alias: null, versionNumber: null },
    ])
    t.same(
      byId.map(tool => tool && [tool.name, tool.versionNumber]),
      [null, ['send_mail', 1], ['get_weather', 2], null, null, null],
    )
    t.same(await resolveToolVersions(sql, teamId, []), [])
  })
})
