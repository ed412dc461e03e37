import { type Test, test } from 'tap'
import { alertBudgets } from '../../../control-plane/notifications/budget-alerts.js'
import { createBudget, deleteBudget, updateBudget } from '../../../shared/contract/budgets.js'
import { updatePreference } from '../../../shared/contract/notifications.js'
import type { Period } from '../../../shared/ledger/period.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { person, type SeededTeam, team } from '../../support/seed.js'
import { charge, ship } from '../ledger/charges.js'
import { sendQueued, unsubscribePath } from './mails.js'

const USD = 1_000_000_000

test('80 percent and 100 percent are mailed to owners and admins, each once per period', async t => {
  const { cp, mine } = await seeded(t)
  await budget(cp, mine, 'month', 10)
  await spend(cp, mine, 7.9)
  t.same(await sendQueued(cp), [], 'below 80 percent')
  await spend(cp, mine, 0.1)
  const alerts = await sendQueued(cp)
  t.same(alerts.map(mail => mail.to).sort(), [mine.admin.email, mine.owner.email].sort())
  t.match(alerts[0]?.subject, `Budget alert: 80% used in ${mine.name}`)
  t.match(
    alerts[0]?.text,
    /The monthly budget of the team .* has used 80 percent[\s\S]*Spent: \$8\.00\nLimit: \$10\.00/,
  )
  await spend(cp, mine, 1.99)
  t.same(await sendQueued(cp), [], 'once')
  await spend(cp, mine, 0.01)
  const exhausted = await sendQueued(cp)
  t.equal(exhausted.length, 2)
  t.match(exhausted[0]?.subject, `Budget exhausted in ${mine.name}`)
  await spend(cp, mine, 5)
  await alertBudgets(cp.deps, null)
  t.same(await sendQueued(cp), [])
})

test('a spend that jumps over both thresholds tells both', async t => {
  const { cp, mine } = await seeded(t)
  await budget(cp, mine, 'total', 1)
  await spend(cp, mine, 3)
  const subjects = (await sendQueued(cp)).map(mail => mail.subject.replace(/ in .*/, '')).sort()
  const [alert, exhausted] = ['Budget alert: 80% used', 'Budget exhausted']
  t.same(subjects, [alert, alert, exhausted, exhausted])
})

test('the next period tells anew, and a late charge of the period before is told too', async t => {
  const midnight = Date.UTC(2027, 0, 13)
  const clock = { ms: midnight - 3_600_000 }
  const { cp, mine } = await seeded(t, { now: () => clock.ms })
  await budget(cp, mine, 'day', 1)
  await spend(cp, mine, 0.9, clock.ms)
  t.equal((await sendQueued(cp)).length, 2)
  clock.ms = midnight + 60_000
  await alertBudgets(cp.deps, null)
  t.same(await sendQueued(cp), [])
  await spend(cp, mine, 0.2, midnight - 5)
  t.match(await sendQueued(cp), [{ subject: /exhausted/ }, { subject: /exhausted/ }])
  await spend(cp, mine, 0.8, clock.ms)
  t.match(await sendQueued(cp), [{ subject: /80%/ }, { subject: /80%/ }])
})

test('ten control planes that see a threshold at once send one mail each person', async t => {
  const { cp, mine } = await seeded(t)
  const { id } = await budget(cp, mine, 'week', 1)
  // Straight into the tables: no ingestion has told it.
  const at = new Date()
  await cp.deps.sql`
    insert into spend_by_day (team_id, virtual_key_id, day, cost_nano, requests)
    values (${mine.teamId}, '00000000-0000-0000-0000-000000000000', ${at.toISOString().slice(0, 10)}, ${2 * USD}, 1)`
  await Promise.all(Array.from({ length: 10 }, () => alertBudgets(cp.deps, null)))
  t.equal((await sendQueued(cp)).length, 4)
  const rows = await cp.deps.sql`select threshold from budget_alerts where budget_id = ${id} order by 1`
  t.same(
    rows.map(row => row.threshold),
    [80, 100],
  )
})

test('a key’s budget counts its own spend, and the mail names the key', async t => {
  const { cp, mine } = await seeded(t)
  await budget(cp, mine, 'month', 1, mine.virtualKeyId)
  await spend(cp, mine, 5)
  t.same(await sendQueued(cp), [])
  await ship(cp.deps, charge(mine.teamId, { costNano: 0.8 * USD, virtualKeyId: mine.virtualKeyId }))
  const mails = await sendQueued(cp)
  t.equal(mails.length, 2)
  t.match(mails[0]?.text, /The monthly budget of the virtual key "Seeded"/)
})

test('a cap that is lowered below the spend is told by the job of the next minute', async t => {
  const { cp, mine } = await seeded(t)
  const { id } = await budget(cp, mine, 'month', 10)
  await spend(cp, mine, 1)
  await cp.call(updateBudget, { as: mine.owner.session, params: { id }, body: { limitUsd: 1 } })
  t.same(await sendQueued(cp), [])
  await alertBudgets(cp.deps, null)
  t.equal((await sendQueued(cp)).length, 4)
})

test('who switched budget_alerts off gets none; who is neither owner nor admin never does', async t => {
  const { cp, mine } = await seeded(t)
  const second = await person(cp, mine.teamId, 'admin')
  const body = { category: 'budget_alerts' as const, enabled: false }
  await cp.call(updatePreference, { as: mine.owner.session, body })
  await budget(cp, mine, 'month', 1)
  await budget(cp, mine, 'total', 1)
  await spend(cp, mine, 0.85)
  const mails = await sendQueued(cp)
  t.same(new Set(mails.map(mail => mail.to)), new Set([mine.admin.email, second.email]))
  const mine80 = mails.find(mail => mail.to === second.email)
  await cp.app.inject({ method: 'POST', url: unsubscribePath(mine80) })
  await spend(cp, mine, 0.15)
  t.same(new Set((await sendQueued(cp)).map(mail => mail.to)), new Set([mine.admin.email]))
})

test('a cap of zero, a deleted budget and another team’s spend are no news', async t => {
  const { cp, mine } = await seeded(t)
  const other = await team(cp)
  await budget(cp, mine, 'day', 0)
  const { id } = await budget(cp, mine, 'month', 1)
  await spend(cp, other, 5)
  await cp.call(deleteBudget, { as: mine.owner.session, params: { id } })
  await spend(cp, mine, 5)
  t.same(await sendQueued(cp), [])
})

test('charges are stored even when nobody can be told, and the next minute tells', async t => {
  const { cp, mine } = await seeded(t)
  await budget(cp, mine, 'month', 1)
  const broken = { ...cp.deps, jobs: { enqueue: () => Promise.reject(new Error('no queue')) } }
  await ship(broken, charge(mine.teamId, { costNano: USD }))
  t.equal((await cp.deps.sql`select 1 from charges where team_id = ${mine.teamId}`).length, 1)
  t.equal((await cp.deps.sql`select 1 from budget_alerts`).length, 0, 'not marked as told')
  await alertBudgets(cp.deps, null)
  t.equal((await sendQueued(cp)).length, 4)
})

test('a budget of every team is looked at, however many there are', async t => {
  const cp = await startControlPlane(t)
  const mine = await team(cp)
  const { sql } = cp.deps
  const at = new Date()
  await sql`
    insert into virtual_keys (team_id, id, name, key_hash, last_four, created_at)
    select ${mine.teamId}, gen_random_uuid(), 'k' || n, 'hash' || n, 'last', ${at} from generate_series(1, 205) n`
  await sql`
    insert into budgets (team_id, id, virtual_key_id, period, limit_usd, created_at, updated_at)
    select team_id, gen_random_uuid(), id, 'month', 1, ${at}, ${at} from virtual_keys where name like 'k%'`
  await sql`
    insert into spend_by_day (team_id, virtual_key_id, day, cost_nano, requests)
    select team_id, id, ${at.toISOString().slice(0, 10)}::date, 850000000, 1 from virtual_keys where name like 'k%'`
  await alertBudgets(cp.deps, null)
  t.equal((await sql`select 1 from budget_alerts`).length, 205)
})

async function seeded(t: Test, overrides: { now?: () => number } = {}) {
  const cp = await startControlPlane(t, overrides)
  return { cp, mine: await team(cp) }
}

const budget = async (
  cp: ControlPlane,
  mine: SeededTeam,
  period: Period,
  limitUsd: number,
  virtualKeyId: string | null = null,
) => (await cp.call(createBudget, { as: mine.owner.session, body: { period, limitUsd, virtualKeyId } })).body

const spend = (cp: ControlPlane, { teamId }: SeededTeam, usd: number, admittedAtMs = Date.now()) =>
  ship(cp.deps, charge(teamId, { costNano: Math.round(usd * USD), admittedAtMs }))
