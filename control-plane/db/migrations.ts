import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../../migrations/', import.meta.url))

/** One SQL file of migrations/: `NNNN_name.sql`, forward only. */
export interface Migration {
  name: string
  sql: string
  /** SHA-256 of the text: a file that was applied must not change. */
  checksum: string
  /**
   * The text after `-- breaking:` at the start of a line: why the version before this one cannot run on the schema.
   * Without it old and new processes may run side by side while a new version is rolled out.
   */
  breaking: string | null
}

/** What the database remembers of a migration. */
export interface Applied {
  name: string
  checksum: string
  breaking: string | null
}

/** The migrations that this version of agh knows, in order. */
export function knownMigrations(from = folder): Migration[] {
  const names = readdirSync(from)
    .filter(name => /^\d{4}_[a-z0-9_]+\.sql$/.test(name))
    .sort()
  return names.map(name => {
    const sql = readFileSync(join(from, name), 'utf8')
    return {
      name,
      sql,
      checksum: createHash('sha256').update(sql).digest('hex'),
      breaking: /^-- breaking: *(.+)$/m.exec(sql)?.[1] ?? null,
    }
  })
}

/** The database is not one that this version of agh may touch; the message is for the person at the terminal. */
export class SchemaError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SchemaError'
  }
}

/** @throws SchemaError when the database holds a migration that is unknown here or was changed since. */
export function checkHistory(known: readonly Migration[], applied: readonly Applied[]): void {
  const byName = new Map(known.map(migration => [migration.name, migration]))
  for (const { name, checksum, breaking } of applied) {
    const migration = byName.get(name)
    if (migration === undefined) {
      const why = breaking === null ? '' : ` It breaks older versions: ${breaking}`
      throw new SchemaError(
        `The database has the migration ${name}, which this version of agh does not know: a newer agh made it.${why}`,
      )
    }
    if (migration.checksum !== checksum) {
      throw new SchemaError(
        `The migration ${name} was changed after it was applied. Migrations are forward only: restore the file.`,
      )
    }
  }
}
