import { type Test, test } from 'tap'
import { createApiKey } from '../../../shared/contract/api-keys.js'
import { getMe, switchTeam } from '../../../shared/contract/auth.js'
import { listModels } from '../../../shared/contract/models.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

const CROSS_SITE = { code: 'FORBIDDEN', message: 'Cross-site requests are not allowed.' }

test('a Bearer credential wins over a cookie', async t => {
  const { cp, mine } = await seeded(t)
  const both = { ...mine.owner.session, ...mine.viewer.personalKey }
  t.match((await cp.call(getMe, { as: both })).body, { user: { id: mine.viewer.userId }, via: 'api_key' })
  const stale = { ...mine.owner.session, key: `aghapi_sk_${'x'.repeat(40)}` }
  t.equal((await cp.call(getMe, { as: stale })).status, 401, 'a dead key is not saved by a live cookie')
})

test('401: a Bearer key on a session-only endpoint', async t => {
  const { cp, mine } = await seeded(t)
  const answer = await cp.call(switchTeam, { as: mine.owner.personalKey, body: { teamId: mine.teamId } })
  t.same(answer.error, { code: 'UNAUTHORIZED', message: 'Authentication required.' })
})

test('the scheme is read in any letter case; another scheme is no credential', async t => {
  const { cp, mine } = await seeded(t)
  const ask = (authorization: string) => cp.call(getMe, { headers: { authorization } })
  t.equal((await ask(`bearer ${mine.teamKey.key}`)).status, 200)
  for (const header of [
    `Basic ${mine.teamKey.key}`,
    `${mine.teamKey.key}`,
    'Bearer',
    'Bearer ',
    `Bearer a b`,
  ]) {
    t.equal((await ask(header)).status, 401, header)
  }
})

test('a virtual key lists models and is nobody anywhere else; revoked it is nobody there too', async t => {
  const { cp, mine } = await seeded(t)
  t.equal((await cp.call(listModels, { as: mine.virtualKey })).status, 200)
  t.equal((await cp.call(getMe, { as: mine.virtualKey })).status, 401)
  await cp.deps.sql`update virtual_keys set revoked_at = now() where id = ${mine.virtualKeyId}`
  t.equal((await cp.call(listModels, { as: mine.virtualKey })).status, 401)
})

test('a personal key acts with its user’s current role and dies with the membership', async t => {
  const { cp, mine } = await seeded(t)
  const { sql } = cp.deps
  const role = async () => (await cp.call(getMe, { as: mine.viewer.personalKey })).body.team.role
  await sql`update members set role = 'admin' where user_id = ${mine.viewer.userId}`
  t.equal(await role(), 'admin')
  await sql`delete from members where user_id = ${mine.viewer.userId}`
  t.equal((await cp.call(getMe, { as: mine.viewer.personalKey })).status, 401)
  t.equal((await cp.call(getMe, { as: mine.viewer.session })).status, 401)
})

test('a write with a cookie needs the service’s own Origin or Sec-Fetch-Site', async t => {
  const { cp, mine } = await seeded(t)
  const { cookie = '' } = mine.owner.session
  const write = (headers: Record<string, string>) =>
    cp.call(createApiKey, { headers: { cookie, ...headers }, body: { name: 'A' } })
  const refused: Record<string, string>[] = [
    {},
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://agh.test:8080' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { referer: 'http://agh.test/keys' },
    { origin: 'http://other.test', 'x-forwarded-host': 'other.test' },
  ]
  for (const headers of refused) t.same((await write(headers)).error, CROSS_SITE, JSON.stringify(headers))
  const accepted: Record<string, string>[] = [
    { origin: 'http://agh.test' },
    { 'sec-fetch-site': 'same-origin' },
    { origin: 'http://127.0.0.1:8788', host: '127.0.0.1:8788' },
    {
      origin: 'https://public.test',
      'x-forwarded-host': 'public.test',
      'x-agh-internal': cp.deps.config.internalToken,
    },
  ]
  for (const headers of accepted) t.equal((await write(headers)).status, 201, JSON.stringify(headers))
})

test('a read with a cookie needs no Origin, and a write with a key neither', async t => {
  const { cp, mine } = await seeded(t)
  const { cookie = '' } = mine.owner.session
  t.equal((await cp.call(getMe, { headers: { cookie, origin: 'https://evil.example' } })).status, 200)
  const headers = { origin: 'https://evil.example' }
  const answer = await cp.call(createApiKey, { as: mine.owner.personalKey, headers, body: { name: 'A' } })
  t.equal(answer.status, 201)
})

async function seeded(t: Test) {
  const cp = await startControlPlane(t)
  return { cp, mine: await team(cp) }
}
