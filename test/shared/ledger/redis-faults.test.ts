import { setTimeout as wait } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Test, test } from 'tap'
import { REDIS_DEADLINE_MS } from '../../../shared/ledger/deadline.js'
import { testRedis } from '../../support/redis.js'
import { faultCases } from './fault-cases.js'
import { ownRedis } from './own-servers.js'
import { amounts, connected, held, PATIENT_MS, seeded } from './subject.js'

test('faults of Redis', async t => {
  if (testRedis(t) === null) return
  faultCases(t, t => ownRedis(t), REDIS_DEADLINE_MS)
})

test('scripts that Redis has forgotten are sent again', async t => {
  const redis = testRedis(t)
  if (redis === null) return
  const ledger = await connected(t, {
    redisUrl: redis.url,
    keyPrefix: redis.prefix,
    deadlineMs: PATIENT_MS,
  })
  const admin = adminOf(t, redis.url)
  const team = await seeded(ledger, 1000)
  await admin.script('FLUSH')
  const holds = await Promise.all([1, 2, 3].map(() => held(ledger, team.call())))
  await admin.script('FLUSH')
  await Promise.all(holds.map(hold => ledger.settle(hold, { costNano: 2, tokens: 1 })))
  t.equal(amounts(await team.spend(ledger)), '6+0')
})

test('the scripts run on a Redis Cluster, which wants all their keys in one slot', async t => {
  if (testRedis(t) === null) return
  const node = await ownRedis(t, ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'])
  const url = node.reach.redisUrl ?? ''
  const admin = adminOf(t, url)
  await admin.cluster('ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot))
  while (!(await admin.cluster('INFO')).includes('cluster_state:ok')) await wait(20)
  const ledger = await connected(t, { redisUrl: `${url},${url}`, deadlineMs: PATIENT_MS })
  const teams = await Promise.all([1, 2, 3, 4].map(() => seeded(ledger, 100, 1000)))
  const limits = { maxRpm: 9, maxTpm: 900 }
  const holds = await Promise.all(teams.map(team => held(ledger, team.call(limits))))
  await Promise.all(holds.map(hold => ledger.extend(hold, 12)))
  await ledger.renew(holds)
  await Promise.all(holds.map(hold => ledger.settle(hold, { costNano: 3, tokens: 1 })))
  for (const team of teams) {
    await ledger.publish(team.teamId, { epoch: 2, revokedIds: [team.credentialId] })
    t.equal(amounts(await team.spend(ledger)), '3+0 3+0')
    t.same(await ledger.admit(team.call()), { kind: 'revoked', epoch: 2 })
  }
  await t.resolves(ledger.ping())
})

test('every key of a team carries its hash tag and leaves by itself', async t => {
  const redis = testRedis(t)
  if (redis === null) return
  const ledger = await connected(t, {
    redisUrl: redis.url,
    keyPrefix: redis.prefix,
    deadlineMs: PATIENT_MS,
  })
  const admin = adminOf(t, redis.url)
  const team = await seeded(ledger, 1000)
  await held(ledger, team.call({ maxRpm: 5, maxTpm: 500 }))
  await ledger.publish(team.teamId, { epoch: 1, revokedIds: [team.credentialId] })
  const keys = await admin.keys(`${redis.prefix}*`)
  t.equal(keys.length, 5)
  for (const key of keys) {
    t.match(key, `${redis.prefix}{${team.teamId}}:`)
    const seconds = await admin.ttl(key)
    t.ok(seconds > 0 && seconds <= 45 * 86_400, `${key} leaves in ${seconds} s`)
  }
})

test('a window keeps a minute of buckets, not a history', async t => {
  const redis = testRedis(t)
  if (redis === null) return
  const reach = { redisUrl: redis.url, keyPrefix: redis.prefix, deadlineMs: PATIENT_MS }
  const admin = adminOf(t, redis.url)
  const team = await seeded(await connected(t, reach), 1_000_000)
  for (let seconds = 0; seconds < 200; seconds += 10) {
    const ledger = await connected(t, { ...reach }, { clockOffsetMs: seconds * 1000 })
    await ledger.release(await held(ledger, team.call({ maxRpm: 1000, maxTpm: 1000 })))
  }
  const key = `${redis.prefix}{${team.teamId}}:window:${team.credentialId}`
  t.ok((await admin.hlen(key)) <= 3 + 2 * 7, 'buckets of 0, 10, … 60 s ago')
})

function adminOf(t: Test, url: string): Redis {
  const admin = new Redis(url)
  t.teardown(() => admin.disconnect())
  return admin
}
