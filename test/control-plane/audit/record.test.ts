/**
 * Each audited act writes one row, in its own transaction.
 */
import { type Test, test } from 'tap'
import { createFirstOwner } from '../../../control-plane/auth/first-owner.js'
import { createApiKey, revokeApiKey } from '../../../shared/contract/api-keys.js'
import { auditEventNames } from '../../../shared/contract/audit.js'
import { signUp } from '../../../shared/contract/auth.js'
import { updateConnection } from '../../../shared/contract/connections.js'
import { updateTraceSettings } from '../../../shared/contract/settings.js'
import { removeMember, updateMember, updateTeam } from '../../../shared/contract/teams.js'
import { createVirtualKey, updateVirtualKey } from '../../../shared/contract/virtual-keys.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { snapshotOf } from '../../support/foreign.js'
import { team } from '../../support/seed.js'
import { acts } from './acts.js'

interface StoredEvent {
  id: string
  event: string
  actorId: string | null
  metadata: object
  promptId: string | null
  toolId: string | null
  targetId: string | null
}

test('each audited act writes exactly one row, with its metadata, its actor and no secret', async t => {
  const cp = await startControlPlane(t)
  for (const [event, prepare] of acts) {
    const mine = await team(cp)
    const act = await prepare(cp, mine)
    const earlier = (await trailOf(cp, mine.teamId)).length
    const by = act.by ?? mine.owner
    const answer = await act.run(by.session)
    t.ok(answer.status < 300, `${event}: ${answer.text}`)
    const rows = (await trailOf(cp, mine.teamId)).slice(earlier)
    t.same(
      rows.map(row => row.event),
      [...(act.before ?? []), event],
    )
    const { id: _, ...row } = rows.at(-1) as StoredEvent
    const subject = act.subject?.((answer.body ?? {}) as object)
    t.same(row, {
      event,
      actorId: by.userId,
      metadata: act.metadata((answer.body ?? {}) as object),
      promptId: subject?.promptId ?? null,
      toolId: subject?.toolId ?? null,
      targetId: act.target ?? null,
    })
    const minted = /"key":"([^"]+)"/.exec(answer.text)?.[1]
    const text = JSON.stringify(await cp.deps.sql`select * from audit_events where team_id = ${mine.teamId}`)
    for (const secret of [...(act.secrets ?? []), minted ?? 'agh_sk_'])
      t.notOk(text.includes(secret), `${event} keeps a secret`)
  }
})

test('every event but those of evaluation is written by an act of this list', async t => {
  const evaluation = /^(dataset|eval_rule)_/
  const written = new Set<string>(acts.map(([event]) => event))
  const unwritten = auditEventNames.filter(name => !written.has(name) && !evaluation.test(name))
  t.same(unwritten, [])
})

test('a refused act writes no row', async t => {
  const cp = await startControlPlane(t)
  for (const [event, prepare] of acts) {
    const mine = await team(cp)
    const act = await prepare(cp, mine)
    const before = await trailOf(cp, mine.teamId)
    const refuse = act.refused ?? (() => act.run(mine.viewer.session))
    const { status } = await refuse()
    t.ok(status === 403 || status === 404 || status === 409, `${event}: ${status}`)
    t.same(await trailOf(cp, mine.teamId), before, event)
  }
})

test('a failure after the change rolls back both the change and its row', async t => {
  const cp = await startControlPlane(t)
  const { sql } = cp.deps
  await sql`create table refuse_commits (team_id uuid)`
  await sql`
    create function refuse_commit() returns trigger language plpgsql as $$
    begin
      if exists (select from refuse_commits r where r.team_id = new.team_id) then
        raise exception 'the commit fails';
      end if;
      return null;
    end $$`
  await sql`
    create constraint trigger refuse_commit after insert on audit_events deferrable initially deferred
    for each row execute function refuse_commit()`
  for (const [event, prepare] of acts) {
    const mine = await team(cp)
    const act = await prepare(cp, mine)
    const before = [await snapshotOf(cp, mine.teamId), await trailOf(cp, mine.teamId)]
    await sql`insert into refuse_commits ${sql({ teamId: mine.teamId })}`
    const { status } = await act.run((act.by ?? mine.owner).session)
    t.equal(status, 500, event)
    t.same([await snapshotOf(cp, mine.teamId), await trailOf(cp, mine.teamId)], before, event)
  }
})

test('an act that changes nothing is no event', async t => {
  const { cp, mine } = await seeded(t)
  const as = mine.owner.session
  const { teamId, viewer, virtualKeyId } = mine
  await cp.call(updateTeam, { as, params: { id: teamId }, body: { name: mine.name } })
  const member = { id: teamId, userId: viewer.userId }
  const kept = await cp.call(updateMember, { as, params: member, body: { role: 'viewer' } })
  t.equal(kept.body.role, 'viewer')
  await cp.call(updateTraceSettings, { as, body: { retentionDays: 90 } })
  await cp.call(updateTraceSettings, { as, body: {} })
  await cp.call(updateVirtualKey, {
    as,
    params: { id: virtualKeyId },
    body: { name: 'Seeded', maxRpm: null },
  })
  t.same(await trailOf(cp, teamId), [])
})

test('a personal key is marked as not team-scoped, on generation and on revocation', async t => {
  const { cp, mine } = await seeded(t)
  const as = mine.viewer.session
  const { body } = await cp.call(createApiKey, { as, body: { name: 'Mine' } })
  await cp.call(revokeApiKey, { as, params: { id: body.id.toUpperCase() } })
  const apiKeyId = body.id
  t.match(await trailOf(cp, mine.teamId), [
    { event: 'api_key_generated', metadata: { apiKeyId, name: 'Mine', teamScoped: false } },
    { event: 'api_key_revoked', metadata: { apiKeyId, teamScoped: false } },
  ])
})

test('leaving is a removal of oneself', async t => {
  const { cp, mine } = await seeded(t)
  const { userId, session: as } = mine.viewer
  await cp.call(removeMember, { as, params: { id: mine.teamId, userId } })
  t.match(await trailOf(cp, mine.teamId), [{ event: 'member_removed', actorId: userId, targetId: userId }])
})

test('signing up is no event of the new team: nobody joined by an invite', async t => {
  const cp = await startControlPlane(t)
  const { body } = await cp.call(signUp, {
    body: { email: 'first@example.com', password: 'a good password' },
  })
  t.same(await trailOf(cp, body.team.id), [])
})

test('the credentials that the first start hands out are in the trail, in the owner’s name', async t => {
  const cp = await startControlPlane(t)
  const owner = await createFirstOwner(cp.deps.sql)
  const trail = await trailOf(cp, owner?.teamId ?? '')
  t.match(trail, [{ event: 'api_key_generated', actorId: owner?.userId, metadata: { name: 'First key' } }])
  t.notOk(JSON.stringify(trail).includes(owner?.apiKey ?? 'aghapi_sk_'))
})

test('of two changes at once each row tells its own step', async t => {
  const { cp, mine } = await seeded(t)
  const params = { id: mine.virtualKeyId }
  const change = (maxRpm: number) =>
    cp.call(updateVirtualKey, { as: mine.owner.session, params, body: { maxRpm } })
  await Promise.all([change(1), change(2), change(2), change(1)])
  const trail = await trailOf(cp, mine.teamId)
  t.ok(trail.length >= 2 && trail.length <= 4)
  for (const row of trail) t.match(row, { event: 'virtual_key_updated', metadata: { changed: ['maxRpm'] } })
})

test('a hundred acts at once write a hundred rows', async t => {
  const { cp, mine } = await seeded(t)
  const mint = (n: number) =>
    cp.call(createVirtualKey, { as: mine.owner.session, body: { name: `Key ${n}` } })
  const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => mint(n)))
  const trail = await trailOf(cp, mine.teamId)
  t.equal(trail.length, 100)
  t.equal(new Set(trail.map(row => row.id)).size, 100)
  const minted = answers.map(answer => answer.body.id).sort()
  t.same(trail.map(row => (row.metadata as { virtualKeyId: string }).virtualKeyId).sort(), minted)
})

test('no row of the trail can be changed, deleted or truncated', async t => {
  const { cp, mine } = await seeded(t)
  const { sql } = cp.deps
  await cp.call(createVirtualKey, { as: mine.owner.session, body: { name: 'Bot' } })
  const before = await trailOf(cp, mine.teamId)
  const refusal = { message: /append-only/ }
  await t.rejects(sql`update audit_events set event = 'team_renamed' where team_id = ${mine.teamId}`, refusal)
  await t.rejects(sql`delete from audit_events where team_id = ${mine.teamId}`, refusal)
  await t.rejects(sql`truncate audit_events`, refusal)
  t.same(await trailOf(cp, mine.teamId), before)
})

test('a connection whose key alone is replaced lists apiKey, and neither key', async t => {
  const { cp, mine } = await seeded(t)
  const as = mine.owner.session
  const prepare = acts.find(([event]) => event === 'connection_created')?.[1]
  const created = (await (await prepare?.(cp, mine))?.run(as))?.body as { id: string }
  await cp.call(updateConnection, { as, params: created, body: { apiKey: 'sk-rotated-canary' } })
  const trail = await trailOf(cp, mine.teamId)
  t.match(trail[1], { event: 'connection_updated', metadata: { changed: ['apiKey'] } })
  t.notOk(JSON.stringify(trail).includes('canary'))
})

async function seeded(t: Test) {
  const cp = await startControlPlane(t)
  return { cp, mine: await team(cp) }
}

/** The rows of a team, oldest first. */
async function trailOf({ deps: { sql } }: ControlPlane, teamId: string): Promise<StoredEvent[]> {
  const rows = await sql<StoredEvent[]>`
    select id, event, actor_id, metadata, prompt_id, tool_id, target_id from audit_events
    where team_id = ${teamId} order by position`
  return [...rows]
}
