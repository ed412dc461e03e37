/** The doctor's checks of Redis: reachable, new enough, and set up to keep counters. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { withoutCredentials } from '../shared/config/without-credentials.js'
import { type Finding, good, note, problem, reasonOf } from './finding.js'

const OLDEST = [6, 2] as const
const PATIENCE_MS = 3_000
/** Windows and periods follow the store's clock; a proxy's own clock only dates its spans. */
const CLOCK_SKEW_MS = 5_000

/** @param urls REDIS_URL: one, or the nodes of a cluster. */
export async function checkRedis(urls: string | undefined): Promise<Finding[]> {
  if (urls === undefined) {
    return [
      note(
        'REDIS_URL is unset: budgets, limits and the response cache are in PostgreSQL.',
        'One proxy and some hundred calls a second are fine with that.',
      ),
    ]
  }
  const findings = await Promise.all(urls.split(',').map(url => checkNode(url.trim())))
  return findings.flat()
}

async function checkNode(url: string): Promise<Finding[]> {
  const shown = withoutCredentials(url)
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: PATIENCE_MS,
    commandTimeout: PATIENCE_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  })
  // The command's own error says only that the connection was closed; this one says why.
  let cause: unknown
  client.on('error', error => {
    cause = error
  })
  try {
    const patience = sleep(PATIENCE_MS, undefined, { ref: false }).then(() => {
      throw new Error(`no answer in ${PATIENCE_MS / 1000} s`)
    })
    await Promise.race([client.connect(), patience])
    const info = fieldsOf(await client.info())
    return [version(shown, info), ...policy(shown, info), ...(await clock(shown, client))]
  } catch (error) {
    const advice = 'Start it, correct REDIS_URL, or unset it to keep budgets and limits in PostgreSQL.'
    return [problem(`Redis at ${shown} cannot be reached: ${reasonOf(cause ?? error)}.`, advice)]
  } finally {
    client.disconnect()
  }
}

const fieldsOf = (info: string) =>
  new Map(
    info.split(/\r?\n/).map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  )

function version(at: string, info: Map<string, string>): Finding {
  const said = info.get('redis_version') ?? ''
  const [major = 0, minor = 0] = said.split('.').map(Number)
  const isOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])
  if (isOld)
    return problem(`Redis at ${at} is ${said}.`, `agh needs ${OLDEST.join('.')} or later, or Valkey.`)
  return good(`Redis ${said} at ${at}.`)
}

function policy(at: string, info: Map<string, string>): Finding[] {
  const findings: Finding[] = []
  const evicts = info.get('maxmemory_policy') ?? 'noeviction'
  if (evicts !== 'noeviction') {
    findings.push(
      note(
        `Redis at ${at} evicts keys when it is full (maxmemory-policy ${evicts}).`,
        'Set maxmemory-policy noeviction: an evicted counter is rebuilt from the charges, a rate window is lost.',
      ),
    )
  }
  if (info.get('aof_enabled') !== '1' && !/^save=./.test(info.get('rdb_save_config') ?? 'save=x')) {
    findings.push(
      note(`Redis at ${at} keeps nothing on disk.`, 'That is fine: counters are rebuilt from PostgreSQL.'),
    )
  }
  if (info.get('role') === 'slave') {
    findings.push(problem(`Redis at ${at} is a replica.`, 'REDIS_URL must name the primary.'))
  }
  return findings
}

async function clock(at: string, client: Redis): Promise<Finding[]> {
  const before = Date.now()
  const [seconds = 0] = (await client.time()).map(Number)
  const skewMs = Math.abs(seconds * 1000 - (before + Date.now()) / 2)
  if (skewMs < CLOCK_SKEW_MS) return []
  return [
    note(
      `The clock of Redis at ${at} is ${Math.round(skewMs / 1000)} s away from this machine's.`,
      'Days, weeks and months of budgets follow Redis. Use NTP on both.',
    ),
  ]
}
