import { randomUUID } from 'node:crypto'
import t from 'tap'
import { listConnections } from '../../../shared/contract/connections.js'
import { listModels } from '../../../shared/contract/models.js'
import {
  createVirtualKey,
  listVirtualKeys,
  revokeVirtualKey,
  updateVirtualKey,
} from '../../../shared/contract/virtual-keys.js'
import { hashToken } from '../../../shared/secrets/token.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

t.test('virtual keys: 2xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.admin.session

  t.test('the key is returned by create alone, and stored as its hash', async t => {
    const created = await cp.call(createVirtualKey, { as, body: { name: 'CI' } })
    t.equal(created.status, 201)
    const { key, id } = created.body
    t.match(key, /^agh_sk_[A-Za-z0-9_-]{40}$/)
    t.equal(created.body.keyLastFour, key.slice(-4))
    t.notOk('revokedAt' in JSON.parse(created.text))
    const listed = await cp.call(listVirtualKeys, { as: ours.viewer.session })
    const patched = await cp.call(updateVirtualKey, { as, params: { id }, body: { name: 'CI 2' } })
    for (const answer of [listed, patched]) {
      t.notMatch(answer.text, key)
      t.notMatch(answer.text, hashToken(key))
    }
    const [row] = await cp.deps.sql`select * from virtual_keys where id = ${id}`
    t.equal(row?.keyHash, hashToken(key))
    t.notMatch(JSON.stringify(row), key)
  })

  t.test('left out means unrestricted; the list shows every field', async t => {
    const { id } = (await cp.call(createVirtualKey, { as, body: { name: 'open' } })).body
    const [row] = (await cp.call(listVirtualKeys, { as })).body
    t.match(row, {
      id,
      name: 'open',
      allowedModels: null,
      allowedProviders: null,
      maxRpm: null,
      maxTpm: null,
      cacheTtlSeconds: null,
      revokedAt: null,
    })
  })

  t.test('PATCH changes what it names; null clears an allow-list; an empty one allows nothing', async t => {
    const scope = { allowedModels: ['a', 'b', 'a'], allowedProviders: ['openai' as const], maxRpm: 5 }
    const { id, ...created } = (await cp.call(createVirtualKey, { as, body: { name: 'scoped', ...scope } }))
      .body
    t.same(created.allowedModels, ['a', 'b'])
    const patch = async (body: object) => (await cp.call(updateVirtualKey, { as, params: { id }, body })).body
    t.match(await patch({ maxTpm: 100 }), {
      name: 'scoped',
      allowedModels: ['a', 'b'],
      maxRpm: 5,
      maxTpm: 100,
    })
    t.match(await patch({ allowedModels: null, maxRpm: null }), {
      allowedModels: null,
      maxRpm: null,
      maxTpm: 100,
    })
    t.same((await patch({ allowedModels: [] })).allowedModels, [])
    t.same((await patch({ allowedProviders: ['google'], cacheTtlSeconds: 60 })).allowedProviders, ['google'])
  })

  t.test('the list holds active and revoked keys, newest first', async t => {
    const [first, second] = [
      (await cp.call(createVirtualKey, { as, body: { name: 'first' } })).body,
      (await cp.call(createVirtualKey, { as, body: { name: 'second' } })).body,
    ]
    await cp.call(revokeVirtualKey, { as, params: { id: first.id } })
    const rows = (await cp.call(listVirtualKeys, { as: ours.teamKey })).body
    t.same(
      rows.slice(0, 2).map(row => row.id),
      [second.id, first.id],
    )
    t.equal(rows[0]?.revokedAt, null)
    t.match(rows[1]?.revokedAt, /^\d{4}-.*Z$/)
  })

  t.test('a revoked key stops at once: here, and in the ledger that every proxy asks', async t => {
    const { id, key } = (await cp.call(createVirtualKey, { as, body: { name: 'doomed' } })).body
    t.equal((await cp.call(listModels, { as: { key } })).status, 200)
    t.equal((await cp.deps.ledger.look(ours.teamId, id)).revoked, false)
    t.equal((await cp.call(revokeVirtualKey, { as, params: { id } })).status, 204)
    t.equal((await cp.call(listModels, { as: { key } })).status, 401)
    t.equal((await cp.deps.ledger.look(ours.teamId, id)).revoked, true)
  })
})

t.test('virtual keys: 4xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const theirs = await team(cp)
  const as = ours.owner.session
  const { id } = (await cp.call(createVirtualKey, { as, body: { name: 'ours' } })).body

  t.test('fields are checked', async t => {
    const refusal = async (body: object) =>
      (await cp.call(createVirtualKey, { as, body: body as never })).error?.message
    t.equal(await refusal({}), 'Required')
    t.equal(await refusal({ name: '' }), 'String must contain at least 1 character(s)')
    t.equal(await refusal({ name: 'x', maxRpm: 0 }), 'Number must be greater than or equal to 1')
    t.equal(await refusal({ name: 'x', maxTpm: 1.5 }), 'Expected integer, received float')
    t.match(
      await refusal({ name: 'x', allowedProviders: ['azure'] }),
      'allowedProviders.0: Invalid enum value',
    )
    t.equal(await refusal({ name: 'x', allowedModels: 'gpt' }), 'Expected array, received string')
    const { error } = await cp.call(updateVirtualKey, { as, params: { id }, body: {} })
    t.match(error?.message, 'At least one of name')
  })

  t.test('a revoked key cannot be revoked or changed again', async t => {
    const doomed = (await cp.call(createVirtualKey, { as, body: { name: 'doomed' } })).body.id
    await cp.call(revokeVirtualKey, { as, params: { id: doomed } })
    for (const answer of [
      await cp.call(revokeVirtualKey, { as, params: { id: doomed } }),
      await cp.call(updateVirtualKey, { as, params: { id: doomed }, body: { name: 'x' } }),
    ]) {
      t.equal(answer.status, 404)
      t.same(answer.error, { code: 'NOT_FOUND', message: 'Virtual key not found.' })
    }
  })

  t.test('another team’s key answers byte for byte like a missing one, and stays as it is', async t => {
    const outsider = theirs.owner.session
    for (const missing of [randomUUID(), 'nonsense']) {
      const foreign = await cp.call(revokeVirtualKey, { as: outsider, params: { id } })
      t.equal(foreign.status, 404)
      t.equal(foreign.text, (await cp.call(revokeVirtualKey, { as: outsider, params: { id: missing } })).text)
      const body = { name: 'stolen' }
      const patched = await cp.call(updateVirtualKey, { as: outsider, params: { id }, body })
      t.equal(
        patched.text,
        (await cp.call(updateVirtualKey, { as: outsider, params: { id: missing }, body })).text,
      )
    }
    const rows = (await cp.call(listVirtualKeys, { as })).body
    t.match(
      rows.find(row => row.id === id),
      { name: 'ours', revokedAt: null },
    )
    t.equal((await cp.deps.ledger.look(ours.teamId, id)).revoked, false)
  })

  t.test('only owners and admins write, any role lists, a virtual key does neither', async t => {
    for (const role of [ours.editor.session, ours.viewer.personalKey, ours.teamKey]) {
      t.equal((await cp.call(createVirtualKey, { as: role, body: { name: 'x' } })).status, 403)
      t.equal(
        (await cp.call(updateVirtualKey, { as: role, params: { id }, body: { name: 'x' } })).status,
        403,
      )
      t.equal((await cp.call(revokeVirtualKey, { as: role, params: { id } })).status, 403)
      t.equal((await cp.call(listVirtualKeys, { as: role })).status, 200)
    }
    t.equal((await cp.call(listVirtualKeys, { as: ours.virtualKey })).status, 401)
    t.equal((await cp.call(listConnections, { as: ours.virtualKey })).status, 401)
    t.equal((await cp.call(listVirtualKeys)).status, 401)
  })
})
