/** `agh migrate`: brings the database of DATABASE_URL to the schema of this version. Safe to run twice, or at once. */
import { z } from 'zod'
import { readEnvironment, sharedEnvironment } from '../shared/config/environment.js'
import { migrateOrSay } from './migrate-or-say.js'

const schema = z.object({
  DATABASE_URL: sharedEnvironment.DATABASE_URL.unwrap().describe('a postgres:// URL'),
})
const { DATABASE_URL } = readEnvironment(schema, process.env)
const applied = await migrateOrSay(DATABASE_URL)
console.log(
  applied.length === 0
    ? 'The database is at this version already.'
    : `Applied ${applied.length} migration${applied.length === 1 ? '' : 's'}: ${applied.join(', ')}.`,
)
