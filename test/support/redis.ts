import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'

const HOW =
  'It needs redis-server 6.2 or later on the PATH (Debian: apt-get install redis-server; macOS: brew install redis), or TEST_REDIS_URL.'

/**
 * The Redis that `test/run.ts` started or found, and a key prefix of the test's own. Null when there is none: then the
 * test has been skipped, saying how to get one; in CI it has failed instead.
 */
export function testRedis(t: Test): { url: string; prefix: string } | null {
  const url = process.env.TEST_REDIS_URL
  if (url !== undefined) return { url, prefix: `test:${randomBytes(4).toString('hex')}:` }
  if (process.env.CI === undefined) t.comment(`skipped without Redis. ${HOW}`)
  else t.fail(`Redis is missing in CI. ${HOW}`)
  return null
}
