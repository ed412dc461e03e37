import { test } from 'tap'
import { RedisLedger } from '../../../shared/ledger/redis-ledger.js'
import { RedisStore } from '../../../shared/ledger/redis-store.js'
import { testRedis } from '../../support/redis.js'
import { ledgerConformance } from './conformance.js'
import { connected, PATIENT_MS, silent } from './subject.js'

test('the ledger on Redis', async t => {
  const redis = testRedis(t)
  if (redis === null) return
  const store = new RedisStore(redis.url, silent, PATIENT_MS)
  t.teardown(() => store.close())
  await store.ready(1000)
  const reach = { redisUrl: redis.url, keyPrefix: redis.prefix, deadlineMs: PATIENT_MS }
  ledgerConformance(t, {
    reach,
    connect: (t, tuning) => connected(t, reach, tuning),
    at: tuning => new RedisLedger(store, { ...tuning, keyPrefix: redis.prefix }),
  })
})
