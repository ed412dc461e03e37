/** The doctor's checks of PostgreSQL: reachable, new enough, at this version's schema, in time, and the connections in it. */
import { lookup } from 'node:dns/promises'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { isTooOld, OLDEST_POSTGRES } from '../control-plane/db/server-version.js'
import { ConfigError } from '../shared/config/environment.js'
import { withoutCredentials } from '../shared/config/without-credentials.js'
import { refusal } from '../shared/network/addresses.js'
import { deriveSecret } from '../shared/secrets/derive.js'
import { createVault } from '../shared/secrets/vault.js'
import { type Finding, good, note, problem, reasonOf } from './finding.js'
import { installedPostgres } from './postgres-binaries.js'
import type { StartEnvironment } from './start-environment.js'

const PATIENCE_MS = 3_000
const CLOCK_SKEW_MS = 2_000

export async function checkDatabase(env: StartEnvironment): Promise<Finding[]> {
  const url = env.DATABASE_URL ?? runningOwn(env)
  if (url === null) return checkOwnPostgres()
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: PATIENCE_MS,
    query_timeout: PATIENCE_MS,
  })
  client.on('error', () => {})
  try {
    await client.connect()
  } catch (error) {
    const advice = 'Start it, or correct DATABASE_URL; unset it to let `agh start` run one of its own.'
    return [
      problem(`PostgreSQL at ${withoutCredentials(url)} cannot be reached: ${reasonOf(error)}.`, advice),
    ]
  }
  try {
    const findings = [await version(client, url), ...(await clock(client))]
    const schema = await migrations(client)
    findings.push(...schema)
    if (schema.every(finding => finding.level === 'good')) findings.push(...(await connections(client, env)))
    return findings
  } catch (error) {
    return [problem(`PostgreSQL answers, but not as it should: ${reasonOf(error)}.`, 'See its log.')]
  } finally {
    await client.end().catch(() => {})
  }
}

/** DATABASE_URL is unset: the server of a running `agh start`, by what it left in DATA_DIR. */
function runningOwn({ DATA_DIR }: StartEnvironment): string | null {
  const dir = resolve(DATA_DIR)
  try {
    const pointer = join(dir, 'postgres.location')
    const home = existsSync(pointer) ? readFileSync(pointer, 'utf8').trim() : join(dir, 'postgres')
    const [pid = '', , , port = ''] = readFileSync(join(home, 'postmaster.pid'), 'utf8').split('\n')
    process.kill(Number(pid), 0)
    const password = readFileSync(join(dir, 'postgres.password'), 'utf8').trim()
    return `postgres://agh:${encodeURIComponent(password)}@127.0.0.1:${port}/agh`
  } catch {
    return null
  }
}

function checkOwnPostgres(): Finding[] {
  try {
    return [good(`DATABASE_URL is unset: \`agh start\` runs PostgreSQL ${installedPostgres().version}.`)]
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return [problem(error.message, 'Or run PostgreSQL elsewhere and set DATABASE_URL.')]
  }
}

async function version(client: pg.Client, url: string): Promise<Finding> {
  const { rows } = await client.query<{ server_version: string }>('show server_version')
  const said = rows[0]?.server_version ?? ''
  if (isTooOld(said)) {
    return problem(
      `PostgreSQL at ${withoutCredentials(url)} is ${said}.`,
      `agh needs ${OLDEST_POSTGRES} or later.`,
    )
  }
  return good(`PostgreSQL ${said} at ${withoutCredentials(url)}.`)
}

async function clock(client: pg.Client): Promise<Finding[]> {
  const before = Date.now()
  const { rows } = await client.query<{ at: Date }>('select clock_timestamp() as at')
  const skewMs = Math.abs((rows[0]?.at.getTime() ?? 0) - (before + Date.now()) / 2)
  if (skewMs < CLOCK_SKEW_MS) return [good('Its clock agrees with this machine’s.')]
  return [
    note(
      `Its clock is ${(skewMs / 1000).toFixed(1)} s away from this machine’s.`,
      'Traces would seem to start before or after their time. Use NTP on both.',
    ),
  ]
}

async function migrations(client: pg.Client): Promise<Finding[]> {
  const folder = fileURLToPath(new URL('../migrations/', import.meta.url))
  const known = readdirSync(folder).filter(name => name.endsWith('.sql'))
  const { rows: tables } = await client.query("select to_regclass('schema_migrations') is not null as has")
  const applied: string[] = tables[0].has
    ? (await client.query('select name from schema_migrations')).rows.map(row => row.name)
    : []
  const missing = known.filter(name => !applied.includes(name))
  const foreign = applied.filter(name => !known.includes(name))
  if (foreign.length > 0) {
    return [
      problem(
        `The database is at a newer version: it has ${foreign.join(', ')}.`,
        'Run the agh that made it, or a later one.',
      ),
    ]
  }
  if (missing.length === 0) return [good('The schema is this version’s.')]
  const text = `The database lacks ${missing.length} migration${missing.length > 1 ? 's' : ''}, the first is ${missing[0]}.`
  return [problem(text, 'Run `agh migrate`. `agh start` does it by itself.')]
}

interface Connection {
  team_id: string
  id: string
  provider: string
  label: string
  sealed_key: string
  config: { base_url?: string }
}

const VENDOR_HOSTS: Record<string, string> = {
  openai: 'api.openai.com',
  anthropic: 'api.anthropic.com',
  google: 'generativelanguage.googleapis.com',
}

/** Whether the stored keys open with this AGH_SECRET, and whether the hosts have an address. No provider is called. */
async function connections(client: pg.Client, env: StartEnvironment): Promise<Finding[]> {
  const { rows } = await client.query<Connection>(
    'select team_id, id, provider, label, sealed_key, config from connections order by created_at limit 1000',
  )
  const sealed = rows.length === 0 ? [] : secretOpens(rows, env)
  const hosts = new Set(rows.map(row => hostOf(row)).filter(host => host !== undefined))
  const policy = env.PROVIDER_PRIVATE_HOSTS === 'deny' ? 'public' : 'private-allowed'
  const found = await Promise.all([...hosts].slice(0, 50).map(host => checkHost(host, policy)))
  return [...sealed, ...found]
}

function hostOf({ provider, config }: Connection): string | undefined {
  if (config.base_url === undefined) return VENDOR_HOSTS[provider]
  return new URL(config.base_url).hostname.replace(/^\[|\]$/g, '')
}

function secretOpens(rows: readonly Connection[], env: StartEnvironment): Finding[] {
  const file = join(resolve(env.DATA_DIR), 'secret')
  const secret = env.AGH_SECRET ?? (existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined)
  if (secret === undefined) {
    return [
      problem(
        'There are provider keys in the database, and AGH_SECRET is unset.',
        'Set the AGH_SECRET that they were stored with.',
      ),
    ]
  }
  const vault = createVault([deriveSecret(secret, 'provider-keys')])
  const closed = rows.filter(row => {
    try {
      vault.open(row.sealed_key, { teamId: row.team_id, rowId: row.id })
      return false
    } catch {
      return true
    }
  })
  if (closed.length === 0) return [good(`All ${rows.length} provider keys open with this AGH_SECRET.`)]
  const labels = closed.slice(0, 5).map(row => `'${row.label}'`)
  const text = `${closed.length} of ${rows.length} provider keys do not open with this AGH_SECRET: ${labels.join(', ')}.`
  return [problem(text, 'Set the AGH_SECRET that they were stored with, or enter those keys again.')]
}

async function checkHost(host: string, policy: 'public' | 'private-allowed'): Promise<Finding> {
  try {
    const addresses = await lookup(host, { all: true })
    const refused = addresses.map(({ address }) => refusal(address, policy)).find(reason => reason !== null)
    if (refused === undefined) return good(`The provider host ${host} has an address.`)
    return problem(
      `The provider host ${host} is ${refused}.`,
      'Calls to it are refused; see PROVIDER_PRIVATE_HOSTS.',
    )
  } catch (error) {
    return problem(
      `The provider host ${host} is not found: ${reasonOf(error)}.`,
      'Check this machine’s DNS and the connection’s base_url.',
    )
  }
}
