import { randomUUID } from 'node:crypto'
import { type Test, test } from 'tap'
import { record } from '../../../control-plane/audit/record.js'
import {
  type AuditEventName,
  auditEventNames,
  listAuditActors,
  listPromptAudit,
  listTeamAudit,
  listToolAudit,
} from '../../../shared/contract/audit.js'
import { removeMember, updateMember } from '../../../shared/contract/teams.js'
import { createVirtualKey } from '../../../shared/contract/virtual-keys.js'
import { type ControlPlane, type Credential, startControlPlane } from '../../support/control-plane.js'
import { type SeededPerson, type SeededTeam, team } from '../../support/seed.js'

test('the trail has 39 events: the 16 of spec 1 and the 23 of spec 4', async t => {
  t.equal(auditEventNames.length, 39)
  t.equal(new Set(auditEventNames).size, 39)
})

test('the team’s trail is newest first, twenty at a time, a hundred at most, with its total', async t => {
  const { cp, mine } = await seeded(t)
  for (let n = 1; n <= 25; n++) await joined(cp, mine, mine.owner, `invite-${n}`)
  const first = (await read(cp, mine)).body
  t.match(first, { total: 25, page: 1, limit: 20 })
  t.same(namesOf(first), range(25, 6))
  t.match(first.data[0], {
    id: /-/,
    event: 'member_joined',
    createdAt: /\.\d{3}Z$/,
    promptId: null,
    target: null,
  })
  const second = (await read(cp, mine, { page: '2' })).body
  t.same(namesOf(second), range(5, 1))
  t.match(second, { total: 25, page: 2, limit: 20 })
  t.match((await read(cp, mine, { page: '3' })).body, { data: [], total: 25, page: 3 })
  t.same(namesOf((await read(cp, mine, { page: '4', limit: '7' })).body), range(4, 1))
  t.equal((await read(cp, mine, { limit: '100' })).body.data.length, 25)
  const tooMany = await read(cp, mine, { limit: '101' })
  t.equal(tooMany.status, 400)
  t.same(tooMany.error, { code: 'VALIDATION_ERROR', message: 'Number must be less than or equal to 100' })
})

test('events of one millisecond keep the order in which they were written', async t => {
  const { cp, mine } = await seeded(t, { now: () => 1_800_000_000_000 })
  for (let n = 1; n <= 9; n++) await joined(cp, mine, mine.owner, `invite-${n}`)
  t.same(namesOf((await read(cp, mine)).body), range(9, 1))
})

test('event and actorId narrow the trail and its total, alone and together', async t => {
  const { cp, mine } = await seeded(t)
  const as = mine.admin.session
  for (let n = 0; n < 3; n++) await cp.call(createVirtualKey, { as, body: { name: `${n}` } })
  await cp.call(createVirtualKey, { as: mine.owner.session, body: { name: 'theirs' } })
  await setRole(cp, mine, mine.admin, mine.viewer)
  await setRole(cp, mine, mine.owner, mine.editor)
  const totalOf = async (query: object) => {
    const { body } = await read(cp, mine, { ...query, limit: '1' })
    t.ok(body.data.length <= 1)
    return body.total
  }
  t.equal(await totalOf({}), 6)
  t.equal(await totalOf({ event: 'virtual_key_created' }), 4)
  t.equal(await totalOf({ event: 'virtual_key_created,member_role_updated' }), 6)
  t.equal(await totalOf({ event: ' member_role_updated , secret_set' }), 2)
  t.equal(await totalOf({ event: ['member_role_updated', 'virtual_key_created'] }), 6)
  t.equal(await totalOf({ event: 'secret_set' }), 0)
  t.equal(await totalOf({ event: '' }), 6, 'blank is no filter')
  t.equal(await totalOf({ actorId: mine.admin.userId }), 4)
  t.equal(await totalOf({ actorId: mine.admin.userId.toUpperCase() }), 4)
  t.equal(await totalOf({ actorId: mine.admin.userId, event: 'virtual_key_created' }), 3)
  t.equal(await totalOf({ actorId: mine.owner.userId, event: 'member_role_updated' }), 1)
  t.equal(await totalOf({ actorId: randomUUID() }), 0)
})

test('the filter takes each of the 39 names, and 400 says which one is unknown', async t => {
  const { cp, mine } = await seeded(t)
  t.equal((await read(cp, mine, { event: auditEventNames.join(',') })).status, 200)
  for (const event of auditEventNames) t.equal((await read(cp, mine, { event })).status, 200)
  for (const event of ['nonsense', 'team_renamed,nonsense', 'toString', 'Team_Renamed']) {
    const { status, error } = await read(cp, mine, { event })
    t.equal(status, 400)
    t.match(error, {
      code: 'VALIDATION_ERROR',
      message: /^Unknown event name '(nonsense|toString|Team_Renamed)'\.$/,
    })
  }
  const { error } = await read(cp, mine, { actorId: 'nonsense' })
  t.match(error, { code: 'VALIDATION_ERROR' })
})

test('target is the person of a role change or removal, also after they were removed; else null', async t => {
  const { cp, mine } = await seeded(t)
  const { editor } = mine
  await setRole(cp, mine, mine.owner, editor)
  await cp.call(removeMember, {
    as: mine.owner.session,
    params: { id: mine.teamId, userId: editor.userId },
  })
  await cp.call(createVirtualKey, { as: mine.owner.session, body: { name: 'Bot' } })
  const { data } = (await read(cp, mine)).body
  const target = { id: editor.userId, email: editor.email, name: 'The editor' }
  const actor = { id: mine.owner.userId, email: mine.owner.email, name: 'The owner' }
  t.same(
    data.map(row => [row.event, row.target, row.actor]),
    [
      ['virtual_key_created', null, actor],
      ['member_removed', target, actor],
      ['member_role_updated', target, actor],
    ],
  )
})

test('actors are everybody who acted, by email, removed members included, rows without a person left out', async t => {
  const { cp, mine } = await seeded(t)
  const other = await team(cp)
  t.same((await actors(cp, mine)).body, { data: [] })
  await joined(cp, mine, mine.viewer, 'a')
  await joined(cp, mine, mine.viewer, 'b')
  await joined(cp, mine, mine.admin, 'c')
  await joined(cp, other, other.owner, 'd')
  await record(cp.deps.sql, { teamId: mine.teamId, userId: null }, Date.now(), 'team_renamed', {
    from: 'a',
    to: 'b',
  })
  const leaver = { id: mine.teamId, userId: mine.viewer.userId }
  await cp.call(removeMember, { as: mine.viewer.session, params: leaver })
  t.same((await actors(cp, mine)).body, {
    data: [
      { id: mine.admin.userId, email: mine.admin.email, name: 'The admin', eventCount: 1 },
      { id: mine.viewer.userId, email: mine.viewer.email, name: 'The viewer', eventCount: 3 },
    ],
  })
  t.equal((await read(cp, mine)).body.total, 5)
  t.equal((await read(cp, mine, { event: 'team_renamed' })).body.data[0]?.actor, null)
})

test('team audit is for sessions of owners and admins; a Bearer key gets 401, editor and viewer 403', async t => {
  const { cp, mine } = await seeded(t)
  const keys: Credential[] = [
    mine.owner.personalKey,
    mine.viewer.personalKey,
    mine.teamKey,
    mine.virtualKey,
    // Sent on purpose, so it wins over the owner's cookie.
    { ...mine.owner.session, ...mine.owner.personalKey },
    {},
  ]
  const params = { id: mine.teamId }
  for (const endpoint of [listTeamAudit, listAuditActors]) {
    for (const as of keys) {
      const { status, error } = await cp.call(endpoint, { as, params })
      t.equal(status, 401)
      t.same(error, { code: 'UNAUTHORIZED', message: 'Authentication required.' })
    }
    for (const { session: as } of [mine.editor, mine.viewer]) {
      const { status, error } = await cp.call(endpoint, { as, params })
      t.equal(status, 403)
      t.same(error, { code: 'FORBIDDEN', message: 'Insufficient role for this action.' })
    }
    for (const { session: as } of [mine.owner, mine.admin])
      t.equal((await cp.call(endpoint, { as, params })).status, 200)
  }
})

test('another team’s trail is an unknown one’s, and nobody else’s events are in one’s own', async t => {
  const { cp, mine } = await seeded(t)
  const other = await team(cp)
  await joined(cp, other, other.owner, 'theirs')
  const as = mine.owner.session
  for (const endpoint of [listTeamAudit, listAuditActors]) {
    for (const id of [other.teamId, randomUUID(), 'nonsense']) {
      const { status, error } = await cp.call(endpoint, { as, params: { id } })
      t.equal(status, 404)
      t.same(error, { code: 'NOT_FOUND', message: 'Team not found.' })
    }
  }
  t.equal((await read(cp, mine)).body.total, 0)
  t.equal((await read(cp, mine, { actorId: other.owner.userId })).body.total, 0)
})

test('a prompt’s trail has its own events, newest first, for any member', async t => {
  const { cp, mine } = await seeded(t)
  const [promptId, otherId] = [await prompt(cp, mine), await prompt(cp, mine)]
  await promptEvent(cp, mine, 'prompt_created', promptId, { name: 'Greeting' })
  await promptEvent(cp, mine, 'version_committed', promptId, { versionNumber: 1, versionId: randomUUID() })
  await promptEvent(cp, mine, 'prompt_created', otherId, { name: 'Other' })
  for (const as of [mine.viewer.session, mine.viewer.personalKey, mine.teamKey]) {
    const { body } = await cp.call(listPromptAudit, { as, params: { id: promptId } })
    t.match(body, { total: 2, page: 1, limit: 20 })
    t.match(body.data, [
      { event: 'version_committed', metadata: { versionNumber: 1 } },
      { event: 'prompt_created' },
    ])
    t.same(Object.keys(body.data[0] ?? {}).sort(), ['createdAt', 'event', 'id', 'metadata'])
  }
  const as = mine.owner.session
  const second = await cp.call(listPromptAudit, {
    as,
    params: { id: promptId },
    query: { page: '2', limit: '1' },
  })
  t.match(second.body, { data: [{ event: 'prompt_created' }], total: 2, page: 2, limit: 1 })
  const tooMany = await cp.call(listPromptAudit, { as, params: { id: promptId }, query: { limit: '101' } })
  t.equal(tooMany.status, 400)
})

test('a tool’s trail has its version events and its bindings, each with the prompt it is about', async t => {
  const { cp, mine } = await seeded(t)
  const [promptId, toolId, otherId] = [await prompt(cp, mine), await tool(cp, mine), await tool(cp, mine)]
  const { sql } = cp.deps
  const actor = { teamId: mine.teamId, userId: mine.owner.userId }
  for (const [id, versionNumber] of [
    [toolId, 1],
    [otherId, 1],
    [toolId, 2],
  ] as const) {
    const metadata = { via: 'api', source: 'api', toolId: id, toolName: 'look_up', versionNumber } as const
    await record(sql, actor, Date.now(), 'tool_version_committed', metadata, { toolId: id })
  }
  const route = { toolId, toolName: 'look_up', promptAlias: null, fromToolAlias: 'production' }
  await record(sql, actor, Date.now(), 'prompt_tool_route_removed', route, { promptId, toolId })
  const { body } = await cp.call(listToolAudit, { as: mine.teamKey, params: { id: toolId } })
  t.equal(body.total, 3)
  t.same(
    body.data.map(row => [row.event, row.promptId, row.metadata.toolId]),
    [
      ['prompt_tool_route_removed', promptId, toolId],
      ['tool_version_committed', null, toolId],
      ['tool_version_committed', null, toolId],
    ],
  )
  t.same(Object.keys(body.data[0] ?? {}).sort(), ['createdAt', 'event', 'id', 'metadata', 'promptId'])
  const ofPrompt = await cp.call(listPromptAudit, { as: mine.teamKey, params: { id: promptId } })
  t.match(ofPrompt.body, { total: 1, data: [{ event: 'prompt_tool_route_removed' }] })
})

test('404: a missing, deleted or foreign prompt or tool; its events stay in the team’s trail', async t => {
  const { cp, mine } = await seeded(t)
  const other = await team(cp)
  const deletedAt = new Date()
  const prompts = [await prompt(cp, mine, deletedAt), await prompt(cp, other), randomUUID(), 'nonsense']
  const tools = [await tool(cp, mine, deletedAt), await tool(cp, other), randomUUID(), 'nonsense']
  const as = mine.owner.session
  for (const id of prompts) {
    const { status, error } = await cp.call(listPromptAudit, { as, params: { id } })
    t.equal(status, 404)
    t.same(error, { code: 'NOT_FOUND', message: 'Prompt not found.' })
  }
  for (const id of tools) {
    const { status, error } = await cp.call(listToolAudit, { as, params: { id } })
    t.equal(status, 404)
    t.same(error, { code: 'NOT_FOUND', message: 'Tool not found.' })
  }
  await promptEvent(cp, mine, 'prompt_deleted', prompts[0] ?? '', { name: 'Gone' })
  t.match((await read(cp, mine)).body.data, [{ event: 'prompt_deleted', promptId: prompts[0] }])
})

async function seeded(t: Test, overrides: { now?: () => number } = {}) {
  const cp = await startControlPlane(t, overrides)
  return { cp, mine: await team(cp) }
}

const read = (cp: ControlPlane, { teamId, owner }: SeededTeam, query: object = {}) =>
  cp.call(listTeamAudit, { as: owner.session, params: { id: teamId }, query })

const actors = (cp: ControlPlane, { teamId, owner }: SeededTeam) =>
  cp.call(listAuditActors, { as: owner.session, params: { id: teamId } })

/** A row that is told apart by its invite's id. */
const joined = (cp: ControlPlane, { teamId }: SeededTeam, { userId }: SeededPerson, inviteId: string) =>
  record(cp.deps.sql, { teamId, userId }, cp.deps.now(), 'member_joined', { role: 'viewer', inviteId })

const namesOf = (page: { data: { metadata: Record<string, unknown> }[] }) =>
  page.data.map(row => row.metadata.inviteId)

const range = (from: number, to: number) =>
  Array.from({ length: from - to + 1 }, (_, n) => `invite-${from - n}`)

const setRole = (cp: ControlPlane, { teamId }: SeededTeam, by: SeededPerson, of: SeededPerson) =>
  cp.call(updateMember, {
    as: by.session,
    params: { id: teamId, userId: of.userId },
    body: { role: of.role === 'viewer' ? 'editor' : 'viewer' },
  })

const promptEvent = <
  E extends Extract<AuditEventName, 'prompt_created' | 'version_committed' | 'prompt_deleted'>,
>(
  cp: ControlPlane,
  { teamId, owner }: SeededTeam,
  event: E,
  promptId: string,
  metadata: Parameters<typeof record<E>>[4],
) => record(cp.deps.sql, { teamId, userId: owner.userId }, Date.now(), event, metadata, { promptId })

async function prompt(
  cp: ControlPlane,
  { teamId }: SeededTeam,
  deletedAt: Date | null = null,
): Promise<string> {
  const row = { teamId, id: randomUUID(), name: 'Greeting', createdAt: new Date(), deletedAt }
  await cp.deps.sql`insert into prompts ${cp.deps.sql(row)}`
  return row.id
}

async function tool(
  cp: ControlPlane,
  { teamId }: SeededTeam,
  deletedAt: Date | null = null,
): Promise<string> {
  const id = randomUUID()
  const row = { teamId, id, name: `look_up_${id.slice(0, 8)}`, createdAt: new Date(), deletedAt }
  await cp.deps.sql`insert into tools ${cp.deps.sql(row)}`
  return id
}
