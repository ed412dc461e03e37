import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { changeTeam } from '../../../control-plane/gateway/publish.js'
import { createBudget } from '../../../shared/contract/budgets.js'
import { createConnection } from '../../../shared/contract/connections.js'
import { lookUpDirectory } from '../../../shared/contract/internal.js'
import { createModel } from '../../../shared/contract/models.js'
import { revokeVirtualKey, updateVirtualKey } from '../../../shared/contract/virtual-keys.js'
import type { DirectoryAnswer } from '../../../shared/directory/records.js'
import { hashToken } from '../../../shared/secrets/token.js'
import { type ControlPlane, type Credential, startControlPlane } from '../../support/control-plane.js'
import { type SeededTeam, team } from '../../support/seed.js'

interface Asked {
  knownEpoch?: number
  announcedEpoch?: number
}

const byKey = ({ key = '' }: Credential) => ({ kind: 'key' as const, hash: hashToken(key) })
const bySession = ({ cookie = '' }: Credential) => ({
  kind: 'session' as const,
  hash: hashToken(cookie.replace('agh_session=', '')),
})

async function setUp(test: Test) {
  const cp = await startControlPlane(test)
  const ours = await team(cp)
  const as = { key: cp.deps.config.internalToken }
  const ask = async (
    credential: ReturnType<typeof byKey> | ReturnType<typeof bySession> | null,
    asked: Asked & { teamId?: string } = {},
  ): Promise<DirectoryAnswer> => (await cp.call(lookUpDirectory, { as, body: { credential, ...asked } })).body
  return { cp, ours, ask }
}

/** A connection with two models, budgets in three scopes, made through the API. */
async function furnish(cp: ControlPlane, { owner, virtualKeyId }: SeededTeam) {
  const as = owner.session
  const key = 'sk-provider-1234'
  const body = { provider: 'openai' as const, label: 'c', apiKey: key }
  const connectionId = (await cp.call(createConnection, { as, body })).body.id
  const custom = {
    ...body,
    provider: 'openai_compatible' as const,
    config: { base_url: 'http://127.0.0.1:9/v1/' },
  }
  const compatibleId = (await cp.call(createConnection, { as, body: custom })).body.id
  const model = { publicName: 'gpt-4o', upstreamModel: 'gpt-4o', connectionId }
  await cp.call(createModel, { as, body: model })
  await cp.call(createModel, {
    as,
    body: { ...model, publicName: 'free', pricing: null, connectionId: compatibleId },
  })
  for (const [period, limitUsd, scope] of [
    ['day', 8_999_999.9999, virtualKeyId],
    ['month', 0.1, null],
    ['total', 0.0001, null],
  ] as const)
    await cp.call(createBudget, { as, body: { period, limitUsd, virtualKeyId: scope } })
  return { connectionId, compatibleId, key }
}

t.test('a virtual key is found by its hash, with all that its team’s calls need', async t => {
  const { cp, ours, ask } = await setUp(t)
  const { connectionId, compatibleId, key } = await furnish(cp, ours)
  await cp.deps
    .sql`update teams set capture_payloads = true, redact_keys = '{ssn,card_number}' where id = ${ours.teamId}`
  const { credential, team: record } = await ask(byKey(ours.virtualKey))
  t.same(credential, {
    id: ours.virtualKeyId,
    teamId: ours.teamId,
    kind: 'virtual_key',
    userId: null,
    role: null,
    allowedModels: null,
    allowedProviders: null,
    maxRpm: null,
    maxTpm: null,
    cacheTtlSeconds: null,
  })
  if (record === null) return t.fail('no team')
  t.match(record, { teamId: ours.teamId, capturePayloads: true, redactKeys: ['ssn', 'card_number'] })
  const [epoch] = await cp.deps.sql`select epoch from teams where id = ${ours.teamId}`
  t.equal(record.epoch, Number(epoch?.epoch))

  const urls = Object.fromEntries(record.connections.map(({ id, baseUrl }) => [id, baseUrl]))
  t.same(urls, { [connectionId]: 'https://api.openai.com/v1', [compatibleId]: 'http://127.0.0.1:9/v1' })
  for (const { id, sealedKey } of record.connections)
    t.equal(cp.deps.vault.open(sealedKey, { teamId: ours.teamId, rowId: id }), key)
  t.notMatch(JSON.stringify(record), key)

  const [free, gpt] = record.models
  t.match(free, { publicName: 'free', connectionId: compatibleId, pricing: null, maxOutputTokens: 16_384 })
  t.match(gpt, {
    publicName: 'gpt-4o',
    upstreamModel: 'gpt-4o',
    connectionId,
    contextWindow: 128_000,
    pricing: { inputPerMTok: 2.5, outputPerMTok: 10, cachedInputPerMTok: 1.25, cacheWritePerMTok: null },
  })
  t.ok(Math.abs((gpt?.createdAtMs ?? 0) - Date.now()) < 60_000)
})

t.test('budgets come team-wide first, then by id, their caps exact to the nano-dollar', async t => {
  const { cp, ours, ask } = await setUp(t)
  await furnish(cp, ours)
  const budgets = (await ask(byKey(ours.virtualKey))).team?.budgets ?? []
  t.same(
    budgets.map(budget => budget.virtualKeyId),
    [null, null, ours.virtualKeyId],
  )
  const [first, second] = budgets
  t.ok((first?.id ?? '') < (second?.id ?? ''))
  t.same(Object.fromEntries(budgets.map(({ period, capNano }) => [period, capNano])), {
    day: 8_999_999_999_900_000,
    month: 100_000_000,
    total: 100_000,
  })
})

t.test('API keys and sessions are found with the person’s current role', async t => {
  const { cp, ours, ask } = await setUp(t)
  const { editor, teamId } = ours
  const personal = {
    id: editor.personalKeyId,
    teamId,
    kind: 'api_key',
    userId: editor.userId,
    role: 'editor',
  }
  t.match((await ask(byKey(editor.personalKey))).credential, personal)
  const session = { id: editor.sessionId, teamId, kind: 'session', userId: editor.userId, role: 'editor' }
  t.match((await ask(bySession(editor.session))).credential, session)
  const teamScoped = { id: ours.teamKeyId, teamId, kind: 'team_api_key', userId: null, role: null }
  t.match((await ask(byKey(ours.teamKey))).credential, teamScoped)

  await cp.deps.sql`update members set role = 'viewer' where user_id = ${editor.userId}`
  t.equal((await ask(byKey(editor.personalKey))).credential?.role, 'viewer')
  t.equal((await ask(bySession(editor.session))).credential?.role, 'viewer')
})

t.test('a revoked key, an expired session, a removed member and an unknown hash are nobody', async t => {
  const { cp, ours, ask } = await setUp(t)
  const { sql } = cp.deps
  const nobody = { credential: null, team: null }
  const as = ours.owner.session
  await cp.call(revokeVirtualKey, { as, params: { id: ours.virtualKeyId } })
  t.same(await ask(byKey(ours.virtualKey)), nobody)
  await sql`update api_keys set revoked_at = now() where id = ${ours.teamKeyId}`
  t.same(await ask(byKey(ours.teamKey)), nobody)
  await sql`update sessions set expires_at = now() where id = ${ours.viewer.sessionId}`
  t.same(await ask(bySession(ours.viewer.session)), nobody)
  await sql`delete from members where user_id = ${ours.editor.userId}`
  t.same(await ask(byKey(ours.editor.personalKey)), nobody)
  t.same(await ask(bySession(ours.editor.session)), nobody)
  t.same(await ask({ kind: 'key', hash: 'f'.repeat(64) }), nobody)
  t.same(
    await ask({ kind: 'session', hash: byKey(ours.admin.personalKey).hash }),
    nobody,
    'a key is not a session',
  )
  t.same(
    await ask({ kind: 'key', hash: bySession(ours.admin.session).hash }),
    nobody,
    'a session is not a key',
  )
})

t.test('a team is found by id alone; a stranger’s id and no id are nobody', async t => {
  const { ours, ask } = await setUp(t)
  const answer = await ask(null, { teamId: ours.teamId })
  t.equal(answer.credential, null)
  t.equal(answer.team?.teamId, ours.teamId)
  for (const teamId of [randomUUID(), 'nonsense'])
    t.same(await ask(null, { teamId }), { credential: null, team: null })
  t.same(await ask(null), { credential: null, team: null })
})

t.test('the team is left out when the proxy’s epoch is current; the credential is always fresh', async t => {
  const { cp, ours, ask } = await setUp(t)
  const key = byKey(ours.virtualKey)
  const epoch = (await ask(key)).team?.epoch ?? 0
  const current = await ask(key, { knownEpoch: epoch })
  t.equal(current.team, null)
  t.equal(current.credential?.id, ours.virtualKeyId)
  const as = ours.owner.session
  await cp.call(updateVirtualKey, { as, params: { id: ours.virtualKeyId }, body: { allowedModels: ['one'] } })
  const next = await ask(key, { knownEpoch: epoch, announcedEpoch: epoch + 1 })
  t.equal(next.team?.epoch, epoch + 1)
  t.same(next.credential?.allowedModels, ['one'])
})

t.test('only the other agh process may ask', async t => {
  const { cp, ours } = await setUp(t)
  const body = { credential: byKey(ours.virtualKey) }
  for (const as of [{}, ours.virtualKey, ours.owner.personalKey, ours.owner.session, ours.teamKey])
    t.equal((await cp.call(lookUpDirectory, { as, body })).status, 401)
})

t.test('an announced change is waited for: the answer never shows the state before it', async t => {
  const { cp, ours, ask } = await setUp(t)
  const key = byKey(ours.virtualKey)
  const epoch = (await ask(key)).team?.epoch ?? 0
  let asked: Promise<DirectoryAnswer> | null = null
  let early = false
  // The proxy asks in the moment between the announcement and the commit.
  const ledger = {
    ...cp.deps.ledger,
    publish: async (teamId: string, change: { epoch: number }) => {
      await cp.deps.ledger.publish(teamId, change)
      if (asked !== null) return
      asked = ask(key, { knownEpoch: epoch, announcedEpoch: change.epoch })
      asked.then(() => {
        early = true
      })
      await sleep(100)
      t.notOk(early, 'the answer waits for the commit')
    },
  }
  await changeTeam({ ...cp.deps, ledger }, ours.teamId, async tx => {
    await tx`update virtual_keys set allowed_models = '{narrowed}' where id = ${ours.virtualKeyId}`
  })
  const answer = await (asked as unknown as Promise<DirectoryAnswer>)
  t.equal(answer.team?.epoch, epoch + 1)
  t.same(answer.credential?.allowedModels, ['narrowed'])
})

t.test('an announcement that was rolled back is taken back by whoever asks about it', async t => {
  const { cp, ours, ask } = await setUp(t)
  const key = byKey(ours.virtualKey)
  const epoch = (await ask(key)).team?.epoch ?? 0
  // The control plane died between its announcement and its commit.
  await cp.deps.ledger.publish(ours.teamId, { epoch: epoch + 1 })
  const answer = await ask(key, { knownEpoch: epoch, announcedEpoch: epoch + 1 })
  t.equal(answer.team, null)
  t.equal(answer.credential?.id, ours.virtualKeyId)
  t.equal((await cp.deps.ledger.look(ours.teamId, ours.virtualKeyId)).epoch, epoch)
})

t.test('a ledger that forgot the epoch learns it again from the next question', async t => {
  const { cp, ours, ask } = await setUp(t)
  await changeTeam(cp.deps, ours.teamId, async () => {})
  const key = byKey(ours.virtualKey)
  const epoch = (await ask(key)).team?.epoch ?? 0
  await cp.deps.ledger.retract(ours.teamId, epoch, 0)
  await ask(key, { knownEpoch: epoch, announcedEpoch: 0 })
  const live = async () => (await cp.deps.ledger.look(ours.teamId, ours.virtualKeyId)).epoch
  for (let n = 0; n < 100 && (await live()) < epoch; n++) await sleep(10)
  t.equal(await live(), epoch)
})

t.test('writers and readers at once: what is labelled with an epoch is never older than it', async t => {
  const { cp, ours, ask } = await setUp(t)
  const key = byKey(ours.virtualKey)
  const first = (await ask(key)).team?.epoch ?? 0
  let isWriting = true
  const write = async () => {
    for (let n = 1; n <= 25; n++) {
      await changeTeam(cp.deps, ours.teamId, async tx => {
        await tx`update virtual_keys set allowed_models = ${[String(n)]} where id = ${ours.virtualKeyId}`
        await tx`update teams set redact_keys = ${[String(n)]} where id = ${ours.teamId}`
      })
    }
    isWriting = false
  }
  const read = async () => {
    while (isWriting) {
      const { epoch: announcedEpoch } = await cp.deps.ledger.look(ours.teamId, ours.virtualKeyId)
      const { credential, team: record } = await ask(key, { announcedEpoch })
      const written = String((record?.epoch ?? 0) - first)
      if (announcedEpoch < first || written === '0') continue
      t.ok((record?.epoch ?? 0) >= announcedEpoch, 'the announced change is in the answer')
      t.same(record?.redactKeys, [written])
      t.same(credential?.allowedModels, [written])
    }
  }
  await Promise.all([write(), read(), read()])
})
