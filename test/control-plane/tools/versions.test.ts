import { randomUUID } from 'node:crypto'
import t from 'tap'
import {
  commitToolVersion,
  listToolVersions,
  promoteToolAlias,
  readToolVersion,
} from '../../../shared/contract/tools.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { auditOf, epochOf, http, PUBLIC_URL, toolbox } from './scene.js'

const schema = {
  type: 'object',
  properties: { zulu: { type: 'string' }, alpha: { type: 'integer' } },
  required: ['zulu'],
}

t.test('committing a version: 201', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.editor.session
  const { create, commit } = toolbox(cp, as)
  const get = (id: string, version_number: string) =>
    cp.call(readToolVersion, { as: ours.viewer.session, params: { id, version_number } })

  t.test('the first version is served by production and staging, and says so', async t => {
    const { id } = await create('first')
    const { status, body } = await commit(id, { parametersSchema: schema, description: 'What it does' })
    t.equal(status, 201)
    const { aliases, ...version } = body
    t.match(version, {
      toolId: id,
      versionNumber: 1,
      description: 'What it does',
      changelog: null,
      source: 'api',
      parametersSchema: schema,
      executor: { type: 'client' },
      createdBy: ours.editor.userId,
    })
    t.same(
      aliases?.map(({ id: _, updatedAt: __, ...alias }) => alias),
      [
        { alias: 'production', versionId: version.id, versionNumber: 1 },
        { alias: 'staging', versionId: version.id, versionNumber: 1 },
      ],
    )
    t.notOk('warnings' in body)
    const second = await commit(id)
    t.equal(second.body.versionNumber, 2)
    t.notOk('aliases' in second.body, 'on the first commit only')
    t.same((await get(id, '1')).body, version, 'read back whole, without aliases')
  })

  t.test('a version keeps what was committed, in the order in which it was written', async t => {
    const { id } = await create('kept')
    const executor = http({
      url: `${PUBLIC_URL}/{{arg.zulu}}`,
      method: 'POST',
      headers: [{ name: 'X-B', value: 'b {{arg.alpha}}' }],
      query: [{ name: 'q', value: '{{ arg.zulu }}' }],
      argMapping: {},
      requestTransform: 'function transform(request) { return request }',
      responseTransform: 'const transform = response => response.body',
      failureWhen: 'function transform() { return null }',
      resultSchema: { type: ['object', 'null'] },
      resultSchemaSeverity: 'error',
    })
    const committed = await commit(id, {
      parametersSchema: schema,
      executor,
      changelog: 'why',
      description: 'd',
    })
    t.same(committed.body.executor, executor)
    const read = (await get(id, '1')).body
    t.equal(JSON.stringify(read.parametersSchema), JSON.stringify(schema))
    t.same(read.executor, executor)
    t.equal(read.changelog, 'why')
  })

  t.test('headers and query may be left out, argMapping be empty or absent', async t => {
    const { id } = await create('lean')
    const lean = await commit(id, { executor: { type: 'http', url: PUBLIC_URL, method: 'GET' } })
    t.same(lean.body.executor, { type: 'http', url: PUBLIC_URL, method: 'GET', headers: [], query: [] })
    t.equal((await commit(id, { executor: http({ argMapping: [] }) })).status, 201)
    t.equal((await commit(id, { executor: http({ argMapping: {} }) })).status, 201)
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      t.equal((await commit(id, { executor: http({ method }) })).status, 201, method)
    }
  })

  t.test('a changelog without a description is warned about', async t => {
    const { id } = await create('warned', 'the tool’s own')
    const warned = await commit(id, { changelog: 'faster' })
    t.same(warned.body.warnings, [
      'The version has a changelog and no description: the model reads the description of the tool.',
    ])
    t.equal((await commit(id, { changelog: 'faster', description: null })).body.warnings?.length, 1)
    t.notOk('warnings' in (await commit(id, { changelog: 'faster', description: 'd' })).body)
    t.notOk('warnings' in (await commit(id, { description: 'd' })).body)
    t.notOk('warnings' in (await commit(id)).body)
  })

  t.test('the author’s source is kept, api by default', async t => {
    const { id } = await create('sourced')
    t.equal((await commit(id, { source: 'dashboard' })).body.source, 'dashboard')
    t.equal((await commit(id, { source: 'api' })).body.source, 'api')
    t.equal((await commit(id)).body.source, 'api')
  })

  t.test('commits at once are numbered without a gap or a repeat, and one of them is the first', async t => {
    const { id } = await create('raced')
    const answers = await Promise.all(Array.from({ length: 8 }, () => commit(id)))
    t.same(
      answers.map(answer => answer.body.versionNumber).sort((a, b) => a - b),
      [1, 2, 3, 4, 5, 6, 7, 8],
    )
    t.same(
      answers.filter(answer => 'aliases' in answer.body).map(answer => answer.body.versionNumber),
      [1],
    )
  })
})

t.test('committing a version: 4xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.owner.session
  const { create, commit } = toolbox(cp, as)
  const { id } = await create('checked')
  const refusal = async (fields: object) => {
    const { status, error } = await commit(id, fields)
    t.equal(status, 400, JSON.stringify(fields))
    t.equal(error?.code, 'VALIDATION_ERROR')
    return error?.message
  }

  t.test('what the body must hold', async t => {
    t.equal(await refusal({ parametersSchema: undefined }), 'Required')
    t.equal(await refusal({ executor: undefined }), 'Required')
    t.equal(await refusal({ parametersSchema: [] }), 'Expected object, received array')
    t.equal(await refusal({ parametersSchema: 'x' }), 'Expected object, received string')
    t.equal(
      await refusal({ executor: { type: 'grpc' } }),
      "executor.type: Invalid discriminator value. Expected 'client' | 'http'",
    )
    t.equal(
      await refusal({ executor: {} }),
      "executor.type: Invalid discriminator value. Expected 'client' | 'http'",
    )
    t.equal(await refusal({ executor: { type: 'http', method: 'GET' } }), 'executor.url: Required')
    t.equal(await refusal({ executor: { type: 'http', url: PUBLIC_URL } }), 'executor.method: Required')
    t.match(await refusal({ executor: http({ method: 'TRACE' }) }), /^executor\.method: Invalid enum value/)
    t.match(
      await refusal({ executor: http({ resultSchemaSeverity: 'fatal' }) }),
      /^executor\.resultSchemaSeverity: Invalid enum value/,
    )
    t.equal(await refusal({ description: 5 }), 'Expected string, received number')
  })

  t.test('source code cannot be claimed', async t => {
    t.equal(
      await refusal({ source: 'code' }),
      "Invalid enum value. Expected 'dashboard' | 'api', received 'code'",
    )
  })

  t.test('a tool that is missing or another team’s is said before its executor is looked at', async t => {
    const executor = http({ url: 'http://127.0.0.1/' })
    const outsider = toolbox(cp, (await team(cp)).owner.session)
    for (const answer of [
      await outsider.commit(id, { executor }),
      await outsider.commit(randomUUID(), { executor }),
      await commit('nonsense', { executor }),
    ]) {
      t.equal(answer.status, 404)
      t.same(answer.error, { code: 'NOT_FOUND', message: 'Tool not found.' })
    }
  })

  t.test('a viewer and a team-scoped key may not, whatever they send', async t => {
    for (const caller of [ours.viewer.session, ours.viewer.personalKey, ours.teamKey]) {
      const { status, error } = await cp.call(commitToolVersion, {
        as: caller,
        params: { id },
        body: {} as never,
      })
      t.equal(status, 403)
      t.same(error, { code: 'FORBIDDEN', message: 'Insufficient role for this action.' })
    }
  })

  t.test('a refused version leaves nothing', async t => {
    const { body } = await cp.call(listToolVersions, { as, params: { id } })
    t.same(body, { data: [], total: 0, page: 1, limit: 20 })
    t.same(await auditOf(cp, ours.teamId, id).then(rows => rows.map(row => row.event)), ['tool_created'])
  })
})

t.test('the list of versions', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.owner.session
  const { create, commit } = toolbox(cp, as)
  const { id } = await create('listed')
  for (const changelog of ['one', 'two', 'three']) await commit(id, { changelog })
  const all = (await cp.call(listToolVersions, { as: ours.teamKey, params: { id } })).body
  t.match(all, { total: 3, page: 1, limit: 20 })
  t.same(
    all.data.map(version => [version.versionNumber, version.changelog, version.source]),
    [
      [3, 'three', 'api'],
      [2, 'two', 'api'],
      [1, 'one', 'api'],
    ],
  )
  t.same(
    Object.keys(all.data[0] ?? {}).sort(),
    ['changelog', 'createdAt', 'createdBy', 'description', 'id', 'source', 'toolId', 'versionNumber'],
    'without parametersSchema and executor',
  )
  const page = await cp.call(listToolVersions, { as, params: { id }, query: { page: '2', limit: '2' } })
  t.match(page.body, { data: [{ versionNumber: 1 }], total: 3, page: 2, limit: 2 })
  const above = await cp.call(listToolVersions, { as, params: { id }, query: { limit: '101' } })
  t.equal(above.error?.message, 'Number must be less than or equal to 100')
})

t.test('a version that a tool does not have is named in the 404', async t => {
  const cp = await startControlPlane(t)
  const { owner } = await team(cp)
  const as = owner.session
  const { create, commit } = toolbox(cp, as)
  const { id } = await create('short')
  await commit(id)
  for (const number of ['2', '0', '-1', '01', '1.0', 'abc', '2147483648', '99999999999999999999']) {
    const { status, error } = await cp.call(readToolVersion, { as, params: { id, version_number: number } })
    t.equal(status, 404)
    t.same(error, { code: 'NOT_FOUND', message: `Version ${number} not found for this tool.` })
  }
  const promoted = await cp.call(promoteToolAlias, {
    as,
    params: { id, alias: 'production' },
    body: { versionNumber: 2 },
  })
  t.equal(promoted.status, 404)
  t.same(promoted.error, { code: 'NOT_FOUND', message: 'Version 2 not found for this tool.' })
  const unknown = await cp.call(readToolVersion, { as, params: { id: randomUUID(), version_number: '1' } })
  t.same(unknown.error, { code: 'NOT_FOUND', message: 'Tool not found.' })
})

t.test('promoting an alias', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.editor.session
  const { create, commit } = toolbox(cp, as)
  const { id } = await create('promoted')
  const first = (await commit(id)).body
  const second = (await commit(id)).body
  const promote = (alias: string, body: object, caller = as) =>
    cp.call(promoteToolAlias, { as: caller, params: { id, alias }, body: body as never })

  t.test('moves it and keeps its id; a new name makes a new alias', async t => {
    const staging = first.aliases?.find(alias => alias.alias === 'staging')
    const moved = await promote('staging', { versionNumber: 2 })
    t.equal(moved.status, 200)
    const { updatedAt, ...row } = moved.body
    t.same(row, { id: staging?.id, alias: 'staging', versionId: second.id, versionNumber: 2 })
    t.ok(updatedAt >= (staging?.updatedAt ?? ''))
    const canary = (await promote('canary-2_x', { versionNumber: 1 })).body
    t.match(canary, { alias: 'canary-2_x', versionId: first.id, versionNumber: 1 })
    t.equal((await promote('canary-2_x', { versionNumber: 2 })).body.id, canary.id)
  })

  t.test('refuses names outside the pattern, bad numbers and callers without a role', async t => {
    for (const alias of ['Production', '-a', '_a', 'a b', 'a.b', 'x'.repeat(65)]) {
      const { status, error } = await promote(alias, { versionNumber: 1 })
      t.equal(status, 400, alias)
      t.equal(error?.message, 'An alias must match ^[a-z0-9][a-z0-9_-]{0,63}$.')
    }
    t.equal((await promote('production', {})).error?.message, 'Required')
    for (const versionNumber of [0, -1, 1.5, '1', 2 ** 31]) {
      t.equal((await promote('production', { versionNumber })).status, 400)
    }
    for (const caller of [ours.viewer.session, ours.teamKey]) {
      t.equal((await promote('production', { versionNumber: 2 }, caller)).status, 403)
    }
    const outsider = (await team(cp)).owner.session
    const foreign = await promote('production', { versionNumber: 2 }, outsider)
    t.same(foreign.error, { code: 'NOT_FOUND', message: 'Tool not found.' })
  })

  t.test('promotions of a new alias at once make one alias', async t => {
    const answers = await Promise.all([1, 2, 1, 2].map(versionNumber => promote('raced', { versionNumber })))
    t.equal(new Set(answers.map(answer => answer.body.id)).size, 1)
  })
})

t.test('commits and promotions are recorded and reach the proxies', async t => {
  const cp = await startControlPlane(t)
  const { teamId, editor } = await team(cp)
  const byKey = toolbox(cp, editor.personalKey)
  const { id } = await byKey.create('recorded')
  const before = await epochOf(cp, teamId)
  await byKey.commit(id, { source: 'dashboard' })
  await toolbox(cp, editor.session).commit(id)
  const promote = (alias: string, versionNumber: number) =>
    cp.call(promoteToolAlias, { as: editor.session, params: { id, alias }, body: { versionNumber } })
  await promote('production', 2)
  await promote('canary', 1)
  t.equal(await epochOf(cp, teamId), before + 4)
  const about = { toolId: id, toolName: 'recorded' }
  t.same((await auditOf(cp, teamId, id)).slice(1), [
    {
      event: 'tool_version_committed',
      actorId: editor.userId,
      metadata: { ...about, via: 'api', source: 'dashboard', versionNumber: 1 },
    },
    {
      event: 'tool_version_committed',
      actorId: editor.userId,
      metadata: { ...about, via: 'dashboard', source: 'api', versionNumber: 2 },
    },
    {
      event: 'tool_alias_promoted',
      actorId: editor.userId,
      metadata: { ...about, alias: 'production', versionNumber: 2, fromVersionNumber: 1 },
    },
    {
      event: 'tool_alias_promoted',
      actorId: editor.userId,
      metadata: { ...about, alias: 'canary', versionNumber: 1, fromVersionNumber: null },
    },
  ])
})
