import { randomUUID } from 'node:crypto'
import { type Test, test } from 'tap'
import { unsubscribeUrl } from '../../../control-plane/notifications/unsubscribe-token.js'
import {
  getPreferences,
  type NotificationCategory,
  notificationCategories,
  updatePreference,
} from '../../../shared/contract/notifications.js'
import { removeMember } from '../../../shared/contract/teams.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { type SeededPerson, type SeededTeam, team } from '../../support/seed.js'

const ALL_ON = { budget_alerts: true, eval_runs: true, membership: true, weekly_digest: true }
const NO_PERSON = { code: 'FORBIDDEN', message: 'Team-scoped keys carry no user identity.' }

test('nothing stored means enabled: always all four keys', async t => {
  const { cp, mine } = await seeded(t)
  for (const as of [mine.viewer.session, mine.viewer.personalKey]) {
    const { status, body } = await cp.call(getPreferences, { as })
    t.equal(status, 200)
    t.same(body, { preferences: ALL_ON })
  }
})

test('PATCH answers the whole effective map; repeated calls update the same row', async t => {
  const { cp, mine } = await seeded(t)
  const as = mine.viewer.session
  for (const category of notificationCategories) {
    for (const enabled of [false, false, true, false]) {
      const { status, body } = await cp.call(updatePreference, { as, body: { category, enabled } })
      t.equal(status, 200)
      t.equal(body.preferences[category], enabled)
      t.same((await cp.call(getPreferences, { as })).body, body)
    }
  }
  const rows = await cp.deps.sql`select 1 from notification_preferences where user_id = ${mine.viewer.userId}`
  t.equal(rows.length, 4)
  await cp.call(updatePreference, { as, body: { category: 'membership', enabled: true } })
  const { preferences } = (await cp.call(getPreferences, { as })).body
  t.same(preferences, { budget_alerts: false, eval_runs: false, membership: true, weekly_digest: false })
})

test('preferences are per user per team', async t => {
  const { cp, mine } = await seeded(t)
  const other = await team(cp)
  const { sql } = cp.deps
  const joinedAt = new Date()
  await sql`insert into members ${sql({ teamId: other.teamId, userId: mine.viewer.userId, role: 'viewer', joinedAt })}`
  await switchOff(cp, mine.viewer, 'weekly_digest')
  t.equal((await preferencesOf(cp, mine.viewer)).weekly_digest, false)
  t.same(await preferencesOf(cp, mine.owner), ALL_ON)
  const rows = await sql`select team_id from notification_preferences`
  t.same(
    rows.map(row => row.teamId),
    [mine.teamId],
  )
})

test('400 for an unknown category, with the enum’s message, and for missing fields', async t => {
  const { cp, mine } = await seeded(t)
  const refusal = async (body: object) => {
    const { status, error } = await cp.call(updatePreference, {
      as: mine.viewer.session,
      body: body as never,
    })
    t.equal(status, 400)
    t.equal(error?.code, 'VALIDATION_ERROR')
    return error?.message
  }
  t.equal(
    await refusal({ category: 'spam', enabled: false }),
    "Invalid enum value. Expected 'budget_alerts' | 'eval_runs' | 'membership' | 'weekly_digest', received 'spam'",
  )
  t.equal(await refusal({ enabled: false }), 'Required')
  t.equal(await refusal({ category: 'membership' }), 'Required')
  t.equal(await refusal({ category: 'membership', enabled: 'no' }), 'Expected boolean, received string')
  t.same(await preferencesOf(cp, mine.viewer), ALL_ON)
})

test('a team-scoped key carries no user identity: 403; a virtual key and nobody: 401', async t => {
  const { cp, mine } = await seeded(t)
  const body = { category: 'membership' as const, enabled: false }
  t.same((await cp.call(getPreferences, { as: mine.teamKey })).error, NO_PERSON)
  t.same((await cp.call(updatePreference, { as: mine.teamKey, body })).error, NO_PERSON)
  for (const as of [mine.virtualKey, {}]) {
    t.equal((await cp.call(getPreferences, { as })).status, 401)
    t.equal((await cp.call(updatePreference, { as, body })).status, 401)
  }
})

test('the link switches off one category for one person in one team, and can be pressed again', async t => {
  const { cp, mine } = await seeded(t)
  const path = linkOf(cp, mine, mine.admin, 'budget_alerts')
  for (let press = 0; press < 2; press++) {
    const answer = await cp.app.inject({ method: 'POST', url: path })
    t.equal(answer.statusCode, 204)
    t.equal(answer.body, '')
    t.same(await preferencesOf(cp, mine.admin), { ...ALL_ON, budget_alerts: false })
  }
  t.same(await preferencesOf(cp, mine.owner), ALL_ON)
  const body = { category: 'budget_alerts' as const, enabled: true }
  await cp.call(updatePreference, { as: mine.admin.session, body })
  t.same(await preferencesOf(cp, mine.admin), ALL_ON, 'reversible by PATCH')
})

test('a mail program’s one-click POST needs no cookie and no JSON', async t => {
  const { cp, mine } = await seeded(t)
  const answer = await cp.app.inject({
    method: 'POST',
    url: linkOf(cp, mine, mine.admin, 'weekly_digest'),
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://mail.example.com' },
    payload: 'List-Unsubscribe=One-Click',
  })
  t.equal(answer.statusCode, 204)
  t.equal((await preferencesOf(cp, mine.admin)).weekly_digest, false)
})

test('a valid, tampered, foreign, stale or missing token: every answer is the same, byte for byte', async t => {
  const { cp, mine } = await seeded(t)
  const valid = linkOf(cp, mine, mine.viewer, 'membership')
  const stale = linkOf(cp, mine, mine.editor, 'membership')
  const leaver = { id: mine.teamId, userId: mine.editor.userId }
  await cp.call(removeMember, { as: mine.owner.session, params: leaver })
  const bare = '/api/v1/email/unsubscribe'
  const paths = [
    valid,
    stale,
    linkOf(cp, mine, { userId: randomUUID() }, 'membership'),
    valid.replace('membership', 'weekly_digest'),
    valid.replace(mine.viewer.userId, mine.owner.userId),
    `${valid.slice(0, -1)}${valid.endsWith('A') ? 'Q' : 'A'}`,
    valid.slice(0, -5),
    `${valid}.more`,
    `${valid}&token=again`,
    `${bare}?token=`,
    `${bare}?token=nonsense`,
    `${bare}?token=%00%ff`,
    bare,
  ]
  for (const method of ['POST', 'GET'] as const) {
    const answers = new Set<string>()
    for (const url of paths) {
      const { statusCode, headers, body } = await cp.app.inject({ method, url })
      const { 'x-request-id': _id, date: _date, ...same } = headers
      answers.add(JSON.stringify({ statusCode, same, body }))
    }
    t.equal(answers.size, 1, method)
  }
  t.same(await preferencesOf(cp, mine.owner), ALL_ON)
  t.same(await preferencesOf(cp, mine.viewer), { ...ALL_ON, membership: false })
  const rows = await cp.deps.sql`select 1 from notification_preferences`
  t.equal(rows.length, 1)
})

test('opening the link shows a page with one button that posts to it, and changes nothing', async t => {
  const { cp, mine } = await seeded(t)
  const url = linkOf(cp, mine, mine.viewer, 'membership')
  const { statusCode, headers, body } = await cp.app.inject({ method: 'GET', url })
  t.equal(statusCode, 200)
  t.equal(headers['content-type'], 'text/html; charset=utf-8')
  t.match(headers['x-robots-tag'], /noindex/)
  t.match(headers['content-security-policy'], /default-src 'none'/)
  t.equal(headers['referrer-policy'], 'no-referrer')
  t.match(body, /<meta name="robots" content="noindex/)
  t.equal(body.match(/<button/g)?.length, 1)
  t.match(body, /<form method="post"><button/, 'no action: the address of the page itself')
  t.notMatch(body, /\bsrc=|\bhref=|@import|url\(/, 'no assets')
  t.notMatch(body, mine.viewer.userId)
  t.same(await preferencesOf(cp, mine.viewer), ALL_ON)
})

test('who comes back to a team starts with everything enabled', async t => {
  const { cp, mine } = await seeded(t)
  await switchOff(cp, mine.editor, 'membership')
  const { sql } = cp.deps
  const { teamId } = mine
  const { userId } = mine.editor
  await cp.call(removeMember, { as: mine.owner.session, params: { id: teamId, userId } })
  t.equal((await sql`select 1 from notification_preferences where user_id = ${userId}`).length, 0)
})

async function seeded(t: Test) {
  const cp = await startControlPlane(t)
  return { cp, mine: await team(cp) }
}

const preferencesOf = async (cp: ControlPlane, { session: as }: SeededPerson) =>
  (await cp.call(getPreferences, { as })).body.preferences

const switchOff = (cp: ControlPlane, { session: as }: SeededPerson, category: NotificationCategory) =>
  cp.call(updatePreference, { as, body: { category, enabled: false } })

const linkOf = (
  cp: ControlPlane,
  { teamId }: SeededTeam,
  { userId }: { userId: string },
  category: NotificationCategory,
) => unsubscribeUrl(cp.deps, { userId, teamId, category }).slice('http://agh.test'.length)
