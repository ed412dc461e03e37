import { type Applied, checkHistory, knownMigrations, type Migration, SchemaError } from './migrations.js'
import type { Sql } from './sql.js'

/**
 * A process serves only on the schema that it knows (design D15): every migration of this version, none of a newer one.
 *
 * @throws SchemaError that says what to do; what the driver throws when the database cannot be asked.
 */
export async function checkSchema(sql: Sql, known: readonly Migration[] = knownMigrations()): Promise<void> {
  const applied = await appliedMigrations(sql)
  checkHistory(known, applied)
  const seen = new Set(applied.map(migration => migration.name))
  const missing = known.filter(migration => !seen.has(migration.name))
  if (missing.length === 0) return
  const names = missing.map(migration => migration.name).join(', ')
  throw new SchemaError(`The database lacks the migrations ${names}. Run "agh migrate".`)
}

/**
 * For readiness of a process that runs already: a newer version may have migrated the database under it, which is fine
 * as long as nothing in it breaks this version.
 */
export async function isSchemaUsable(
  sql: Sql,
  known: readonly Migration[] = knownMigrations(),
): Promise<boolean> {
  const applied = await appliedMigrations(sql)
  const seen = new Set(applied.map(migration => migration.name))
  const names = new Set(known.map(migration => migration.name))
  const isWhole = known.every(migration => seen.has(migration.name))
  return isWhole && applied.every(migration => names.has(migration.name) || migration.breaking === null)
}

/** Resolves when PostgreSQL answers; for readiness. */
export async function pingDatabase(sql: Sql): Promise<void> {
  await sql`select 1`
}

async function appliedMigrations(sql: Sql): Promise<Applied[]> {
  try {
    return await sql<Applied[]>`select name, checksum, breaking from schema_migrations`
  } catch (error) {
    const isMissing = (error as { code?: string }).code === '42P01'
    if (isMissing) return []
    throw error
  }
}
