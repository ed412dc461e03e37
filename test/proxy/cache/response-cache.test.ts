import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { type Test, test } from 'tap'
import { connectPostgresCache } from '../../../proxy/cache/postgres-cache.js'
import { connectRedisCache } from '../../../proxy/cache/redis-cache.js'
import { type CacheStore, cacheKey, responseCache } from '../../../proxy/cache/response-cache.js'
import { ownRedis } from '../../shared/ledger/own-servers.js'
import { testDatabase } from '../../support/postgres.js'
import { testRedis } from '../../support/redis.js'

const log = pino({ level: 'silent' })
const answer = { completion: { id: 'x', choices: [] }, tokens: null, finishReason: 'stop' }
const scope = { teamId: 't', virtualKeyId: 'k', connectionId: 'c', upstreamModel: 'm' }
const request = { model: 'public', messages: [{ role: 'user', content: 'hi' }], temperature: 0 }

test('PostgreSQL keeps an answer until it expires', async t => {
  const { url } = await testDatabase(t)
  await keepsAnswers(t, connectPostgresCache(url))
})

test('Redis keeps an answer until it expires', async t => {
  const redis = testRedis(t)
  if (redis !== null) await keepsAnswers(t, connectRedisCache(redis.url))
})

async function keepsAnswers(t: Test, store: CacheStore) {
  const cache = responseCache(store, log)
  t.teardown(() => cache.close())
  const key = `key-${Math.random()}`
  t.equal(await settled(() => cache.get(key)), null)
  await cache.set(key, answer, 1)
  t.strictSame(await cache.get(key), answer)
  await new Promise(resolve => setTimeout(resolve, 1_200))
  t.equal(await cache.get(key), null)
}

/** The first read may come before the connection: a miss, by the cache's stance; writes need it open. */
async function settled<T>(read: () => Promise<T>): Promise<T> {
  await read()
  await new Promise(resolve => setTimeout(resolve, 200))
  return read()
}

test('a store that is down is a miss, never an error', async t => {
  const cache = responseCache(connectRedisCache('redis://127.0.0.1:1'), log)
  t.teardown(() => cache.close())
  t.equal(await cache.get('k'), null)
  await cache.set('k', answer, 10)
})

test('a cluster with a password keeps answers; away or frozen it is a miss within a second', async t => {
  if (testRedis(t) === null) return
  const node = await ownRedis(t, [
    ...['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'],
    ...['--requirepass', 'a secret', '--protected-mode', 'no'],
  ])
  const url = new URL(node.reach.redisUrl ?? '')
  url.password = 'a secret'
  const admin = new Redis(url.href)
  admin.on('error', () => {})
  t.teardown(() => admin.disconnect())
  await admin.cluster('ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot))
  while (!(await admin.cluster('INFO')).includes('cluster_state:ok')) await sleep(20)
  const cache = responseCache(connectRedisCache(`${url.href}, ${url.href}`), log)
  t.teardown(() => cache.close())
  await settled(() => cache.get('k'))
  await cache.set('k', answer, 60)
  t.strictSame(await cache.get('k'), answer)

  const isMissInTime = async (what: string) => {
    const beganAt = performance.now()
    t.equal(await Promise.race([cache.get('k'), sleep(3_000, 'nothing')]), null, what)
    t.ok(performance.now() - beganAt < 1_500, `${what}: ${performance.now() - beganAt} ms`)
  }
  node.freeze()
  await isMissInTime('frozen')
  node.thaw()
  await node.kill()
  await isMissInTime('just gone')
  await sleep(200)
  await isMissInTime('away')
})

test('one entry serves the plain and the streamed form, whatever the order of members', async t => {
  const key = cacheKey(scope, request)
  t.equal(cacheKey(scope, { ...request, stream: true, stream_options: { include_usage: true } }), key)
  const { messages, ...rest } = request
  t.equal(cacheKey(scope, { messages, ...rest }), key)
  t.equal(cacheKey(scope, { ...request, model: 'another public name of the same model' }), key)
})

test('another team, key, model or any other field is another entry', async t => {
  const keys = new Set([
    cacheKey(scope, request),
    cacheKey({ ...scope, teamId: 'u' }, request),
    cacheKey({ ...scope, virtualKeyId: 'l' }, request),
    cacheKey({ ...scope, upstreamModel: 'n' }, request),
    cacheKey(scope, { ...request, temperature: 1 }),
    cacheKey(scope, { ...request, messages: [{ role: 'user', content: 'hi', stream: true }] }),
  ])
  t.equal(keys.size, 6)
})

test('a call that is repeated at once finds the answer that is still on its way to the store', async t => {
  let stored = () => {}
  const slow: CacheStore = {
    read: async () => null,
    write: () =>
      new Promise(resolve => {
        stored = resolve
      }),
    close: async () => {},
  }
  const cache = responseCache(slow, log)
  const written = cache.set('k', answer, 10)
  t.strictSame(await cache.get('k'), answer)
  t.equal(await cache.get('another'), null)
  stored()
  await written
  t.equal(await cache.get('k'), null, 'from then on the store decides')
})
