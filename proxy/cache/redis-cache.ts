import { Redis } from 'ioredis'
import { connectCluster } from '../../shared/redis/cluster.js'
import type { CacheStore } from './response-cache.js'

/** A cached answer is not worth a longer wait than this. */
const DEADLINE_MS = 250
const PREFIX = 'agh:cache:'

/** @param url redis:// or rediss://; several, separated by commas, name a cluster. */
export function connectRedisCache(url: string): CacheStore {
  const options = { commandTimeout: DEADLINE_MS, maxRetriesPerRequest: 0 }
  const urls = url.split(',').map(each => each.trim())
  const redis =
    urls.length > 1
      ? connectCluster(urls, options)
      : new Redis(url, { ...options, enableOfflineQueue: false })
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
