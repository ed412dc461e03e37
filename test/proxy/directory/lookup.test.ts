import t, { type Test } from 'tap'
import { createControlPlaneClient } from '../../../proxy/control-plane-client.js'
import { createDirectory, type DirectoryOptions, EPOCH_UNKNOWN } from '../../../proxy/directory/lookup.js'
import { createMetrics } from '../../../proxy/metrics.js'
import { createLogger } from '../../../shared/log/logger.js'
import {
  SECRET,
  standInControlPlane,
  teamRecord,
  testVault,
  virtualKey,
} from '../../support/stand-in-control-plane.js'

const TEAM = '00000000-0000-4000-8000-00000000000a'
const key = (hash: string) => ({ kind: 'key' as const, hash })

async function setUp(t: Test, over: Partial<DirectoryOptions> = {}) {
  const plane = await standInControlPlane(t)
  plane.credentials.set('one', virtualKey(TEAM, { id: 'one' }))
  plane.teams.set(TEAM, teamRecord(TEAM, 'http://provider.example/v1'))
  const client = createControlPlaneClient(plane.url, SECRET)
  t.teardown(() => client.close())
  const log = createLogger('directory', 'silent')
  const directory = createDirectory({ client, vault: testVault, metrics: createMetrics(false), log, ...over })
  return { plane, directory }
}

const later = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

t.test('a cached credential is found without waiting and without a look-up', async t => {
  const { plane, directory } = await setUp(t)
  const first = await directory.find(key('one'))
  t.equal(first?.credential.id, 'one')
  const second = directory.find(key('one'), 1)
  t.notOk(second instanceof Promise)
  t.equal(second, first, 'the very same object')
  t.equal(plane.lookUps.length, 1)
})

t.test('a team comes with opened keys, prices per token and the budgets of each key', async t => {
  const { plane, directory } = await setUp(t)
  const budget = { period: 'day' as const, capNano: 5 }
  plane.teams.set(
    TEAM,
    teamRecord(TEAM, 'http://provider.example/v1', {
      budgets: [
        { id: 'wide', virtualKeyId: null, ...budget },
        { id: 'own', virtualKeyId: 'one', ...budget },
        { id: 'other', virtualKeyId: 'two', ...budget },
      ],
    }),
  )
  const entry = await directory.find(key('one'))
  t.equal(entry?.team.connectionById.get('connection')?.apiKey, 'sk-provider')
  t.same(entry?.team.modelByName.get('fast')?.prices, {
    input: 150,
    output: 600,
    cacheRead: 150,
    cacheWrite: 150,
  })
  t.same(entry?.budgets, [
    { budgetId: 'wide', ...budget },
    { budgetId: 'own', ...budget },
  ])
  t.equal(entry?.team.budgetsFor('one'), entry?.budgets, 'computed once')
  t.equal(entry?.team.budgetsFor(null).length, 1)
})

t.test('a connection whose key does not open leaves the others working', async t => {
  const { plane, directory } = await setUp(t)
  const team = teamRecord(TEAM, 'http://provider.example/v1')
  const foreign = { ...team.connections[0], id: 'moved' } as (typeof team.connections)[0]
  plane.teams.set(TEAM, { ...team, connections: [...team.connections, foreign] })
  const entry = await directory.find(key('one'))
  t.same([...(entry?.team.connectionById.keys() ?? [])], ['connection'])
})

t.test('calls that need the same load share it', async t => {
  const { plane, directory } = await setUp(t)
  const entries = await Promise.all(Array.from({ length: 50 }, () => directory.find(key('one'))))
  t.equal(plane.lookUps.length, 1)
  t.equal(new Set(entries).size, 1)
})

t.test('a newer announced epoch is loaded before the answer', async t => {
  const { plane, directory } = await setUp(t)
  await directory.find(key('one'))
  plane.teams.set(TEAM, teamRecord(TEAM, 'http://provider.example/v1', { epoch: 2, capturePayloads: true }))
  t.notOk((directory.find(key('one')) as Awaited<ReturnType<typeof directory.find>>)?.team.capturePayloads)
  const entry = await directory.find(key('one'), 2)
  t.ok(entry?.team.capturePayloads)
  t.match(plane.lookUps[1], { knownEpoch: 1, announcedEpoch: 2 })
  t.equal(directory.find(key('one'), 2), entry)
})

t.test('a load that began before the announcement does not pass for a reload', async t => {
  const { plane, directory } = await setUp(t)
  plane.beforeLookUp = () => later(50)
  const early = directory.find(key('one'))
  await later(60)
  await early
  plane.beforeLookUp = async () => {
    const snapshot = plane.teams.get(TEAM)
    await later(50)
    if (snapshot) plane.teams.set(TEAM, snapshot)
  }
  const stale = directory.find(key('one'), 2)
  await later(20)
  plane.beforeLookUp = async () => {}
  const fresh = directory.find(key('one'), 3)
  await stale
  plane.teams.set(TEAM, teamRecord(TEAM, 'http://provider.example/v1', { epoch: 3 }))
  t.equal((await fresh)?.team.epoch, 3)
})

t.test('when a team moves, it travels once for all of its keys', async t => {
  const { plane, directory } = await setUp(t)
  const hashes = Array.from({ length: 20 }, (_, index) => `key${index}`)
  for (const hash of hashes) plane.credentials.set(hash, virtualKey(TEAM, { id: hash }))
  for (const hash of hashes) await directory.find(key(hash))
  plane.teams.set(TEAM, teamRecord(TEAM, 'http://provider.example/v1', { epoch: 2 }))
  plane.lookUps.length = 0
  const entries = await Promise.all(hashes.map(hash => directory.find(key(hash), 2)))
  t.ok(entries.every(entry => entry?.team.epoch === 2))
  t.equal(plane.lookUps.filter(query => query.knownEpoch === 1).length, 1)
})

t.test('an epoch below the cached one is checked with the control plane at most once a second', async t => {
  const { plane, directory } = await setUp(t)
  await directory.find(key('one'))
  for (let index = 0; index < 20; index++) await directory.find(key('one'), EPOCH_UNKNOWN)
  t.equal(plane.lookUps.length, 1, 'just loaded')
  await later(1_050)
  plane.teams.set(TEAM, teamRecord(TEAM, 'http://provider.example/v1', { epoch: 2 }))
  const entries = []
  for (let index = 0; index < 20; index++) entries.push(await directory.find(key('one'), EPOCH_UNKNOWN))
  t.equal(plane.lookUps.length, 2)
  t.equal(entries[0]?.team.epoch, 2)
})

t.test(
  'while the control plane is away what is cached serves, unless something newer was announced',
  async t => {
    const { plane, directory } = await setUp(t)
    const entry = await directory.find(key('one'))
    await plane.close()
    t.equal(await directory.find(key('one'), 1), entry)
    await later(1_050)
    t.equal(await directory.find(key('one'), EPOCH_UNKNOWN), entry)
    await t.rejects(Promise.resolve(directory.find(key('one'), 2)), { code: 'UNAVAILABLE', status: 503 })
    await t.rejects(Promise.resolve(directory.find(key('unknown'))), { code: 'UNAVAILABLE' })
    await plane.reopen()
    plane.teams.set(TEAM, teamRecord(TEAM, 'http://provider.example/v1', { epoch: 2 }))
    t.equal((await directory.find(key('one'), 2))?.team.epoch, 2)
  },
)

t.test('a hanging control plane holds up a call that has a copy for 250 ms at most', async t => {
  const { plane, directory } = await setUp(t)
  const entry = await directory.find(key('one'))
  await later(1_050)
  plane.beforeLookUp = () => later(3_000)
  const startedAt = performance.now()
  t.equal(await directory.find(key('one'), EPOCH_UNKNOWN), entry)
  t.ok(performance.now() - startedAt < 2_000)
  t.notOk(directory.find(key('one'), EPOCH_UNKNOWN) instanceof Promise, 'the next one does not wait at all')
})

t.test('a broken answer is refused and the last good one goes on serving', async t => {
  const { plane, directory } = await setUp(t)
  const entry = await directory.find(key('one'))
  const broken = { ...teamRecord(TEAM, 'x', { epoch: 2 }), models: null } as never
  plane.teams.set(TEAM, broken)
  await t.rejects(Promise.resolve(directory.find(key('one'), 2)), { code: 'UNAVAILABLE' })
  t.equal(directory.find(key('one'), 1), entry)
})

t.test('an unknown credential is not asked for again within two seconds', async t => {
  const { plane, directory } = await setUp(t)
  t.equal(await directory.find(key('nobody')), null)
  t.equal(directory.find(key('nobody')), null)
  t.equal(plane.lookUps.length, 1)
  plane.credentials.set('nobody', virtualKey(TEAM, { id: 'now' }))
  await later(2_050)
  t.equal((await directory.find(key('nobody')))?.credential.id, 'now')
})

t.test('a revoked credential is forgotten with the reload that its revocation announces', async t => {
  const { plane, directory } = await setUp(t)
  await directory.find(key('one'))
  plane.credentials.delete('one')
  t.equal(await directory.find(key('one'), 2), null)
  t.equal(directory.find(key('one')), null)
})

t.test('a key presented as a cookie does not find the key', async t => {
  const { plane, directory } = await setUp(t)
  await directory.find(key('one'))
  await directory.find({ kind: 'session', hash: 'one' })
  t.match(plane.lookUps[1], { credential: { kind: 'session' } })
})

t.test('what is cached is bounded, and what is used stays', async t => {
  const bounds = { credentials: 10, teams: 4, unknown: 10, loads: 5 }
  const { plane, directory } = await setUp(t, { bounds })
  for (let index = 0; index < 100; index++) {
    plane.credentials.set(`k${index}`, virtualKey(TEAM, { id: `k${index}` }))
    await directory.find(key(`k${index}`))
    t.notOk(directory.find(key('k0')) instanceof Promise)
    await directory.find(key(`missing${index}`))
  }
  const again = directory.find(key('k50'))
  t.ok(again instanceof Promise, 'long unused: loaded again')
  await again
  plane.beforeLookUp = () => later(50)
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) => directory.find(key(`guess${index}`))),
  )
  t.equal(results.filter(result => result.status === 'rejected').length, 15, 'a flood of guesses is refused')
})

t.test('after dropAll everything is loaded anew, and a load under way is not taken for it', async t => {
  const { plane, directory } = await setUp(t)
  await directory.find(key('one'))
  plane.beforeLookUp = () => later(50)
  const before = directory.find(key('one'), 5)
  await later(10)
  directory.dropAll()
  const after = directory.find(key('one'))
  await Promise.all([before, after])
  t.equal(plane.lookUps.length, 3)
})

t.test('the owner of a trace is asked for once, and unknown while the control plane is away', async t => {
  const { plane, directory } = await setUp(t)
  plane.traceOwners.set('mine', 'own').set('theirs', 'foreign')
  t.equal(await directory.traceOwner(TEAM, 'mine'), 'own')
  t.equal(await directory.traceOwner(TEAM, 'theirs'), 'foreign')
  t.equal(await directory.traceOwner(TEAM, 'new'), 'unknown')
  await plane.close()
  t.equal(await directory.traceOwner(TEAM, 'theirs'), 'foreign')
  t.equal(await directory.traceOwner(TEAM, 'other'), 'unknown')
})

t.test('seeding is asked for once at a time, and fails with UNAVAILABLE', async t => {
  const { plane, directory } = await setUp(t)
  await Promise.all([directory.seed(TEAM), directory.seed(TEAM)])
  t.same(plane.seeds, [TEAM])
  await plane.close()
  await t.rejects(directory.seed(TEAM), { code: 'UNAVAILABLE' })
})
