import { type Test, test } from 'tap'
import { createFirstOwner } from '../../../control-plane/auth/first-owner.js'
import { getMe, signIn, signOut, signUp, switchTeam } from '../../../shared/contract/auth.js'
import { hashToken } from '../../../shared/secrets/token.js'
import { type ControlPlane, startControlPlane, testConfig } from '../../support/control-plane.js'
import { person, team } from '../../support/seed.js'

const ada = { email: 'ada@example.com', password: 'correct horse', name: 'Ada' }

test('201: sign-up makes an owner of a new team and signs in', async t => {
  const cp = await startControlPlane(t)
  const answer = await cp.call(signUp, { body: { ...ada, email: ' Ada@Example.COM ', teamName: 'Engines' } })
  t.equal(answer.status, 201)
  t.match(answer.body, {
    user: { email: 'ada@example.com', name: 'Ada' },
    team: { name: 'Engines', role: 'owner' },
  })
  const me = await cp.call(getMe, { as: { cookie: cookieOf(answer) } })
  t.same(me.body, { ...answer.body, teams: [answer.body.team], via: 'session' })
})

test('the session cookie is httpOnly, SameSite=Lax, for 30 days, and Secure when APP_URL is https', async t => {
  const plain = await startControlPlane(t)
  const cookie = setCookie(await plain.call(signUp, { body: ada }))
  t.match(cookie, /^agh_session=[\w-]{40}; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax$/)
  const [row] = await plain.deps.sql`select token_hash, expires_at, created_at from sessions`
  t.equal(row?.tokenHash, hashToken(/agh_session=([\w-]+)/.exec(cookie)?.[1] ?? ''), 'only a hash is stored')
  t.equal(row?.expiresAt - row?.createdAt, 30 * 86_400_000)

  const secure = await startControlPlane(t, {
    config: testConfig(plain.databaseUrl, { APP_URL: 'https://agh.test' }),
  })
  t.match(setCookie(await secure.call(signUp, { body: ada })), /; Secure/)
})

test('403: a page of another site signs nobody up or in; the service’s own and programs do', async t => {
  const cp = await startControlPlane(t)
  const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  const own = { origin: 'http://agh.test', 'sec-fetch-site': 'same-origin' }
  const refusal = { code: 'FORBIDDEN', message: 'Cross-site requests are not allowed.' }
  for (const headers of [foreign, { origin: 'null' }, { 'sec-fetch-site': 'same-site' }]) {
    const answer = await cp.call(signUp, { body: ada, headers })
    t.same(answer.error, refusal)
    t.notOk(answer.headers['set-cookie'])
  }
  t.equal((await cp.call(signUp, { body: ada, headers: own })).status, 201)
  t.same((await cp.call(signIn, { body: ada, headers: foreign })).error, refusal)
  t.equal((await cp.call(signIn, { body: ada, headers: own })).status, 200)
  t.equal((await cp.call(signIn, { body: ada })).status, 200)
})

test('400: sign-up names what is wrong', async t => {
  const cp = await startControlPlane(t)
  const refused = async (body: object) => (await cp.call(signUp, { body: body as typeof ada })).error
  t.same(await refused({ ...ada, password: '123456789' }), {
    code: 'VALIDATION_ERROR',
    message: 'String must contain at least 10 character(s)',
  })
  t.same(await refused({ password: ada.password }), { code: 'VALIDATION_ERROR', message: 'Required' })
  t.same(await refused({ ...ada, email: 'nobody' }), { code: 'VALIDATION_ERROR', message: 'Invalid email' })
})

test('409: an address signs up once, even in a race', async t => {
  const cp = await startControlPlane(t)
  const answers = await Promise.all([1, 2, 3].map(() => cp.call(signUp, { body: ada })))
  t.same(answers.map(answer => answer.status).sort(), [201, 409, 409])
  t.equal(answers.find(answer => answer.status === 409)?.error?.code, 'CONFLICT')
  t.equal((await cp.deps.sql`select 1 from teams`).length, 1, 'a refused sign-up leaves no team')
})

test('SIGNUP=first lets the first user in and nobody after, in a race too', async t => {
  const cp = await signUpMode(t, 'first')
  const bodies = [ada, { ...ada, email: 'bob@example.com' }]
  const answers = await Promise.all(bodies.map(body => cp.call(signUp, { body })))
  t.same(answers.map(answer => answer.status).sort(), [201, 403])
  const late = await cp.call(signUp, { body: { ...ada, email: 'carl@example.com' } })
  t.same(late.error, { code: 'FORBIDDEN', message: 'Sign-up is by invite only.' })
})

test('SIGNUP=closed lets nobody in', async t => {
  const cp = await signUpMode(t, 'closed')
  t.same((await cp.call(signUp, { body: ada })).error, { code: 'FORBIDDEN', message: 'Sign-up is closed.' })
})

test('the owner that agh start creates signs in, has a key, and counts as the first user', async t => {
  const cp = await signUpMode(t, 'first')
  const owner = await createFirstOwner(cp.deps.sql)
  t.ok(owner)
  if (owner === null) return
  t.match(owner, { email: 'owner@localhost', apiKey: /^aghapi_sk_[\w-]{40}$/, password: /^[\w-]{20}$/ })
  const signedIn = await cp.call(signIn, { body: { email: owner.email, password: owner.password } })
  t.match(signedIn.body.team, { id: owner.teamId, role: 'owner' })
  const me = await cp.call(getMe, { as: { key: owner.apiKey } })
  t.match(me.body, { user: { email: 'owner@localhost' }, team: { role: 'owner' }, via: 'api_key' })
  t.equal((await cp.call(signUp, { body: ada })).status, 403)
  t.equal(await createFirstOwner(cp.deps.sql), null, 'a second start creates nothing')
})

test('401: a wrong password and an unknown account are the same answer', async t => {
  const cp = await startControlPlane(t)
  await cp.call(signUp, { body: ada })
  const wrong = await cp.call(signIn, { body: { email: ada.email, password: 'wrong horse' } })
  const unknown = await cp.call(signIn, { body: { email: 'eve@example.com', password: 'wrong horse' } })
  t.same(wrong.error, { code: 'UNAUTHORIZED', message: 'Invalid email or password.' })
  t.equal(wrong.text, unknown.text)
  t.equal(wrong.headers['set-cookie'], undefined)
})

test('an unknown account takes as long as a known one', async t => {
  const cp = await startControlPlane(t)
  await cp.call(signUp, { body: ada })
  const took = async (email: string) => {
    const times: number[] = []
    for (let attempt = 0; attempt < 3; attempt++) {
      const startedAt = performance.now()
      await cp.call(signIn, { body: { email, password: 'wrong horse' } })
      times.push(performance.now() - startedAt)
    }
    return Math.min(...times)
  }
  const [known, unknown] = [await took(ada.email), await took('eve@example.com')]
  t.ok(unknown > known / 3 && known > unknown / 3, `known ${known} ms, unknown ${unknown} ms`)
})

test('200: signing in again works with the address in any case, and answers user, team and teams', async t => {
  const cp = await startControlPlane(t)
  const { body } = await cp.call(signUp, { body: ada })
  const answer = await cp.call(signIn, { body: { email: 'ADA@example.com', password: ada.password } })
  t.same(answer.body, { ...body, teams: [body.team] })
})

test('429: ten failures in 15 minutes close an account, the right password included, with Retry-After', async t => {
  let now = Date.now()
  const cp = await startControlPlane(t, { now: () => now })
  await cp.call(signUp, { body: ada })
  await failures(cp, 10)
  const closed = await cp.call(signIn, { body: ada })
  t.equal(closed.status, 429)
  t.equal(closed.error?.code, 'RATE_LIMITED')
  t.equal(closed.headers['retry-after'], '900')
  now += 14 * 60_000
  t.equal((await cp.call(signIn, { body: ada })).headers['retry-after'], '60', 'refusals do not prolong it')
  now += 60_001
  t.equal((await cp.call(signIn, { body: ada })).status, 200)
})

test('parallel guesses get no further than ten', async t => {
  const cp = await startControlPlane(t)
  await cp.call(signUp, { body: ada })
  const guesses = Array.from({ length: 25 }, () =>
    cp.call(signIn, { body: { email: ada.email, password: 'guess guess' } }),
  )
  const checked = (await Promise.all(guesses)).filter(answer => answer.status === 401)
  t.ok(checked.length <= 10, `${checked.length} passwords were looked at`)
})

test('429: an address gets 100 attempts a minute, over all accounts', async t => {
  const now = Date.now()
  const cp = await startControlPlane(t, { now: () => now })
  const { sql } = cp.deps
  const rows = Array.from({ length: 100 }, (_, index) => ({
    account: `user-${index}`,
    address: '127.0.0.1',
    failed: false,
    at: new Date(now - 30_000),
  }))
  await sql`insert into sign_in_attempts ${sql(rows)}`
  const answer = await cp.call(signIn, { body: ada })
  t.equal(answer.status, 429)
  t.equal(answer.headers['retry-after'], '30')
  const [kept] = await sql`select count(*)::int as attempts from sign_in_attempts`
  t.equal(kept?.attempts, 100, 'what was refused leaves no row: anybody can send as many as they like')
})

test('204: signing out revokes the session at once, in the ledger too, and clears the cookie', async t => {
  const cp = await startControlPlane(t)
  const { owner, teamId } = await team(cp)
  const answer = await cp.call(signOut, { as: owner.session })
  t.equal(answer.status, 204)
  t.match(setCookie(answer), /^agh_session=; Max-Age=0; Path=\/; Expires=Thu, 01 Jan 1970/)
  t.equal((await cp.call(getMe, { as: owner.session })).status, 401)
  t.equal((await cp.deps.ledger.look(teamId, owner.sessionId)).revoked, true)
})

test('an expired session is no session', async t => {
  let now = Date.now()
  const cp = await startControlPlane(t, { now: () => now })
  const signedUp = await cp.call(signUp, { body: ada })
  const cookie = cookieOf(signedUp)
  now += 30 * 86_400_000 - 1
  t.equal((await cp.call(getMe, { as: { cookie } })).status, 200)
  now += 2
  t.equal((await cp.call(getMe, { as: { cookie } })).status, 401)
})

test('me says who each kind of credential is', async t => {
  const cp = await startControlPlane(t)
  const mine = await team(cp, 'Mine')
  const byKey = await cp.call(getMe, { as: mine.editor.personalKey })
  t.match(byKey.body, { user: { id: mine.editor.userId }, team: { role: 'editor' }, via: 'api_key' })
  const byTeamKey = await cp.call(getMe, { as: mine.teamKey })
  const own = { id: mine.teamId, name: 'Mine', role: null }
  t.same(byTeamKey.body, { user: null, team: own, teams: [own], via: 'team_api_key' })
})

test('switching the team makes the session act in it, with the cookie that it has', async t => {
  const cp = await startControlPlane(t)
  const [first, second] = [await team(cp, 'First'), await team(cp, 'Second')]
  const { userId } = first.owner
  await cp.deps
    .sql`insert into members ${cp.deps.sql({ teamId: second.teamId, userId, role: 'viewer', joinedAt: new Date() })}`
  const answer = await cp.call(switchTeam, { as: first.owner.session, body: { teamId: second.teamId } })
  t.match(answer.body, { team: { id: second.teamId, role: 'viewer' }, via: 'session' })
  t.same(answer.body.teams.map(entry => entry.name).sort(), ['First', 'Second'])
  const me = await cp.call(getMe, { as: first.owner.session })
  t.match(me.body, { team: { id: second.teamId, role: 'viewer' } })
  await cp.call(switchTeam, { as: first.owner.session, body: { teamId: first.teamId } })
  t.equal((await cp.call(getMe, { as: first.owner.session })).body.team.id, first.teamId)
})

test('the team to switch to may be named in upper case', async t => {
  const cp = await startControlPlane(t)
  const { owner, teamId } = await team(cp)
  const answer = await cp.call(switchTeam, { as: owner.session, body: { teamId: teamId.toUpperCase() } })
  t.equal(answer.body.team?.id, teamId)
})

test('404: switching to a team that one is not in, or that does not exist', async t => {
  const cp = await startControlPlane(t)
  const [mine, foreign] = [await team(cp), await team(cp)]
  for (const teamId of [foreign.teamId, crypto.randomUUID(), 'nonsense']) {
    const answer = await cp.call(switchTeam, { as: mine.owner.session, body: { teamId } })
    t.same(answer.error, { code: 'NOT_FOUND', message: 'Team not found.' })
  }
})

test('a session follows its user’s current role', async t => {
  const cp = await startControlPlane(t)
  const { teamId } = await team(cp)
  const someone = await person(cp, teamId, 'viewer')
  await cp.deps.sql`update members set role = 'admin' where user_id = ${someone.userId}`
  t.equal((await cp.call(getMe, { as: someone.session })).body.team.role, 'admin')
})

const signUpMode = async (t: Test, mode: string) => {
  const cp = await startControlPlane(t)
  Object.assign(cp.deps.config, { SIGNUP: mode })
  return cp
}

async function failures(cp: ControlPlane, count: number): Promise<void> {
  for (let done = 0; done < count; done++) {
    await cp.call(signIn, { body: { email: ada.email, password: 'wrong horse' } })
  }
}

const setCookie = (answer: { headers: Record<string, string> }) => String(answer.headers['set-cookie'])
const cookieOf = (answer: { headers: Record<string, string> }) => setCookie(answer).split(';')[0] ?? ''
