import { connectRedis } from '../../shared/redis/connect.js'
import type { CacheStore } from './response-cache.js'

/** A cached answer is not worth a longer wait than this. */
const DEADLINE_MS = 250
const PREFIX = 'agh:cache:'

/** @param url redis:// or rediss://; several, separated by commas, name a cluster. */
export function connectRedisCache(url: string): CacheStore {
  const options = { commandTimeout: DEADLINE_MS, maxRetriesPerRequest: 0 }
  const redis = connectRedis(url, { ...options, enableOfflineQueue: false }, options)
  // Without a listener ioredis prints every failed reconnection; reads report what matters.
  redis.on('error', () => {})
  return {
    read: key => redis.get(PREFIX + key),
    write: async (key, value, ttlSeconds) => {
      await redis.set(PREFIX + key, value, 'EX', ttlSeconds)
    },
    close: async () => redis.disconnect(),
  }
}
