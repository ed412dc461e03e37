import { Logger, runMigrations } from 'graphile-worker'
import pg from 'pg'

/** Creates or updates the queue's own schema, `graphile_worker`. */
export async function migrateJobs(databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1, connectionTimeoutMillis: 10_000 })
  pool.on('error', () => {})
  try {
    await runMigrations({ pgPool: pool, logger: new Logger(() => () => {}) })
  } finally {
    await pool.end()
  }
}
