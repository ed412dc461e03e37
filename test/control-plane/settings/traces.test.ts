import t from 'tap'
import { readTraceSettings, updateTraceSettings } from '../../../shared/contract/settings.js'
import { readTrace } from '../../../shared/contract/traces.js'
import { callRecord, ship } from '../../support/call-records.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

t.test('a new team captures nothing, redacts nothing and keeps traces for 90 days', async t => {
  const cp = await startControlPlane(t)
  const { viewer } = await team(cp)
  const { body } = await cp.call(readTraceSettings, { as: viewer.session })
  t.same(body, { capturePayloads: false, redactKeys: [], retentionDays: 90 })
})

t.test('PATCH changes what is given and keeps the rest', async t => {
  const cp = await startControlPlane(t)
  const { owner, admin } = await team(cp)
  const patch = (body: object, as = owner.session) => cp.call(updateTraceSettings, { body, as })
  t.same((await patch({ capturePayloads: true })).body, {
    capturePayloads: true,
    redactKeys: [],
    retentionDays: 90,
  })
  t.same((await patch({ redactKeys: ['a', 'b', 'a'] }, admin.personalKey)).body, {
    capturePayloads: true,
    redactKeys: ['a', 'b'],
    retentionDays: 90,
  })
  t.same((await patch({ retentionDays: 7, capturePayloads: false })).body, {
    capturePayloads: false,
    redactKeys: ['a', 'b'],
    retentionDays: 7,
  })
  t.match((await patch({})).body, { retentionDays: 7 })
  t.same((await patch({ redactKeys: [] })).body.redactKeys, [])
})

t.test('a change moves the team’s epoch, so that every proxy sees it with the next call', async t => {
  const cp = await startControlPlane(t)
  const { owner, teamId, ownerEpoch } = { ...(await team(cp)), ownerEpoch: 1 }
  await cp.call(updateTraceSettings, { body: { capturePayloads: true }, as: owner.session })
  const [row] = await cp.deps.sql`select epoch::int from teams where id = ${teamId}`
  t.same(row, { epoch: ownerEpoch + 1 })
  t.equal((await cp.deps.ledger.look(teamId, owner.userId)).epoch, ownerEpoch + 1)
})

t.test('owners and admins change settings, nobody else', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const body = { retentionDays: 1 }
  for (const as of [ours.editor.session, ours.viewer.personalKey, ours.teamKey]) {
    t.equal((await cp.call(updateTraceSettings, { body, as })).status, 403)
  }
  t.equal((await cp.call(updateTraceSettings, { body, as: ours.virtualKey })).status, 401)
  t.equal((await cp.call(updateTraceSettings, { body })).status, 401)
  t.equal((await cp.call(readTraceSettings, { as: ours.teamKey })).body.retentionDays, 90)
})

t.test('a wrong value answers 400 and changes nothing', async t => {
  const cp = await startControlPlane(t)
  const { owner } = await team(cp)
  const wrong: [object, string][] = [
    [{ retentionDays: 0 }, 'Number must be greater than or equal to 1'],
    [{ retentionDays: 3651 }, 'Number must be less than or equal to 3650'],
    [{ retentionDays: 1.5 }, 'Expected integer, received float'],
    [{ capturePayloads: 'yes' }, 'Expected boolean, received string'],
    [{ redactKeys: 'password' }, 'Expected array, received string'],
    [{ redactKeys: [''] }, 'redactKeys.0: String must contain at least 1 character(s)'],
    [{ retention_days: 3 }, "Unrecognized key(s) in object: 'retention_days'"],
  ]
  for (const [body, message] of wrong) {
    const { status, error } = await cp.call(updateTraceSettings, { body, as: owner.session })
    t.same({ status, message: error?.message }, { status: 400, message }, JSON.stringify(body))
  }
  const { body } = await cp.call(readTraceSettings, { as: owner.session })
  t.same(body, { capturePayloads: false, redactKeys: [], retentionDays: 90 })
})

t.test('what redactKeys names is never stored, from the next record on', async t => {
  const cp = await startControlPlane(t)
  const { teamId, owner } = await team(cp)
  await cp.call(updateTraceSettings, {
    body: { redactKeys: ['password', 'Authorization'] },
    as: owner.session,
  })
  const secret = 'hunter-canary'
  const args = JSON.stringify({ user: 'x', password: secret })
  const cut = `{"user":"x","password":"${secret}`
  const call = callRecord(teamId, {
    trace: { metadata: { PASSWORD: secret, kept: 1 } },
    span: {
      attributes: { authorization: [secret], kept: 'yes', nested: [{ password: { deep: secret } }] },
      payload: {
        input: [{ role: 'user', content: 'my password is fine', password: secret }],
        output: {
          tool_calls: [{ function: { name: 'login', arguments: args } }, { function: { arguments: cut } }],
        },
        variables: { password: secret, name: 'Ann' },
      },
    },
  })
  await ship(cp, [call])
  const { trace, spans } = (
    await cp.call(readTrace, { params: { id: call.span.trace.id }, as: owner.session })
  ).body
  t.same(trace.metadata, { PASSWORD: '[REDACTED]', kept: 1 })
  t.same(spans[0]?.attributes, {
    requestId: call.charge.requestId,
    cached: false,
    authorization: '[REDACTED]',
    kept: 'yes',
    nested: [{ password: '[REDACTED]' }],
  })
  t.same(spans[0]?.payload, {
    input: [{ role: 'user', content: 'my password is fine', password: '[REDACTED]' }],
    output: {
      tool_calls: [
        { function: { name: 'login', arguments: '{"user":"x","password":"[REDACTED]"}' } },
        { function: { arguments: '[REDACTED]' } },
      ],
    },
    variables: { password: '[REDACTED]', name: 'Ann' },
  })
  for (const table of ['spans', 'traces', 'charges', 'dead_letters']) {
    const [row] = await cp.deps.sql`
      select count(*)::int as n from ${cp.deps.sql(table)} as r where r::text like ${`%${secret}%`}`
    t.same(row, { n: 0 }, table)
  }
})
