import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createConnection } from '../../../shared/contract/connections.js'
import {
  createModel,
  deleteModel,
  getModel,
  listModels,
  updateModel,
} from '../../../shared/contract/models.js'
import { createVirtualKey } from '../../../shared/contract/virtual-keys.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { type SeededTeam, team } from '../../support/seed.js'

const FIELDS =
  `connectionId contextWindow created createdAt id maxOutputTokens modelId object owned_by pricing provider
  publicName updatedAt upstreamModel`
    .trim()
    .split(/\s+/)

async function connect(cp: ControlPlane, { owner }: SeededTeam, provider: 'openai' | 'anthropic' = 'openai') {
  const body = { provider, label: provider, apiKey: 'sk-test-0000' }
  return (await cp.call(createConnection, { as: owner.session, body })).body.id
}

t.test('models: 2xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.admin.session
  const connectionId = await connect(cp, ours)
  const create = (body: Record<string, unknown>) =>
    cp.call(createModel, {
      as,
      body: { connectionId, upstreamModel: 'gpt-4o-mini-2024-07-18', ...body } as never,
    })

  t.test('a model object is the same on create, fetch, list and patch', async t => {
    const created = await create({ publicName: 'same' })
    t.equal(created.status, 201)
    t.same(Object.keys(created.body).sort(), FIELDS)
    const { modelId } = created.body
    t.match(created.body, {
      id: 'same',
      publicName: 'same',
      object: 'model',
      owned_by: 'openai',
      provider: 'openai',
    })
    t.equal(created.body.created, Math.floor(Date.parse(created.body.createdAt) / 1000))
    t.same((await cp.call(getModel, { as, params: { id: modelId } })).body, created.body)
    const list = await cp.call(listModels, { as: ours.viewer.personalKey })
    t.equal(list.body.object, 'list')
    t.same(list.body.data, [created.body])
    const patched = await cp.call(updateModel, { as, params: { id: 'same' }, body: { maxOutputTokens: 9 } })
    t.same(Object.keys(patched.body).sort(), FIELDS)
  })

  t.test('a price left out is filled from the table when the upstream model is known', async t => {
    const known = (await create({ publicName: 'known' })).body
    t.same(known.pricing, {
      inputPerMTok: 0.15,
      outputPerMTok: 0.6,
      cachedInputPerMTok: 0.075,
      cacheWritePerMTok: null,
    })
    t.equal(known.maxOutputTokens, 16_384)
    t.equal(known.contextWindow, 128_000)
    const unknown = (await create({ publicName: 'unknown', upstreamModel: 'my-own-model' })).body
    t.match(unknown, { pricing: null, maxOutputTokens: null, contextWindow: null })
  })

  t.test('a given price wins; null says that there is none', async t => {
    const pricing = { inputPerMTok: 0, outputPerMTok: 1.5 }
    const priced = (await create({ publicName: 'priced', pricing, maxOutputTokens: null })).body
    t.same(priced.pricing, { ...pricing, cachedInputPerMTok: null, cacheWritePerMTok: null })
    t.equal(priced.maxOutputTokens, null)
    t.equal((await create({ publicName: 'unpriced', pricing: null })).body.pricing, null)
    const cleared = await cp.call(updateModel, { as, params: { id: 'priced' }, body: { pricing: null } })
    t.equal(cleared.body.pricing, null)
  })

  t.test('another upstream model brings its own table price; a price that somebody set stays', async t => {
    await create({ publicName: 'swapped' })
    const pricing = { inputPerMTok: 7, outputPerMTok: 8 }
    await create({ publicName: 'custom', pricing })
    const swap = (id: string) =>
      cp.call(updateModel, { as, params: { id }, body: { upstreamModel: 'gpt-4o' } })
    t.equal((await swap('swapped')).body.pricing?.inputPerMTok, 2.5)
    const kept = (await swap('custom')).body
    t.equal(kept.pricing?.inputPerMTok, 7)
    t.equal(kept.upstreamModel, 'gpt-4o')
  })

  t.test('a model is addressed by uuid or by percent-encoded publicName', async t => {
    const publicName = 'meta/llama:3.3_70b-v1'
    const { modelId } = (await create({ publicName })).body
    const path = `/api/v1/gateway/models/${encodeURIComponent(publicName)}`
    t.match(path, '%2F')
    const headers = { authorization: `Bearer ${ours.viewer.personalKey.key}` }
    const byName = await cp.app.inject({ method: 'GET', url: path, headers })
    t.equal(byName.json().modelId, modelId)
    const renamed = await cp.call(updateModel, {
      as,
      params: { id: publicName },
      body: { publicName: 'llama' },
    })
    t.equal(renamed.body.modelId, modelId)
    t.equal((await cp.call(deleteModel, { as, params: { id: 'llama' } })).status, 204)
    t.equal((await cp.call(getModel, { as, params: { id: modelId } })).status, 404)
  })

  t.test('a model moves to another connection of the team', async t => {
    const other = await connect(cp, ours, 'anthropic')
    await create({ publicName: 'moving' })
    const moved = await cp.call(updateModel, { as, params: { id: 'moving' }, body: { connectionId: other } })
    t.match(moved.body, { connectionId: other, provider: 'anthropic', owned_by: 'anthropic' })
  })
})

t.test('a virtual key lists what it may call: allowed models of allowed providers', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.owner.session
  const openai = await connect(cp, ours)
  const anthropic = await connect(cp, ours, 'anthropic')
  const models = { cheap: openai, strong: openai, claude: anthropic }
  for (const [publicName, connectionId] of Object.entries(models))
    await cp.call(createModel, { as, body: { publicName, connectionId, upstreamModel: 'gpt-4o' } })
  const seen = async (scope: object) => {
    const { key } = (await cp.call(createVirtualKey, { as, body: { name: 'scoped', ...scope } })).body
    const { body } = await cp.call(listModels, { as: { key } })
    return body.data.map(model => model.id).sort()
  }
  t.same(await seen({}), ['cheap', 'claude', 'strong'])
  t.same(await seen({ allowedModels: ['cheap', 'claude', 'gone'] }), ['cheap', 'claude'])
  t.same(await seen({ allowedProviders: ['anthropic'] }), ['claude'])
  t.same(await seen({ allowedModels: ['cheap', 'claude'], allowedProviders: ['openai'] }), ['cheap'])
  t.same(await seen({ allowedModels: [] }), [])
})

t.test('models: 4xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const theirs = await team(cp)
  const as = ours.admin.session
  const connectionId = await connect(cp, ours)
  const foreignConnection = await connect(cp, theirs)
  const body = { publicName: 'mine', connectionId, upstreamModel: 'gpt-4o' }
  await cp.call(createModel, { as, body })

  t.test('publicName has 1 to 128 characters of its pattern', async t => {
    for (const publicName of ['', '-x', '.x', '/x', 'a b', 'ä', 'x'.repeat(129), 'a%2F'])
      t.equal((await cp.call(createModel, { as, body: { ...body, publicName } })).status, 400, publicName)
    for (const publicName of ['x', '0', 'x'.repeat(128), 'A.b_c:d/e-f'])
      t.equal((await cp.call(createModel, { as, body: { ...body, publicName } })).status, 201, publicName)
  })

  t.test('a publicName is unique in its team and free in another', async t => {
    const message = "A model named 'mine' already exists."
    t.same((await cp.call(createModel, { as, body })).error, { code: 'CONFLICT', message })
    await cp.call(createModel, { as, body: { ...body, publicName: 'other' } })
    const renamed = await cp.call(updateModel, { as, params: { id: 'other' }, body: { publicName: 'mine' } })
    t.equal(renamed.status, 409)
    t.equal(renamed.error?.code, 'CONFLICT')
    const there = { ...body, connectionId: foreignConnection }
    t.equal((await cp.call(createModel, { as: theirs.owner.session, body: there })).status, 201)
  })

  t.test('an unknown or foreign connectionId is 404', async t => {
    for (const wrong of [randomUUID(), foreignConnection, 'nonsense']) {
      const created = await cp.call(createModel, {
        as,
        body: { ...body, publicName: 'lost', connectionId: wrong },
      })
      t.equal(created.status, 404)
      t.same(created.error, { code: 'NOT_FOUND', message: 'Connection not found.' })
      const moved = await cp.call(updateModel, { as, params: { id: 'mine' }, body: { connectionId: wrong } })
      t.equal(moved.text, created.text)
    }
  })

  t.test('another team’s model answers byte for byte like a missing one', async t => {
    const { modelId } = (await cp.call(getModel, { as, params: { id: 'mine' } })).body
    const outsider = (await team(cp)).owner.session
    const calls = [
      [getModel, {}],
      [updateModel, { body: { contextWindow: 1 } }],
      [deleteModel, {}],
    ] as const
    for (const [endpoint, input] of calls) {
      const absent = await cp.call(endpoint, {
        as: outsider,
        params: { id: randomUUID() },
        ...input,
      } as never)
      t.equal(absent.error?.message, 'Model not found.')
      for (const id of [modelId, 'mine']) {
        const foreign = await cp.call(endpoint, { as: outsider, params: { id }, ...input } as never)
        t.equal(foreign.text, absent.text)
      }
    }
  })

  t.test('prices are not negative, limits are positive integers, an empty PATCH is refused', async t => {
    const patch = async (change: object) =>
      (await cp.call(updateModel, { as, params: { id: 'mine' }, body: change })).error?.message
    const price = { inputPerMTok: -1, outputPerMTok: 1 }
    t.equal(
      await patch({ pricing: price }),
      'pricing.inputPerMTok: Number must be greater than or equal to 0',
    )
    t.equal(await patch({ pricing: { inputPerMTok: 1 } }), 'pricing.outputPerMTok: Required')
    t.equal(await patch({ maxOutputTokens: 0 }), 'Number must be greater than or equal to 1')
    t.match(await patch({}), 'At least one of publicName')
  })

  t.test('only owners and admins write; a virtual key may list and nothing else', async t => {
    for (const role of [ours.editor.session, ours.viewer.session, ours.teamKey]) {
      t.equal((await cp.call(createModel, { as: role, body })).status, 403)
      t.equal(
        (await cp.call(updateModel, { as: role, params: { id: 'mine' }, body: { contextWindow: 1 } })).status,
        403,
      )
      t.equal((await cp.call(deleteModel, { as: role, params: { id: 'mine' } })).status, 403)
      t.equal((await cp.call(getModel, { as: role, params: { id: 'mine' } })).status, 200)
    }
    t.equal((await cp.call(listModels, { as: ours.virtualKey })).status, 200)
    t.equal((await cp.call(getModel, { as: ours.virtualKey, params: { id: 'mine' } })).status, 401)
    t.equal((await cp.call(createModel, { as: ours.virtualKey, body })).status, 401)
  })
})
