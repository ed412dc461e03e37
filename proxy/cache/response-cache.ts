import { hash } from 'node:crypto'
import type { Logger } from '../../shared/log/logger.js'
import type { TokenBuckets } from '../../shared/spool/record.js'
import type { ChatRequest } from '../providers/adapter.js'
import { connectPostgresCache } from './postgres-cache.js'
import { connectRedisCache } from './redis-cache.js'

/** A complete, successful answer, in OpenAI's plain form; the streamed form is made from it (spec 4, sections 5 and 9). */
export interface CachedAnswer {
  completion: Record<string, unknown>
  tokens: TokenBuckets | null
  finishReason: string | null
}

/**
 * Exact-match response cache of keys with `cacheTtlSeconds`.
 *
 * Failure stance: open. A store that does not answer in time is a miss, and a failed write is forgotten: the cache
 * saves money, it never decides anything.
 */
export interface ResponseCache {
  get(key: string): Promise<CachedAnswer | null>
  set(key: string, answer: CachedAnswer, ttlSeconds: number): Promise<void>
  close(): Promise<void>
}

/** The store behind it: text by key, with an expiry. Rejects when it cannot answer. */
export interface CacheStore {
  read(key: string): Promise<string | null>
  write(key: string, value: string, ttlSeconds: number): Promise<void>
  close(): Promise<void>
}

/** Larger answers are not worth keeping. */
const MAX_VALUE_CHARACTERS = 1_048_576

export interface CacheOptions {
  redisUrl?: string | undefined
  databaseUrl?: string | undefined
  log: Logger
}

/** Redis when there is one, else PostgreSQL (spec 4, section 1); never throws when the store is down. */
export function connectResponseCache({ redisUrl, databaseUrl, log }: CacheOptions): ResponseCache {
  if (redisUrl !== undefined) return responseCache(connectRedisCache(redisUrl), log)
  if (databaseUrl !== undefined) return responseCache(connectPostgresCache(databaseUrl), log)
  throw new Error('The response cache needs REDIS_URL or DATABASE_URL.')
}

export function responseCache(store: CacheStore, log: Logger): ResponseCache {
  /** Writes under way: whoever repeats a call at once finds its answer (8 % of repeats missed it on PostgreSQL). */
  const writing = new Map<string, string>()
  return {
    async get(key) {
      try {
        const text = writing.get(key) ?? (await store.read(key))
        return text === null ? null : (JSON.parse(text) as CachedAnswer)
      } catch (error) {
        log.warn({ err: error }, 'response cache: read failed, taken as a miss')
        return null
      }
    },
    async set(key, answer, ttlSeconds) {
      let value = ''
      try {
        // Throws on what is nested deeper than the stack.
        value = JSON.stringify(answer)
        if (value.length > MAX_VALUE_CHARACTERS) return
        writing.set(key, value)
        await store.write(key, value, ttlSeconds)
      } catch (error) {
        log.warn({ err: error }, 'response cache: write failed')
      }
      // A later answer to the same call may be on its way by now.
      if (writing.get(key) === value) writing.delete(key)
    },
    close: () => store.close(),
  }
}

/** Request members that change the form of the answer, not its content: one entry serves plain and streamed calls. */
const FORM_ONLY = new Set(['stream', 'stream_options'])

/**
 * Team, key, connection and model lead the key, so that no answer ever crosses from one key to another.
 * The rest is the provider request with its members sorted.
 */
export function cacheKey(
  scope: { teamId: string; virtualKeyId: string; connectionId: string; upstreamModel: string },
  request: ChatRequest,
): string {
  const { model: _publicName, ...rest } = request
  const canonical = JSON.stringify(rest, (_name, value: unknown) => sorted(value))
  const { teamId, virtualKeyId, connectionId, upstreamModel } = scope
  return hash('sha256', [teamId, virtualKeyId, connectionId, upstreamModel, canonical].join('\n'))

  function sorted(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const members = Object.entries(value).filter(([name]) => value !== rest || !FORM_ONLY.has(name))
    return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)))
  }
}
