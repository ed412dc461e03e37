import { type Test, test } from 'tap'
import { jobList } from '../../../control-plane/jobs/index.js'
import { acceptInvite, getMe, signIn } from '../../../shared/contract/auth.js'
import {
  createInvite,
  deleteInvite,
  listInvites,
  removeMember,
  updateMember,
  updateTeam,
} from '../../../shared/contract/teams.js'
import { type ControlPlane, type Credential, startControlPlane } from '../../support/control-plane.js'
import { person, type SeededTeam, team } from '../../support/seed.js'

const PASSWORD = 'a good password'
const WRONG = { code: 'UNAUTHORIZED', message: 'Invalid email or password.' }
const GONE = { code: 'NOT_FOUND', message: 'Invite not found.' }

test('201: an invite has a link under APP_URL for seven days, and is mailed by a job', async t => {
  const { cp, mine } = await seeded(t)
  const invite = await send(cp, mine, { email: ' New@Example.com ', role: 'editor' })
  t.match(invite.body, {
    email: 'new@example.com',
    role: 'editor',
    url: /^http:\/\/agh\.test\/invites\/[\w-]{40}$/,
  })
  const days = (Date.parse(invite.body.expiresAt) - Date.now()) / 86_400_000
  t.ok(days > 6.99 && days <= 7)
  const [queued] = await cp.deps.sql<{ payload: Record<string, string> }[]>`
    select payload from graphile_worker._private_jobs`
  const sendMail = jobList.find(job => job.name === 'send_mail')
  await sendMail?.run(queued?.payload, cp.deps)
  t.match(cp.outbox, [{ to: 'new@example.com', subject: new RegExp(mine.name) }])
  t.ok(cp.outbox[0]?.text.includes(invite.body.url))
})

test('the name of a team cannot write lines of its own into the mail', async t => {
  const { cp, mine } = await seeded(t)
  const name = 'Ours"\r\n\r\nYour password has expired: https://evil.example\n\n"'
  await cp.call(updateTeam, { as: mine.owner.session, params: { id: mine.teamId }, body: { name } })
  await send(cp, mine, { email: 'new@example.com', role: 'viewer' })
  const [queued] = await cp.deps.sql<{ payload: { subject: string; text: string } }[]>`
    select payload from graphile_worker._private_jobs`
  t.notMatch(queued?.payload.subject, /[\r\n]/)
  t.notMatch(queued?.payload.text, /^Your password/m)
})

test('a new user accepts with a password: 200 with user and team, a session cookie, and the role', async t => {
  const { cp, mine } = await seeded(t)
  const token = await invited(cp, mine, 'new@example.com', 'viewer')
  const answer = await cp.call(acceptInvite, { params: { token }, body: { name: 'New', password: PASSWORD } })
  t.equal(answer.status, 200)
  t.match(answer.body, {
    user: { email: 'new@example.com', name: 'New' },
    team: { id: mine.teamId, role: 'viewer' },
  })
  const me = await cp.call(getMe, { as: cookieOf(answer) })
  t.match(me.body.team, { id: mine.teamId, role: 'viewer' })
  t.equal((await cp.call(signIn, { body: { email: 'new@example.com', password: PASSWORD } })).status, 200)
})

test('a signed-in person accepts and is switched to the team', async t => {
  const { cp, mine } = await seeded(t)
  const other = await team(cp)
  const token = await invited(cp, mine, other.viewer.email, 'admin')
  const answer = await cp.call(acceptInvite, { params: { token }, as: other.viewer.session, body: {} })
  t.match(answer.body, { user: { id: other.viewer.userId }, team: { id: mine.teamId, role: 'admin' } })
  const me = await cp.call(getMe, { as: cookieOf(answer) })
  t.equal(me.body.teams.length, 2)
})

test('an invite is worth what its sender may give: it goes with their membership, or with their role', async t => {
  const { cp, mine } = await seeded(t)
  const other = await person(cp, mine.teamId, 'owner')
  const sent = async (email: string, role: 'owner' | 'admin' | 'viewer') => {
    const { body } = await cp.call(createInvite, {
      as: other.session,
      params: { id: mine.teamId },
      body: { email, role },
    })
    return body.url.split('/').at(-1) ?? ''
  }
  const accepted = async (token: string) =>
    (await cp.call(acceptInvite, { params: { token }, body: { password: PASSWORD } })).status
  const setRole = (role: 'owner' | 'admin' | 'editor') =>
    cp.call(updateMember, {
      as: mine.owner.session,
      params: { id: mine.teamId, userId: other.userId },
      body: { role },
    })
  const [high, low] = [await sent('high@example.com', 'admin'), await sent('low@example.com', 'viewer')]
  await setRole('admin')
  t.same([await accepted(high), await accepted(low)], [404, 200])
  await setRole('owner')
  const back = await sent('another-of-mine@example.com', 'owner')
  const params = { id: mine.teamId, userId: other.userId }
  t.equal((await cp.call(removeMember, { as: mine.owner.session, params })).status, 204)
  t.equal(await accepted(back), 404, 'no way back in')
  t.same((await cp.call(listInvites, { as: mine.owner.session, params: { id: mine.teamId } })).body, [])
})

test('an invite is accepted once, also by two at the same moment', async t => {
  const { cp, mine } = await seeded(t)
  const token = await invited(cp, mine, 'new@example.com', 'viewer')
  const [one, two] = [await team(cp), await team(cp)]
  const answers = await Promise.all(
    [one, two].map(({ viewer }) =>
      cp.call(acceptInvite, { params: { token }, as: viewer.session, body: {} }),
    ),
  )
  t.same(answers.map(answer => answer.status).sort(), [200, 404])
  t.same((await cp.call(acceptInvite, { params: { token }, body: { password: PASSWORD } })).error, GONE)
})

test('404: unknown, expired and withdrawn invites are the same answer', async t => {
  let now = Date.now()
  const cp = await startControlPlane(t, { now: () => now })
  const mine = await team(cp)
  const accept = (token: string) => cp.call(acceptInvite, { params: { token }, body: { password: PASSWORD } })
  const withdrawn = await send(cp, mine, { email: 'a@example.com', role: 'viewer' })
  const params = { id: mine.teamId, inviteId: withdrawn.body.id }
  t.equal((await cp.call(deleteInvite, { as: mine.admin.session, params })).status, 204)
  t.same((await cp.call(deleteInvite, { as: mine.admin.session, params })).error, GONE)
  t.same((await accept(tokenOf(withdrawn.body.url))).error, GONE)
  t.same((await accept('unknown')).error, GONE)
  const token = await invited(cp, mine, 'b@example.com', 'viewer')
  now += 7 * 86_400_000 + 1
  t.same((await accept(token)).error, GONE)
})

test('a new user without a password is told Required; one with an account must sign in or prove it', async t => {
  const { cp, mine } = await seeded(t)
  const token = await invited(cp, mine, 'new@example.com', 'viewer')
  const answer = await cp.call(acceptInvite, { params: { token }, body: {} })
  t.same(answer.error, { code: 'VALIDATION_ERROR', message: 'Required' })
  const other = await team(cp)
  const known = await invited(cp, mine, other.viewer.email, 'viewer')
  t.equal((await cp.call(acceptInvite, { params: { token: known }, body: {} })).status, 401)
})

test('who was removed from their last team accepts the next invite with the password of the account', async t => {
  const { cp, mine } = await seeded(t)
  const [email, as] = ['back@example.com', mine.owner.session]
  const accept = async (password: string) => {
    const token = await invited(cp, mine, email, 'viewer')
    return cp.call(acceptInvite, { params: { token }, body: { name: 'Other', password } })
  }
  const userId = (await accept(PASSWORD)).body.user.id
  await cp.call(removeMember, { params: { id: mine.teamId, userId }, as })
  t.equal((await cp.call(signIn, { body: { email, password: PASSWORD } })).status, 403)
  const guess = await accept('a wrong password')
  t.same([guess.status, guess.error], [401, WRONG])
  const answer = await accept(PASSWORD)
  t.match(answer.body, { user: { id: userId }, team: { id: mine.teamId, role: 'viewer' } })
  t.equal((await cp.call(getMe, { as: cookieOf(answer) })).body.user?.name, 'Other', 'as it was')
  t.equal((await cp.call(signIn, { body: { email, password: PASSWORD } })).status, 200)
})

test('guessing a password through an invite meets the limit of sign-in attempts', async t => {
  const { cp, mine } = await seeded(t)
  const token = await invited(cp, mine, (await team(cp)).viewer.email, 'viewer')
  const guess = () => cp.call(acceptInvite, { params: { token }, body: { password: PASSWORD } })
  for (let done = 0; done < 10; done++) t.same((await guess()).error, WRONG)
  t.equal((await guess()).status, 429)
})

test('accepting with a cookie from another site’s page is refused', async t => {
  const { cp, mine } = await seeded(t)
  const token = await invited(cp, mine, 'new@example.com', 'owner')
  const answer = await cp.call(acceptInvite, {
    params: { token },
    as: (await team(cp)).viewer.session,
    headers: { origin: 'https://evil.example' },
    body: {},
  })
  t.equal(answer.status, 403)
})

test('409: a member is not invited and does not join twice', async t => {
  const { cp, mine } = await seeded(t)
  const conflict = { code: 'CONFLICT', message: 'Already a member of this team.' }
  t.same((await send(cp, mine, { email: mine.viewer.email, role: 'admin' })).error, conflict)
  const token = await invited(cp, mine, 'new@example.com', 'owner')
  const answer = await cp.call(acceptInvite, { params: { token }, as: mine.viewer.session, body: {} })
  t.same(answer.error, conflict)
  t.equal((await cp.call(getMe, { as: mine.viewer.session })).body.team.role, 'viewer')
})

test('nobody invites above what they may give: an admin invites editors and viewers', async t => {
  const { cp, mine } = await seeded(t)
  const by = (role: 'owner' | 'admin' | 'editor') =>
    cp.call(createInvite, {
      as: mine.admin.personalKey,
      params: { id: mine.teamId },
      body: { email: `${role}@example.com`, role },
    })
  t.equal((await by('editor')).status, 201)
  t.equal((await by('admin')).status, 403)
  t.equal((await by('owner')).status, 403)
})

test('a second invite to an address replaces the pending one', async t => {
  const { cp, mine } = await seeded(t)
  const first = await invited(cp, mine, 'new@example.com', 'viewer')
  await invited(cp, mine, 'new@example.com', 'editor')
  const list = await cp.call(listInvites, { as: mine.owner.session, params: { id: mine.teamId } })
  t.match(list.body, [{ email: 'new@example.com', role: 'editor' }])
  t.equal(list.body.length, 1)
  t.same(
    (await cp.call(acceptInvite, { params: { token: first }, body: { password: PASSWORD } })).error,
    GONE,
  )
})

test('the list shows pending invites of the team alone, and never the link', async t => {
  const { cp, mine } = await seeded(t)
  const foreign = await team(cp)
  await invited(cp, foreign, 'other@example.com', 'viewer')
  const token = await invited(cp, mine, 'joined@example.com', 'viewer')
  await cp.call(acceptInvite, { params: { token }, body: { password: PASSWORD } })
  const pending = await invited(cp, mine, 'pending@example.com', 'viewer')
  const list = await cp.call(listInvites, { as: mine.owner.session, params: { id: mine.teamId } })
  t.same(
    list.body.map(invite => invite.email),
    ['pending@example.com'],
  )
  t.notOk(list.text.includes(pending))
})

test('an invite whose mail cannot be queued is not made', async t => {
  const { cp, mine } = await seeded(t)
  const jobs = { enqueue: () => Promise.reject(new Error('no queue')) }
  Object.assign(cp.deps, { jobs })
  t.equal((await send(cp, mine, { email: 'new@example.com', role: 'viewer' })).status, 500)
  t.equal((await cp.deps.sql`select 1 from invites`).length, 0)
})

test('a removed person comes back by a new invite', async t => {
  const { cp, mine } = await seeded(t)
  const someone = await person(cp, mine.teamId, 'viewer')
  await cp.deps.sql`delete from members where user_id = ${someone.userId}`
  const token = await invited(cp, mine, someone.email, 'editor')
  const home = await team(cp)
  const { sql } = cp.deps
  await sql`insert into members ${sql({ teamId: home.teamId, userId: someone.userId, role: 'viewer', joinedAt: new Date() })}`
  await sql`update sessions set team_id = ${home.teamId} where user_id = ${someone.userId}`
  const answer = await cp.call(acceptInvite, { params: { token }, as: someone.session, body: {} })
  t.match(answer.body.team, { id: mine.teamId, role: 'editor' })
})

async function seeded(t: Test) {
  const cp = await startControlPlane(t)
  return { cp, mine: await team(cp) }
}

const send = (
  cp: ControlPlane,
  { teamId, owner }: SeededTeam,
  body: { email: string; role: 'owner' | 'admin' | 'editor' | 'viewer' },
) => cp.call(createInvite, { as: owner.session, params: { id: teamId }, body })

const invited = async (
  cp: ControlPlane,
  mine: SeededTeam,
  email: string,
  role: 'owner' | 'admin' | 'editor' | 'viewer',
) => tokenOf((await send(cp, mine, { email, role })).body.url)

const tokenOf = (url: string) => url.slice(url.lastIndexOf('/') + 1)

const cookieOf = (answer: { headers: Record<string, string> }): Credential => ({
  cookie: String(answer.headers['set-cookie']).split(';')[0] ?? '',
})
