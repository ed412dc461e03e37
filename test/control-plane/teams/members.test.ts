import { randomUUID } from 'node:crypto'
import { type Test, test } from 'tap'
import { inTransaction } from '../../../control-plane/db/sql.js'
import { createApiKey, listApiKeys, revokeApiKey } from '../../../shared/contract/api-keys.js'
import { getMe } from '../../../shared/contract/auth.js'
import {
  getTeam,
  listMembers,
  removeMember,
  updateMember,
  updateTeam,
} from '../../../shared/contract/teams.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { person, type SeededPerson, type SeededTeam, team } from '../../support/seed.js'

const LAST_OWNER = { code: 'CONFLICT', message: 'A team needs at least one owner.' }
const INSUFFICIENT = { code: 'FORBIDDEN', message: 'Insufficient role for this action.' }

test('200: every member reads the team and its members; owner and admin rename it', async t => {
  const { cp, mine } = await seeded(t)
  const id = { id: mine.teamId }
  for (const as of [mine.viewer.session, mine.editor.personalKey, mine.teamKey]) {
    t.match((await cp.call(getTeam, { as, params: id })).body, { id: mine.teamId, name: mine.name })
  }
  const members = await cp.call(listMembers, { as: mine.viewer.session, params: id })
  t.same(members.body.data.map(member => member.role).sort(), ['admin', 'editor', 'owner', 'viewer'])
  t.match(members.body.data[0], { userId: /-/, email: /@/, name: /The/, joinedAt: /Z$/ })
  const renamed = await cp.call(updateTeam, {
    as: mine.admin.personalKey,
    params: id,
    body: { name: ' New ' },
  })
  t.equal(renamed.body.name, 'New')
})

test('400: PATCH of a team without a name says Required', async t => {
  const { cp, mine } = await seeded(t)
  const response = await cp.app.inject({
    method: 'PATCH',
    url: `/api/v1/teams/${mine.teamId}`,
    headers: { authorization: `Bearer ${mine.owner.personalKey.key}` },
  })
  t.equal(response.statusCode, 400)
  t.same(response.json(), { error: { code: 'VALIDATION_ERROR', message: 'Required' } })
})

test('404: a foreign team, an unknown one and nonsense are the same answer', async t => {
  const { cp, mine } = await seeded(t)
  const foreign = await team(cp)
  const answers = await Promise.all(
    [foreign.teamId, randomUUID(), 'nonsense'].flatMap(id => [
      cp.call(getTeam, { as: mine.owner.session, params: { id } }),
      cp.call(listMembers, { as: mine.owner.session, params: { id } }),
      cp.call(updateTeam, { as: mine.owner.session, params: { id }, body: { name: 'Taken' } }),
    ]),
  )
  t.same(new Set(answers.map(answer => answer.text)), new Set([answers[0]?.text]))
  t.same(answers[0]?.error, { code: 'NOT_FOUND', message: 'Team not found.' })
  t.equal(
    (await cp.call(getTeam, { as: foreign.owner.session, params: { id: foreign.teamId } })).body.name,
    foreign.name,
  )
})

test('an owner gives any role; it holds for the person’s next call, and proxies are told', async t => {
  const { cp, mine } = await seeded(t)
  const before = await cp.deps.ledger.look(mine.teamId, mine.viewer.personalKeyId)
  for (const role of ['admin', 'owner', 'viewer', 'editor'] as const) {
    const answer = await setRole(cp, mine, mine.owner, mine.viewer, role)
    t.match(answer.body, { userId: mine.viewer.userId, role })
    t.equal((await cp.call(getMe, { as: mine.viewer.personalKey })).body.team.role, role)
  }
  const after = await cp.deps.ledger.look(mine.teamId, mine.viewer.personalKeyId)
  t.ok(after.epoch >= before.epoch + 4)
  t.equal(after.revoked, false)
})

test('an admin sets editor and viewer, and nothing else', async t => {
  const { cp, mine } = await seeded(t)
  const other = await person(cp, mine.teamId, 'admin')
  t.equal((await setRole(cp, mine, mine.admin, mine.viewer, 'editor')).status, 200)
  t.equal((await setRole(cp, mine, mine.admin, mine.editor, 'viewer')).status, 200)
  t.same((await setRole(cp, mine, mine.admin, mine.viewer, 'admin')).error, INSUFFICIENT)
  t.same((await setRole(cp, mine, mine.admin, mine.viewer, 'owner')).error, INSUFFICIENT)
  t.same((await setRole(cp, mine, mine.admin, mine.owner, 'editor')).error, INSUFFICIENT)
  t.same((await setRole(cp, mine, mine.admin, other, 'editor')).error, INSUFFICIENT)
  t.same((await remove(cp, mine, mine.admin, mine.owner)).error, INSUFFICIENT)
  t.same((await remove(cp, mine, mine.admin, other)).error, INSUFFICIENT)
  t.equal((await remove(cp, mine, mine.admin, mine.viewer)).status, 204)
})

test('editors and viewers change nobody and remove nobody but themselves', async t => {
  const { cp, mine } = await seeded(t)
  for (const actor of [mine.editor, mine.viewer]) {
    t.same((await setRole(cp, mine, actor, actor, 'owner')).error, INSUFFICIENT)
    t.same((await remove(cp, mine, actor, mine.owner)).error, INSUFFICIENT)
    t.same((await removeId(cp, mine, actor, randomUUID())).error, INSUFFICIENT)
    t.equal((await remove(cp, mine, actor, actor)).status, 204)
    t.equal((await cp.call(getMe, { as: actor.session })).status, 401)
  }
})

test('409: the last owner cannot leave or be lowered; with a second one they can', async t => {
  const { cp, mine } = await seeded(t)
  t.same((await remove(cp, mine, mine.owner, mine.owner)).error, LAST_OWNER)
  t.same((await setRole(cp, mine, mine.owner, mine.owner, 'admin')).error, LAST_OWNER)
  await setRole(cp, mine, mine.owner, mine.admin, 'owner')
  t.equal((await remove(cp, mine, mine.owner, mine.owner)).status, 204)
  t.same((await remove(cp, mine, mine.admin, mine.admin)).error, LAST_OWNER)
})

test('two owners who leave at the same moment do not leave the team without one', async t => {
  const { cp, mine } = await seeded(t)
  const second = await person(cp, mine.teamId, 'owner')
  const answers = await Promise.all([
    remove(cp, mine, mine.owner, mine.owner),
    remove(cp, mine, second, second),
  ])
  t.same(answers.map(answer => answer.status).sort(), [204, 409])
})

test('a removed member’s keys and sessions in the team stop at once; other teams keep theirs', async t => {
  const { cp, mine } = await seeded(t)
  const other = await team(cp)
  const { sql } = cp.deps
  await sql`insert into members ${sql({ teamId: other.teamId, userId: mine.editor.userId, role: 'viewer', joinedAt: new Date() })}`
  t.equal((await remove(cp, mine, mine.owner, mine.editor)).status, 204)
  t.equal((await cp.call(getMe, { as: mine.editor.session })).status, 401)
  t.equal((await cp.call(getMe, { as: mine.editor.personalKey })).status, 401)
  for (const id of [mine.editor.personalKeyId, mine.editor.sessionId]) {
    t.equal((await cp.deps.ledger.look(mine.teamId, id)).revoked, true, 'marked for every proxy')
  }
  t.equal((await sql`select 1 from members where user_id = ${mine.editor.userId}`).length, 1)
  // The team that took them back does not bring the old key back to life.
  await sql`insert into members ${sql({ teamId: mine.teamId, userId: mine.editor.userId, role: 'editor', joinedAt: new Date() })}`
  t.equal((await cp.call(getMe, { as: mine.editor.personalKey })).status, 401)
})

test('404: somebody of another team is no member here', async t => {
  const { cp, mine } = await seeded(t)
  const foreign = await team(cp)
  const answers = []
  for (const userId of [foreign.viewer.userId, randomUUID(), 'nonsense']) {
    answers.push(await removeId(cp, mine, mine.owner, userId))
    answers.push(
      await cp.call(updateMember, {
        as: mine.owner.session,
        params: { id: mine.teamId, userId },
        body: { role: 'editor' },
      }),
    )
  }
  for (const answer of answers) t.same(answer.error, { code: 'NOT_FOUND', message: 'Member not found.' })
  t.equal((await cp.call(getMe, { as: foreign.viewer.session })).body.team.role, 'viewer')
})

async function seeded(t: Test) {
  const cp = await startControlPlane(t)
  return { cp, mine: await team(cp) }
}

const setRole = (
  cp: ControlPlane,
  { teamId }: SeededTeam,
  actor: SeededPerson,
  target: SeededPerson,
  role: SeededPerson['role'],
) =>
  cp.call(updateMember, { as: actor.session, params: { id: teamId, userId: target.userId }, body: { role } })

const removeId = (cp: ControlPlane, { teamId }: SeededTeam, actor: SeededPerson, userId: string) =>
  cp.call(removeMember, { as: actor.session, params: { id: teamId, userId } })

const remove = (cp: ControlPlane, mine: SeededTeam, actor: SeededPerson, target: SeededPerson) =>
  removeId(cp, mine, actor, target.userId)

test('a key that is revoked while its owner is removed is revoked, and the owner removed', async t => {
  const { cp, mine } = await seeded(t)
  // Each in the middle of its transaction when the other one starts.
  const [revoked, removed] = await inTransaction(cp.deps.sql, async tx => {
    await tx`lock table audit_events in share mode`
    const revoking = cp.call(revokeApiKey, {
      as: mine.editor.session,
      params: { id: mine.editor.personalKeyId },
    })
    await waiting(cp, 1)
    const removing = cp.call(removeMember, {
      as: mine.owner.session,
      params: { id: mine.teamId, userId: mine.editor.userId },
    })
    await waiting(cp, 2)
    return [revoking, removing] as const
  })
  t.equal((await revoked).status, 204)
  t.equal((await removed).status, 204)
})

test('a person who is removed makes no key any more, neither an own one nor one of the team', async t => {
  const { cp, mine } = await seeded(t)
  const [removed, ...made] = await inTransaction(cp.deps.sql, async tx => {
    await tx`lock table audit_events in share mode`
    const removing = cp.call(removeMember, {
      as: mine.owner.session,
      params: { id: mine.teamId, userId: mine.admin.userId },
    })
    await waiting(cp, 1)
    const making = [true, false].map(teamScoped =>
      cp.call(createApiKey, { as: mine.admin.personalKey, body: { name: 'Late', teamScoped } }),
    )
    await waiting(cp, 3)
    return [removing, ...making] as const
  })
  t.equal((await removed).status, 204)
  for (const answer of await Promise.all(made)) t.equal(answer.status, 401)
  const { body } = await cp.call(listApiKeys, { as: mine.owner.session })
  t.notOk(body.some(key => key.name === 'Late'))
})

/** Until so many transactions wait for a lock. */
async function waiting({ deps }: ControlPlane, count: number): Promise<void> {
  for (let found = 0; found < count; ) {
    const [row] = await deps.sql<{ waiting: number }[]>`
      select count(*)::int as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`
    found = row?.waiting ?? 0
  }
}
