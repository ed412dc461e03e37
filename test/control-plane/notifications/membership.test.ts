import { type Test, test } from 'tap'
import { compose } from '../../../control-plane/notifications/compose.js'
import { acceptInvite } from '../../../shared/contract/auth.js'
import { type NotificationCategory, updatePreference } from '../../../shared/contract/notifications.js'
import { createInvite, removeMember, updateMember, updateTeam } from '../../../shared/contract/teams.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { type SeededPerson, type SeededTeam, team } from '../../support/seed.js'
import { sendQueued, unsubscribePath } from './mails.js'

test('a join is mailed to the owners and admins who want it, and not to the one who joined', async t => {
  const { cp, mine } = await seeded(t)
  const outsiders = await team(cp)
  await join(cp, mine, outsiders.admin, 'admin')
  const mails = await sendQueued(cp)
  t.same(mails.map(mail => mail.to).sort(), [mine.admin.email, mine.owner.email].sort())
  t.match(mails[0]?.subject, `The admin joined ${mine.name}`)
  t.match(mails[0]?.text, new RegExp(`${outsiders.admin.email}.* as admin`))
  await switchOff(cp, mine.owner, 'membership')
  await switchOff(cp, mine.admin, 'weekly_digest')
  await join(cp, mine, outsiders.viewer, 'viewer')
  const second = await sendQueued(cp)
  t.same(second.map(mail => mail.to).sort(), [mine.admin.email, outsiders.admin.email].sort())
})

test('a new role is mailed to the person, unless they switched it off; the same role again is not', async t => {
  const { cp, mine } = await seeded(t)
  await setRole(cp, mine, 'editor')
  const [mail, ...more] = await sendQueued(cp)
  t.same(more, [])
  t.equal(mail?.to, mine.viewer.email)
  t.match(mail?.text, /from viewer to editor/)
  await setRole(cp, mine, 'editor')
  t.same(await sendQueued(cp), [])
  const pressed = await cp.app.inject({ method: 'POST', url: unsubscribePath(mail) })
  t.equal(pressed.statusCode, 204)
  await setRole(cp, mine, 'viewer')
  t.same(await sendQueued(cp), [])
})

test('a removal is mailed to the person always, with no link to switch it off', async t => {
  const { cp, mine } = await seeded(t)
  await switchOff(cp, mine.viewer, 'membership')
  const { userId, email } = mine.viewer
  await cp.call(removeMember, { as: mine.owner.session, params: { id: mine.teamId, userId } })
  const mails = await sendQueued(cp)
  t.equal(mails.length, 1)
  t.match(mails[0], { to: email, subject: `You are no longer a member of ${mine.name} on agh` })
  t.notMatch(mails[0]?.text, /unsubscribe/)
})

test('a refused change mails nobody', async t => {
  const { cp, mine } = await seeded(t)
  const params = { id: mine.teamId, userId: mine.owner.userId }
  t.equal((await cp.call(removeMember, { as: mine.owner.session, params })).status, 409)
  t.equal(
    (await cp.call(updateMember, { as: mine.admin.session, params, body: { role: 'viewer' } })).status,
    403,
  )
  t.same(await sendQueued(cp), [])
})

test('names are text: markup is escaped, and no line break of theirs makes a header or a line', async t => {
  const { cp, mine } = await seeded(t)
  const name = 'A <b>&"\' team'
  await cp.call(updateTeam, { as: mine.owner.session, params: { id: mine.teamId }, body: { name } })
  await setRole(cp, mine, 'editor')
  const [mail] = await sendQueued(cp)
  t.match(mail?.text, name)
  t.ok(mail?.html?.includes('A &lt;b&gt;&amp;&quot;&#39; team'))
  t.notOk(mail?.html?.includes('<b>'))
  const hostile = compose(
    cp.deps,
    {
      subject: 'One\r\nBcc: eve@example.com\u2028two',
      paragraphs: ['Three\r\n\r\nfour <script>'],
      facts: [['Model a\nb', '<i>\u0000']],
    },
    { userId: mine.viewer.userId, email: 'ada@example.com' },
    null,
  )
  t.equal(hostile.subject, 'One Bcc: eve@example.com two')
  t.equal(hostile.text, 'Three four <script>\n\nModel a b: <i>\n\nhttp://agh.test\n')
  t.notMatch(hostile.html, /<script|<i>|\n/)
})

async function seeded(t: Test) {
  const cp = await startControlPlane(t)
  return { cp, mine: await team(cp) }
}

const switchOff = (cp: ControlPlane, { session: as }: SeededPerson, category: NotificationCategory) =>
  cp.call(updatePreference, { as, body: { category, enabled: false } })

async function join(cp: ControlPlane, mine: SeededTeam, who: SeededPerson, role: 'admin' | 'viewer') {
  const body = { email: who.email, role }
  const as = mine.owner.session
  const invite = (await cp.call(createInvite, { as, params: { id: mine.teamId }, body })).body
  await sendQueued(cp)
  const token = invite.url.split('/').at(-1) ?? ''
  const answer = await cp.call(acceptInvite, { as: who.session, params: { token }, body: {} })
  if (answer.status !== 200) throw new Error(answer.text)
}

const setRole = (cp: ControlPlane, mine: SeededTeam, role: 'editor' | 'viewer') =>
  cp.call(updateMember, {
    as: mine.owner.session,
    params: { id: mine.teamId, userId: mine.viewer.userId },
    body: { role },
  })
