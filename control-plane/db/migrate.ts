import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'

const folder = fileURLToPath(new URL('../../migrations/', import.meta.url))
/** Any constant; every agh process that migrates takes the same advisory lock. */
const LOCK = 720_430_001

/** Applies the SQL files of migrations/ that the database has not seen, in order, one transaction each. */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [LOCK])
    await client.query(
      'create table if not exists schema_migrations (name text primary key, applied_at timestamptz not null default now())',
    )
    const { rows } = await client.query<{ name: string }>('select name from schema_migrations')
    const seen = new Set(rows.map(row => row.name))
    const fresh = readdirSync(folder)
      .filter(name => name.endsWith('.sql') && !seen.has(name))
      .sort()
    for (const name of fresh) await apply(client, name)
    return fresh
  } finally {
    await client.end()
  }
}

async function apply(client: pg.Client, name: string): Promise<void> {
  await client.query('begin')
  try {
    await client.query(`set local lock_timeout = '2s'`)
    await client.query(readFileSync(join(folder, name), 'utf8'))
    await client.query('insert into schema_migrations (name) values ($1)', [name])
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}
