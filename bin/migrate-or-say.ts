import { migrate } from '../control-plane/db/migrate.js'
import { SchemaError } from '../control-plane/db/migrations.js'
import { ConfigError } from '../shared/config/environment.js'
import { withoutCredentials } from '../shared/config/without-credentials.js'
import { reasonOf } from './finding.js'

/**
 * Migrates. @returns the names of what was applied.
 *
 * @throws ConfigError in one line when the database cannot be used as it is; SchemaError when it is a newer
 * version's, or the server too old.
 */
export async function migrateOrSay(databaseUrl: string): Promise<string[]> {
  try {
    return await migrate(databaseUrl)
  } catch (error) {
    if (error instanceof SchemaError) throw error
    const at = withoutCredentials(databaseUrl)
    throw new ConfigError(`PostgreSQL at ${at} cannot be used: ${reasonOf(error)}. \`agh doctor\` says more.`)
  }
}
