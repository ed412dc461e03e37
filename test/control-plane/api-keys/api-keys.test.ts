import { randomUUID } from 'node:crypto'
import { type Test, test } from 'tap'
import { createApiKey, listApiKeys, revokeApiKey } from '../../../shared/contract/api-keys.js'
import { getMe } from '../../../shared/contract/auth.js'
import { hashToken } from '../../../shared/secrets/token.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

const UNKNOWN = { code: 'NOT_FOUND', message: 'API key not found.' }

test('201: the full key is in the answer of create alone, and only its hash is stored', async t => {
  const { cp, mine } = await seeded(t)
  const created = await cp.call(createApiKey, { as: mine.editor.session, body: { name: 'CI' } })
  t.equal(created.status, 201)
  t.match(created.body, { key: /^aghapi_sk_[A-Za-z0-9_-]{40}$/, name: 'CI', teamScoped: false })
  t.same(Object.keys(created.body).sort(), ['createdAt', 'id', 'key', 'name', 'teamScoped'])
  const { key, id } = created.body
  const [row] = await cp.deps.sql`select * from api_keys where id = ${id}`
  t.equal(row?.keyHash, hashToken(key))
  t.notOk(JSON.stringify(row).includes(key))
  const list = await cp.call(listApiKeys, { as: mine.editor.session })
  t.notOk(list.text.includes(key))
  const item = list.body.find(entry => entry.id === id)
  t.same(item, {
    id,
    name: 'CI',
    lastFour: key.slice(-4),
    createdAt: created.body.createdAt,
    teamScoped: false,
  })
  t.match((await cp.call(getMe, { as: { key } })).body, { user: { id: mine.editor.userId }, via: 'api_key' })
})

test('400: a key needs a name, and blanks are none', async t => {
  const { cp, mine } = await seeded(t)
  const answer = await cp.call(createApiKey, { as: mine.owner.session, body: {} as { name: string } })
  t.same(answer.error, { code: 'VALIDATION_ERROR', message: 'Required' })
  const blank = await cp.call(createApiKey, { as: mine.owner.session, body: { name: '  ' } })
  t.same(blank.error, { code: 'VALIDATION_ERROR', message: 'String must contain at least 1 character(s)' })
})

test('a viewer makes personal keys; a team-scoped key needs owner or admin', async t => {
  const { cp, mine } = await seeded(t)
  t.equal((await cp.call(createApiKey, { as: mine.viewer.session, body: { name: 'Mine' } })).status, 201)
  for (const as of [mine.viewer.session, mine.editor.session, mine.editor.personalKey]) {
    const answer = await cp.call(createApiKey, { as, body: { name: 'Team', teamScoped: true } })
    t.same(answer.error, { code: 'FORBIDDEN', message: 'Insufficient role for this action.' })
  }
  for (const as of [mine.admin.session, mine.owner.personalKey]) {
    const { body } = await cp.call(createApiKey, { as, body: { name: 'Team', teamScoped: true } })
    t.equal(body.teamScoped, true)
    t.match((await cp.call(getMe, { as: { key: body.key } })).body, { user: null, via: 'team_api_key' })
  }
})

test('403: a team-scoped key makes and revokes no keys: it carries no user identity', async t => {
  const { cp, mine } = await seeded(t)
  const refusal = { code: 'FORBIDDEN', message: 'Team-scoped keys carry no user identity.' }
  t.same((await cp.call(createApiKey, { as: mine.teamKey, body: { name: 'More' } })).error, refusal)
  const params = { id: mine.teamKeyId }
  t.same((await cp.call(revokeApiKey, { as: mine.teamKey, params })).error, refusal)
})

test('owner and admin see the team’s keys, others their own personal ones', async t => {
  const { cp, mine } = await seeded(t)
  await team(cp)
  const all = [mine.owner, mine.admin, mine.editor, mine.viewer].map(one => one.personalKeyId)
  const seen = async (as: { cookie?: string; key?: string }) =>
    (await cp.call(listApiKeys, { as })).body.map(key => key.id).sort()
  t.same(await seen(mine.owner.session), [...all, mine.teamKeyId].sort())
  t.same(await seen(mine.admin.personalKey), [...all, mine.teamKeyId].sort())
  t.same(await seen(mine.editor.session), [mine.editor.personalKeyId])
  t.same(await seen(mine.viewer.personalKey), [mine.viewer.personalKeyId])
})

test('204: a revoked key stops authenticating at once, leaves the list, and is marked in the ledger', async t => {
  const { cp, mine } = await seeded(t)
  const params = { id: mine.editor.personalKeyId }
  t.equal((await cp.call(getMe, { as: mine.editor.personalKey })).status, 200)
  const answer = await cp.call(revokeApiKey, { as: mine.admin.session, params })
  t.equal(answer.status, 204)
  t.equal(answer.text, '')
  t.equal((await cp.call(getMe, { as: mine.editor.personalKey })).status, 401)
  t.same((await cp.call(listApiKeys, { as: mine.editor.session })).body, [])
  t.equal((await cp.deps.ledger.look(mine.teamId, params.id)).revoked, true)
  t.same((await cp.call(revokeApiKey, { as: mine.admin.session, params })).error, UNKNOWN, 'and again: 404')
})

test('a key revokes itself', async t => {
  const { cp, mine } = await seeded(t)
  const params = { id: mine.viewer.personalKeyId.toUpperCase() }
  t.equal((await cp.call(revokeApiKey, { as: mine.viewer.personalKey, params })).status, 204)
  t.equal((await cp.deps.ledger.look(mine.teamId, mine.viewer.personalKeyId)).revoked, true)
})

test('404: unknown, foreign, nonsense and unseen keys are the same answer, and stay', async t => {
  const { cp, mine } = await seeded(t)
  const foreign = await team(cp)
  const before = await cp.deps.ledger.look(mine.teamId, mine.teamKeyId)
  const ids = [randomUUID(), foreign.teamKeyId, foreign.owner.personalKeyId, 'nonsense']
  for (const id of ids) {
    t.same((await cp.call(revokeApiKey, { as: mine.owner.session, params: { id } })).error, UNKNOWN)
  }
  for (const id of [mine.teamKeyId, mine.owner.personalKeyId]) {
    t.same((await cp.call(revokeApiKey, { as: mine.editor.session, params: { id } })).error, UNKNOWN)
  }
  t.equal((await cp.call(getMe, { as: foreign.teamKey })).status, 200)
  t.equal((await cp.call(getMe, { as: mine.teamKey })).status, 200)
  const after = await cp.deps.ledger.look(mine.teamId, mine.teamKeyId)
  t.same(after, before, 'a refused revocation leaves no mark in the ledger')
})

async function seeded(t: Test) {
  const cp = await startControlPlane(t)
  return { cp, mine: await team(cp) }
}
