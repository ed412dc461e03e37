import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Deps } from '../../../control-plane/deps.js'
import { changeTeam, republish, startRepublisher } from '../../../control-plane/gateway/publish.js'
import { type Ledger, LedgerUnavailable } from '../../../shared/ledger/ledger.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

/** The control plane's own ledger, with its publishing in the test's hand and everything it was told. */
function watched(ledger: Ledger) {
  const said: { epoch: number; revokedIds: readonly string[] }[] = []
  const retracted: [number, number][] = []
  const control = { isDown: false, beforePublish: async (_epoch: number): Promise<void> => {} }
  const watching: Ledger = {
    ...ledger,
    look: (...args) => ledger.look(...args),
    publish: async (teamId, change) => {
      await control.beforePublish(change.epoch)
      if (control.isDown) throw new LedgerUnavailable(new Error('test'))
      said.push({ epoch: change.epoch, revokedIds: change.revokedIds ?? [] })
      await ledger.publish(teamId, change)
    },
    retract: async (teamId, from, to) => {
      retracted.push([from, to])
      await ledger.retract(teamId, from, to)
    },
  }
  return { ledger: watching, said, retracted, control }
}

async function setUp(test: Test) {
  const cp = await startControlPlane(test)
  const { teamId } = await team(cp)
  const { ledger, ...watch } = watched(cp.deps.ledger)
  const deps: ControlPlane['deps'] = { ...cp.deps, ledger }
  return { cp, deps, teamId, ...watch }
}

const rename = (name: string) => async (tx: Deps['sql']) => {
  await tx`select ${name}`
}
const committedEpoch = async ({ sql }: Deps, teamId: string) =>
  Number((await sql`select epoch from teams where id = ${teamId}`)[0]?.epoch)
const outbox = async ({ sql }: Deps) =>
  (await sql`select epoch, revoked_ids from ledger_outbox order by epoch`).map(row => ({ ...row }))

t.test('a change is announced before it is committed, and once more after', async t => {
  const { deps, teamId, control } = await setUp(t)
  const before = await committedEpoch(deps, teamId)
  const seenWhilePublishing: number[] = []
  control.beforePublish = async () => {
    seenWhilePublishing.push(await committedEpoch(deps, teamId))
  }
  const result = await changeTeam(deps, teamId, async () => 'the answer')
  t.equal(result, 'the answer')
  t.same(seenWhilePublishing, [before, before + 1])
  t.equal(await committedEpoch(deps, teamId), before + 1)
  t.equal((await deps.ledger.look(teamId, randomUUID())).epoch, before + 1)
})

t.test('concurrent writers of a team get epochs one after the other', async t => {
  const { deps, teamId, said, control } = await setUp(t)
  const before = await committedEpoch(deps, teamId)
  control.beforePublish = () => sleep(5)
  await Promise.all([1, 2, 3, 4].map(n => changeTeam(deps, teamId, rename(`writer ${n}`))))
  const firstSaid = [...new Set(said.map(change => change.epoch))]
  t.same(
    firstSaid,
    [1, 2, 3, 4].map(n => before + n),
  )
  t.equal(await committedEpoch(deps, teamId), before + 4)
})

t.test('writers of different teams do not wait for each other', async t => {
  const { cp, deps, teamId, control } = await setUp(t)
  const other = await team(cp)
  let release = () => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  let isFirst = true
  control.beforePublish = async () => {
    if (!isFirst) return
    isFirst = false
    await held
  }
  const slow = changeTeam(deps, teamId, rename('slow'))
  while (isFirst) await sleep(1)
  await changeTeam(deps, other.teamId, rename('quick'))
  release()
  await slow
})

t.test('a change that throws is rolled back and never announced', async t => {
  const { deps, teamId, said } = await setUp(t)
  const before = await committedEpoch(deps, teamId)
  await t.rejects(
    changeTeam(deps, teamId, async tx => {
      await tx`update teams set name = 'lost' where id = ${teamId}`
      throw new Error('refused')
    }),
    /refused/,
  )
  t.equal(await committedEpoch(deps, teamId), before)
  t.same(said, [])
})

t.test('an unknown team is not found', async t => {
  const { deps } = await setUp(t)
  await t.rejects(changeTeam(deps, randomUUID(), rename('nobody')), { code: 'NOT_FOUND' })
})

t.test('a rollback after the announcement takes it back', async t => {
  const { deps, teamId, said, retracted } = await setUp(t)
  const before = await committedEpoch(deps, teamId)
  // A deferred constraint fails at the commit itself, when the announcement is already out.
  await deps.sql`create table deferred (id int primary key, other int references deferred deferrable initially deferred)`
  await t.rejects(
    changeTeam(deps, teamId, async tx => {
      await tx`insert into deferred values (1, 2)`
    }),
    { code: '23503' },
  )
  t.equal(said.length, 1)
  t.same(retracted, [[before + 1, before]])
  t.equal(await committedEpoch(deps, teamId), before)
  t.equal((await deps.ledger.look(teamId, randomUUID())).epoch, before)

  await changeTeam(deps, teamId, rename('next'))
  t.equal((await deps.ledger.look(teamId, randomUUID())).epoch, before + 1)
})

t.test('a writer that takes the epoch of a rolled back one is not taken back', async t => {
  const { deps, teamId } = await setUp(t)
  const before = await committedEpoch(deps, teamId)
  await deps.sql`create table deferred (id int primary key, other int references deferred deferrable initially deferred)`
  const failing = Array.from({ length: 8 }, (_, n) =>
    changeTeam(deps, teamId, async tx => {
      await tx`insert into deferred values (${n * 2}, ${n * 2 + 1})`
    }).catch(() => 'failed'),
  )
  const working = Array.from({ length: 8 }, (_, n) => changeTeam(deps, teamId, rename(`works ${n}`)))
  await Promise.all([...failing, ...working])
  t.equal(await committedEpoch(deps, teamId), before + 8)
  t.equal((await deps.ledger.look(teamId, randomUUID())).epoch, before + 8)
})

t.test('a change whose connection dies before the commit is taken back', async t => {
  const { deps, teamId, control } = await setUp(t)
  const before = await committedEpoch(deps, teamId)
  let backend = 0
  control.beforePublish = async () => {
    control.beforePublish = async () => {}
    // Announced, but the server has lost the transaction: nobody knows this yet.
    await deps.ledger.publish(teamId, { epoch: before + 1 })
    await deps.sql`select pg_terminate_backend(${backend})`
    // The announcement itself arrives when the transaction has long failed.
    await sleep(300)
  }
  await t.rejects(
    changeTeam(deps, teamId, async tx => {
      backend = Number((await tx`select pg_backend_pid() as pid`)[0]?.pid)
    }),
  )
  await sleep(400)
  t.equal(await committedEpoch(deps, teamId), before)
  t.equal((await deps.ledger.look(teamId, randomUUID())).epoch, before)
})

t.test('with the ledger away a change is committed, remembered, and announced when it is back', async t => {
  const { deps, teamId, said, control } = await setUp(t)
  const before = await committedEpoch(deps, teamId)
  const revoked = randomUUID()
  control.isDown = true
  await changeTeam(deps, teamId, rename('away 1'), { revokedIds: [revoked] })
  await changeTeam(deps, teamId, rename('away 2'))
  t.equal(await committedEpoch(deps, teamId), before + 2)
  t.same(await outbox(deps), [
    { epoch: String(before + 1), revokedIds: [revoked] },
    { epoch: String(before + 2), revokedIds: [] },
  ])
  t.equal(await republish(deps), false)
  t.equal((await outbox(deps)).length, 2)

  control.isDown = false
  t.equal(await republish(deps), true)
  t.same(said, [
    { epoch: before + 1, revokedIds: [revoked] },
    { epoch: before + 2, revokedIds: [] },
  ])
  t.same(await outbox(deps), [])
  t.same(await deps.ledger.look(teamId, revoked), { epoch: before + 2, revoked: true })
})

t.test('a passing fault of the ledger is over when the change is answered', async t => {
  const { deps, teamId, control } = await setUp(t)
  const before = await committedEpoch(deps, teamId)
  control.isDown = true
  control.beforePublish = async () => {
    control.beforePublish = async () => {
      control.isDown = false
    }
  }
  await changeTeam(deps, teamId, rename('hiccup'))
  t.equal((await deps.ledger.look(teamId, randomUUID())).epoch, before + 1)
  t.same(await outbox(deps), [])
})

t.test('a change that rolls back leaves nothing in the outbox', async t => {
  const { deps, teamId, control } = await setUp(t)
  await deps.sql`create table deferred (id int primary key, other int references deferred deferrable initially deferred)`
  control.isDown = true
  await t.rejects(
    changeTeam(deps, teamId, async tx => {
      await tx`insert into deferred values (1, 2)`
    }),
  )
  t.same(await outbox(deps), [])
})

t.test('the republisher empties the outbox by itself, from several control planes at once', async t => {
  const { deps, teamId, control } = await setUp(t)
  const before = await committedEpoch(deps, teamId)
  control.isDown = true
  for (let n = 0; n < 5; n++) await changeTeam(deps, teamId, rename(`away ${n}`))
  const republishers = [startRepublisher(deps, 20), startRepublisher(deps, 20)]
  await sleep(100)
  t.equal((await outbox(deps)).length, 5, 'still away')
  control.isDown = false
  for (let n = 0; n < 100 && (await outbox(deps)).length > 0; n++) await sleep(20)
  await Promise.all(republishers.map(republisher => republisher.stop()))
  t.same(await outbox(deps), [])
  t.equal((await deps.ledger.look(teamId, randomUUID())).epoch, before + 5)
})
