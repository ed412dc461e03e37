import { type Test, test } from 'tap'
import { crontab } from '../../../control-plane/jobs/index.js'
import { sendWeeklyDigests } from '../../../control-plane/notifications/weekly-digest.js'
import { updatePreference } from '../../../shared/contract/notifications.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { type SeededTeam, team } from '../../support/seed.js'
import { charge, ship } from '../ledger/charges.js'
import { sendQueued, unsubscribePath } from './mails.js'

/** A Monday; the digest is of 2027-01-04 to 2027-01-10. */
const MONDAY = Date.UTC(2027, 0, 11, 8)
const DAY = 86_400_000

test('on Monday owners and admins get the figures of the week that ended on Sunday', async t => {
  const { cp, mine } = await seeded(t)
  await spend(cp, mine, 'fast', 1.5, Date.UTC(2027, 0, 4))
  await spend(cp, mine, 'fast', 0.25, Date.UTC(2027, 0, 10, 23, 59))
  await spend(cp, mine, 'smart', 2, Date.UTC(2027, 0, 7))
  await spend(cp, mine, 'fast', 0.5, Date.UTC(2027, 0, 3, 23, 59))
  await spend(cp, mine, 'fast', 9, Date.UTC(2027, 0, 11))
  await sendWeeklyDigests(cp.deps)
  const mails = await sendQueued(cp)
  t.same(mails.map(mail => mail.to).sort(), [mine.admin.email, mine.owner.email].sort())
  t.equal(mails[0]?.subject, `${mine.name} on agh: the week of 2027-01-04`)
  t.match(mails[0]?.text, /from 2027-01-04 to 2027-01-10 \(UTC\)/)
  t.match(
    mails[0]?.text,
    'Calls: 3\nCost: $3.75\nThe week before: 1 call, $0.50\nModel smart: 1 call, $2.00\nModel fast: 2 calls, $1.75\n',
  )
})

test('a digest has the headers by which mail programs unsubscribe, and they work', async t => {
  const { cp, mine } = await seeded(t)
  await spend(cp, mine, 'fast', 1, MONDAY - 3 * DAY)
  await sendWeeklyDigests(cp.deps)
  const mail = (await sendQueued(cp)).find(one => one.to === mine.owner.email)
  const path = unsubscribePath(mail)
  t.same(mail?.headers, {
    'List-Unsubscribe': `<http://agh.test${path}>`,
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  })
  await cp.app.inject({ method: 'POST', url: path, payload: 'List-Unsubscribe=One-Click' })
  await cp.deps.sql`delete from weekly_digests`
  await sendWeeklyDigests(cp.deps)
  t.same(
    (await sendQueued(cp)).map(one => one.to),
    [mine.admin.email],
  )
})

test('a week is sent once, however often and by however many processes the job runs', async t => {
  const { cp, mine } = await seeded(t)
  await spend(cp, mine, 'fast', 1, MONDAY - 3 * DAY)
  await Promise.all([1, 2, 3].map(() => sendWeeklyDigests(cp.deps)))
  t.equal((await sendQueued(cp)).length, 2)
  await sendWeeklyDigests({ ...cp.deps, now: () => MONDAY + 3 * DAY })
  t.same(await sendQueued(cp), [])
})

test('a team whose digest cannot be made keeps nobody else from theirs', async t => {
  const { cp, mine } = await seeded(t)
  const other = await team(cp)
  const [first, second] = [mine, other].sort((a, b) => (a.teamId < b.teamId ? -1 : 1)) as [
    SeededTeam,
    SeededTeam,
  ]
  for (const one of [first, second]) await spend(cp, one, 'fast', 1, MONDAY - 3 * DAY)
  await cp.deps.sql.unsafe(
    `alter table weekly_digests add constraint broken check (team_id <> '${first.teamId}')`,
  )
  await t.rejects(sendWeeklyDigests(cp.deps), { code: '23514' }, 'so that the job is tried again')
  const told = async () => new Set((await sendQueued(cp)).map(mail => mail.to))
  t.same(await told(), new Set([second.owner.email, second.admin.email]))
  await cp.deps.sql`alter table weekly_digests drop constraint broken`
  await sendWeeklyDigests(cp.deps)
  t.same(await told(), new Set([first.owner.email, first.admin.email]))
})

test('a team without calls gets no digest; who switched it off gets none', async t => {
  const { cp, mine } = await seeded(t)
  await team(cp)
  const body = { category: 'weekly_digest' as const, enabled: false }
  await cp.call(updatePreference, { as: mine.owner.session, body })
  await cp.call(updatePreference, { as: mine.admin.session, body })
  await spend(cp, mine, 'fast', 1, MONDAY - 3 * DAY)
  await sendWeeklyDigests(cp.deps)
  t.same(await sendQueued(cp), [])
})

test('the job runs on Mondays', async t => {
  const line = crontab.find(one => one.includes('weekly_digest')) ?? ''
  t.match(line, /^0 8 \* \* 1 /)
})

async function seeded(t: Test) {
  const cp = await startControlPlane(t, { now: () => MONDAY })
  return { cp, mine: await team(cp) }
}

const spend = (cp: ControlPlane, { teamId }: SeededTeam, model: string, usd: number, admittedAtMs: number) =>
  ship(cp.deps, charge(teamId, { model, costNano: usd * 1_000_000_000, admittedAtMs }))
