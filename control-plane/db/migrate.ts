import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { migrateJobs } from '../jobs/schema.js'
import { type Applied, checkHistory, knownMigrations, type Migration, SchemaError } from './migrations.js'
import { isTooOld, OLDEST_POSTGRES } from './server-version.js'

/** Any constant; every agh process that migrates takes the same advisory lock. */
const LOCK = 720_430_001
/** Another process may be at work on a large table; polled, so that a stuck one is named and not waited for for ever. */
const LOCK_WAIT_MS = 10 * 60_000
const LOCK_POLL_MS = 250
/** A statement that waits for a table's lock makes everybody behind it wait too: give up soon, try again later. */
const TABLE_LOCK_TIMEOUT_MS = 2_000
const ATTEMPTS = 10

export interface MigrateOptions {
  migrations?: readonly Migration[]
  /** Told before a migration that older versions cannot run with. */
  onBreaking?: (name: string, why: string) => void
  lockWaitMs?: number
}

/**
 * Brings a database to this version: the SQL files of migrations/ that it has not seen, in order, one transaction each,
 * one process at a time; then the job queue's own schema.
 *
 * @returns the names of what was applied.
 * @throws SchemaError when the database is newer than this version, or a file was changed after it was applied; and when
 * the server is older than PostgreSQL 14, before anything is written.
 */
export async function migrate(databaseUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const migrations = options.migrations ?? knownMigrations()
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: 10_000,
    application_name: 'agh-migrate',
    keepAlive: true,
  })
  await client.connect()
  // A connection that dies is told by the query that needs it.
  client.on('error', () => {})
  try {
    await refuseOldServer(client)
    await takeLock(client, options.lockWaitMs ?? LOCK_WAIT_MS)
    await client.query(
      `create table if not exists schema_migrations (
        name text primary key, checksum text not null, breaking text, applied_at timestamptz not null default now())`,
    )
    const { rows } = await client.query<Applied>('select name, checksum, breaking from schema_migrations')
    checkHistory(migrations, rows)
    const seen = new Set(rows.map(row => row.name))
    const fresh = migrations.filter(migration => !seen.has(migration.name))
    for (const migration of fresh) {
      if (migration.breaking !== null && rows.length > 0)
        options.onBreaking?.(migration.name, migration.breaking)
      await applyPatiently(client, migration)
    }
    await migrateJobs(databaseUrl)
    return fresh.map(migration => migration.name)
  } finally {
    // Ending the connection gives the lock back.
    await client.end()
  }
}

/** Else the migrations before the first that it cannot parse would stay, and the person would read of a syntax error. */
async function refuseOldServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ server_version: string }>('show server_version')
  const version = rows[0]?.server_version ?? ''
  if (isTooOld(version))
    throw new SchemaError(
      `PostgreSQL is ${version}; agh needs ${OLDEST_POSTGRES} or later. Nothing was changed.`,
    )
}

async function takeLock(client: pg.Client, waitMs: number): Promise<void> {
  const until = Date.now() + waitMs
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
      LOCK,
    ])
    if (rows[0]?.taken === true) return
    if (Date.now() > until)
      throw new SchemaError('Another process has been migrating this database for too long.')
    await sleep(LOCK_POLL_MS)
  }
}

/** Tries again when a table is in use: 55P03 is a lock timeout, 40P01 a deadlock. */
async function applyPatiently(client: pg.Client, migration: Migration): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await apply(client, migration)
      return
    } catch (error) {
      const { code } = error as { code?: string }
      if ((code !== '55P03' && code !== '40P01') || attempt === ATTEMPTS) throw error
      await sleep(Math.min(5_000, 200 * 2 ** attempt))
    }
  }
}

async function apply(client: pg.Client, { name, sql, checksum, breaking }: Migration): Promise<void> {
  await client.query('begin')
  try {
    await client.query(`set local lock_timeout = ${TABLE_LOCK_TIMEOUT_MS}`)
    await client.query(sql)
    await client.query('insert into schema_migrations (name, checksum, breaking) values ($1, $2, $3)', [
      name,
      checksum,
      breaking,
    ])
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}
