import postgres from 'postgres'
import { deleteExpiredResponses, findResponse, upsertResponse } from './queries.js'
import type { CacheStore } from './response-cache.js'

const DEADLINE_MS = 1_000
const SWEEP_MS = 60_000

/** The response cache of installations without Redis: an unlogged table, swept each minute. */
export function connectPostgresCache(databaseUrl: string): CacheStore {
  const sql = postgres(databaseUrl, {
    max: 4,
    connect_timeout: 2,
    onnotice: () => {},
    connection: { application_name: 'agh response cache', statement_timeout: DEADLINE_MS },
  })
  const sweeper = setInterval(() => deleteExpiredResponses(sql).catch(() => {}), SWEEP_MS).unref()
  return {
    read: key => withDeadline(findResponse(sql, key)),
    write: async (key, value, ttlSeconds) => {
      await withDeadline(upsertResponse(sql, key, value, ttlSeconds))
    },
    close: async () => {
      clearInterval(sweeper)
      await sql.end({ timeout: 1 })
    },
  }
}

/** postgres.js has no deadline of its own: it waits for ever on a frozen server. */
async function withDeadline<T>(query: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${DEADLINE_MS} ms`)), DEADLINE_MS)
  })
  try {
    return await Promise.race([query, late])
  } finally {
    clearTimeout(timer)
  }
}
