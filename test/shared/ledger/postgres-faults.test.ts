import { test } from 'tap'
import { POSTGRES_DEADLINE_MS } from '../../../shared/ledger/deadline.js'
import { periodKey } from '../../../shared/ledger/period.js'
import { faultCases } from './fault-cases.js'
import { ownPostgres } from './own-servers.js'
import { amounts, connected, held, PATIENT_MS, seeded } from './subject.js'

test('faults of PostgreSQL', async t => {
  faultCases(t, ownPostgres, POSTGRES_DEADLINE_MS)
})

test('after a crash of PostgreSQL nothing stays held, and the charges restore what was spent', async t => {
  const server = await ownPostgres(t)
  const ledger = await connected(t, { ...server.reach, deadlineMs: PATIENT_MS })
  const team = await seeded(ledger, 100)
  await ledger.publish(team.teamId, { epoch: 3, revokedIds: [team.teamId] })
  await ledger.settle(await held(ledger, team.call()), { costNano: 10, tokens: 5 })
  const orphan = await held(ledger, team.call({ estimateNano: 90, maxTpm: 5 }))
  await server.kill()
  await server.start()
  const after = await connected(t, { ...server.reach, deadlineMs: PATIENT_MS })
  const [figures] = await team.spend(after)
  t.equal(figures?.heldNano, 0, 'holds and held amounts went together')
  await after.settle(orphan, { costNano: 60, tokens: 5 })
  const [budget] = team.budgets
  const counter = { budgetId: budget?.budgetId ?? '', periodKey: periodKey('total', Date.now()) }
  await after.raise(team.teamId, [{ ...counter, settledNano: 70 }])
  t.equal(amounts(await team.spend(after)), '70+0')
  t.same(await after.look(team.teamId, team.teamId), { epoch: 3, revoked: true }, 'these were durable')
  await held(after, team.call())
})
