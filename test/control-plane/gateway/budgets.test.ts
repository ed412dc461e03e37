import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createBudget, deleteBudget, listBudgets, updateBudget } from '../../../shared/contract/budgets.js'
import { createVirtualKey, revokeVirtualKey } from '../../../shared/contract/virtual-keys.js'
import { type Period, periodEndMs, periods } from '../../../shared/ledger/period.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

/** What a call cost, written as ingestion writes it: the charge and its day's rollup. */
async function spend({ deps }: ControlPlane, teamId: string, keyId: string | null, nano: number, at: Date) {
  const { sql } = deps
  await sql`
    insert into charges (team_id, request_id, virtual_key_id, admitted_at, provider, model, upstream_model,
      input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_nano, priced, estimated, cached)
    values (${teamId}, ${randomUUID()}, ${keyId}, ${at}, 'openai', 'm', 'm', 1, 0, 0, 1, ${nano}, true, false, false)`
  await sql`
    insert into spend_by_day (team_id, virtual_key_id, day, cost_nano, requests)
    values (${teamId}, ${keyId ?? '00000000-0000-0000-0000-000000000000'}, ${at.toISOString().slice(0, 10)}, ${nano}, 1)
    on conflict (team_id, day, virtual_key_id) do update set cost_nano = spend_by_day.cost_nano + excluded.cost_nano`
}

t.test('budgets: 2xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.admin.session

  t.test(
    'virtualKeyId left out means team-wide; resetsAt is the start of the next period, null for total',
    async t => {
      for (const period of periods) {
        const { status, body } = await cp.call(createBudget, { as, body: { period, limitUsd: 12.5 } })
        t.equal(status, 201)
        t.match(body, {
          virtualKeyId: null,
          period,
          limitUsd: 12.5,
          spendUsd: 0,
          createdBy: ours.admin.userId,
        })
        const endMs = periodEndMs(period, Date.now())
        t.equal(body.resetsAt, endMs === null ? null : new Date(endMs).toISOString())
      }
      const { body } = await cp.call(listBudgets, { as: ours.viewer.session })
      t.same(
        body.map(budget => budget.period),
        [...periods].reverse(),
        'newest first',
      )
    },
  )

  t.test('limitUsd has 4 decimals: 0.000001 becomes 0', async t => {
    const { virtualKeyId } = ours
    const { id, ...created } = (
      await cp.call(createBudget, { as, body: { period: 'day', limitUsd: 0.000001, virtualKeyId } })
    ).body
    t.equal(created.limitUsd, 0)
    t.equal(created.virtualKeyId, virtualKeyId)
    const limits: [number, number][] = [
      [0.00005, 0.0001],
      [1.23456, 1.2346],
      [0.1, 0.1],
      [9_000_000, 9_000_000],
      [8_999_999.9999, 8_999_999.9999],
      [0, 0],
    ]
    for (const [given, stored] of limits) {
      const { body } = await cp.call(updateBudget, { as, params: { id }, body: { limitUsd: given } })
      t.equal(body.limitUsd, stored)
    }
  })

  t.test('a period change recomputes resetsAt and keeps the limit', async t => {
    const key = (await cp.call(createVirtualKey, { as, body: { name: 'k' } })).body.id
    const body = { period: 'day' as Period, limitUsd: 3, virtualKeyId: key }
    const { id } = (await cp.call(createBudget, { as, body })).body
    const changed = (await cp.call(updateBudget, { as, params: { id }, body: { period: 'total' } })).body
    t.match(changed, { period: 'total', resetsAt: null, limitUsd: 3 })
    const monthly = (await cp.call(updateBudget, { as, params: { id }, body: { period: 'month' } })).body
    t.equal(monthly.resetsAt, new Date(periodEndMs('month', Date.now()) ?? 0).toISOString())
  })

  t.test('a deleted budget is gone, and its scope and period are free again', async t => {
    const other = await team(cp)
    const by = other.owner.session
    const body = { period: 'week' as Period, limitUsd: 1 }
    const { id } = (await cp.call(createBudget, { as: by, body })).body
    t.equal((await cp.call(deleteBudget, { as: by, params: { id } })).status, 204)
    t.equal((await cp.call(deleteBudget, { as: by, params: { id } })).error?.message, 'Budget not found.')
    t.same((await cp.call(listBudgets, { as: by })).body, [])
    t.equal((await cp.call(createBudget, { as: by, body })).status, 201)
  })
})

t.test(
  'a new budget counts what its scope spent already in the current period; total from its creation',
  async t => {
    const cp = await startControlPlane(t)
    const ours = await team(cp)
    const theirs = await team(cp)
    const as = ours.owner.session
    const now = new Date()
    await spend(cp, ours.teamId, ours.virtualKeyId, 1_000_000_001, now)
    await spend(cp, ours.teamId, null, 2, now)
    await spend(cp, ours.teamId, null, 40_000_000_000, new Date(now.getTime() - 40 * 86_400_000))
    await spend(cp, theirs.teamId, null, 5_000_000_000, now)
    const created = async (period: Period, virtualKeyId: string | null) =>
      (await cp.call(createBudget, { as, body: { period, limitUsd: 10, virtualKeyId } })).body
    const { virtualKeyId } = ours
    for (const period of ['day', 'week', 'month'] as const) {
      t.equal(
        (await created(period, null)).spendUsd,
        1.000000003,
        `${period}, team-wide, exact to the nano-dollar`,
      )
      t.equal((await created(period, virtualKeyId)).spendUsd, 1.000000001, `${period}, one key`)
    }
    t.equal((await created('total', null)).spendUsd, 0)
    await spend(cp, ours.teamId, null, 7, new Date(Date.now() + 5))
    const total = (await cp.call(listBudgets, { as })).body.find(budget => budget.period === 'total')
    t.type(total?.spendUsd, 'number')
  },
)

t.test('a budget that comes back to an earlier period counts what was spent meanwhile', async t => {
  const cp = await startControlPlane(t)
  const { teamId, owner } = await team(cp)
  const as = owner.session
  const { id } = (await cp.call(createBudget, { as, body: { period: 'day', limitUsd: 10 } })).body
  t.equal((await cp.call(listBudgets, { as })).body[0]?.spendUsd, 0, 'the ledger holds a counter for today')
  const move = async (period: Period) =>
    (await cp.call(updateBudget, { as, params: { id }, body: { period } })).body.spendUsd
  await move('month')
  await spend(cp, teamId, null, 3_000_000_000, new Date())
  t.equal(await move('day'), 3)
})

t.test('budgets: 4xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const theirs = await team(cp)
  const as = ours.owner.session
  const body = { period: 'month' as Period, limitUsd: 5 }
  const { id } = (await cp.call(createBudget, { as, body })).body

  t.test('one budget per team, scope and period', async t => {
    const exists = { code: 'BUDGET_EXISTS', message: 'A budget for this scope and period already exists.' }
    const again = await cp.call(createBudget, { as, body })
    t.equal(again.status, 409)
    t.same(again.error, exists)
    const explicit = await cp.call(createBudget, { as, body: { ...body, virtualKeyId: null } })
    t.same(explicit.error, exists)
    t.equal(
      (await cp.call(createBudget, { as, body: { ...body, virtualKeyId: ours.virtualKeyId } })).status,
      201,
    )
    t.equal((await cp.call(createBudget, { as: theirs.owner.session, body })).status, 201)
    const daily = (await cp.call(createBudget, { as, body: { ...body, period: 'day' } })).body
    const moved = await cp.call(updateBudget, { as, params: { id: daily.id }, body: { period: 'month' } })
    t.equal(moved.status, 409)
    t.same(moved.error, exists)
  })

  t.test('two requests at once make one budget', async t => {
    const answers = await Promise.all(
      [1, 2, 3, 4].map(limitUsd => cp.call(createBudget, { as, body: { period: 'week', limitUsd } })),
    )
    t.same(answers.map(answer => answer.status).sort(), [201, 409, 409, 409])
  })

  t.test('a key outside the team, an unknown and a revoked one are not found', async t => {
    const revoked = (await cp.call(createVirtualKey, { as, body: { name: 'r' } })).body.id
    await cp.call(revokeVirtualKey, { as, params: { id: revoked } })
    for (const virtualKeyId of [theirs.virtualKeyId, randomUUID(), 'nonsense', revoked]) {
      const { status, error } = await cp.call(createBudget, { as, body: { ...body, virtualKeyId } })
      t.equal(status, 404)
      t.same(error, { code: 'NOT_FOUND', message: 'Virtual key not found.' })
    }
  })

  t.test('another team’s budget answers byte for byte like a missing one', async t => {
    const outsider = theirs.owner.session
    const change = { limitUsd: 1 }
    for (const missing of [randomUUID(), 'nonsense']) {
      const patched = await cp.call(updateBudget, { as: outsider, params: { id }, body: change })
      t.equal(patched.status, 404)
      const absent = await cp.call(updateBudget, { as: outsider, params: { id: missing }, body: change })
      t.equal(patched.text, absent.text)
      const deleted = await cp.call(deleteBudget, { as: outsider, params: { id } })
      t.equal(deleted.text, (await cp.call(deleteBudget, { as: outsider, params: { id: missing } })).text)
    }
    t.equal((await cp.call(listBudgets, { as })).body.find(budget => budget.id === id)?.limitUsd, 5)
  })

  t.test('fields are checked', async t => {
    const refusal = async (change: object) =>
      (await cp.call(createBudget, { as, body: { ...body, ...change } as never })).error?.message
    t.equal(await refusal({ limitUsd: undefined }), 'Required')
    t.equal(await refusal({ limitUsd: -1 }), 'Number must be greater than or equal to 0')
    t.equal(await refusal({ limitUsd: 9_000_001 }), 'Number must be less than or equal to 9000000')
    t.equal(await refusal({ limitUsd: '5' }), 'Expected number, received string')
    t.equal(
      await refusal({ period: 'year' }),
      "Invalid enum value. Expected 'day' | 'week' | 'month' | 'total', received 'year'",
    )
    const { error } = await cp.call(updateBudget, { as, params: { id }, body: {} })
    t.equal(error?.message, 'At least one of limitUsd or period must be provided.')
  })

  t.test('only owners and admins write, any role lists', async t => {
    for (const role of [ours.editor.session, ours.viewer.personalKey, ours.teamKey]) {
      t.equal((await cp.call(createBudget, { as: role, body })).status, 403)
      t.equal((await cp.call(updateBudget, { as: role, params: { id }, body: { limitUsd: 1 } })).status, 403)
      t.equal((await cp.call(deleteBudget, { as: role, params: { id } })).status, 403)
      t.equal((await cp.call(listBudgets, { as: role })).status, 200)
    }
    t.equal((await cp.call(listBudgets, { as: ours.virtualKey })).status, 401)
  })
})
