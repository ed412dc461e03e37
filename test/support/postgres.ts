import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { Test } from 'tap'

/** The database that `test/run.ts` migrated; every test file gets a clone of it. */
const TEMPLATE = 'agh_template'

export interface TestDatabase {
  url: string
}

/** A database of the test's own, cloned from the migrated template (about 30 ms), dropped at its end. */
export async function testDatabase(t: Test): Promise<TestDatabase> {
  const server = serverUrl()
  const name = `agh_test_${randomBytes(6).toString('hex')}`
  await onServer(server, `create database ${name} template ${TEMPLATE}`)
  t.teardown(() => onServer(server, `drop database if exists ${name} with (force)`))
  return { url: databaseUrl(server, name) }
}

export const databaseUrl = (server: string, name: string): string => {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

/** Runs one statement on the server's maintenance database. Cloning a template waits for other cloners: retried. */
export async function onServer(server: string, statement: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const client = new pg.Client({ connectionString: server })
    try {
      await client.connect()
      await client.query(statement)
      return
    } catch (error) {
      const templateIsBusy = (error as { code?: string }).code === '55006'
      if (!templateIsBusy || attempt === 50) throw error
    } finally {
      await client.end().catch(() => {})
    }
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

function serverUrl(): string {
  const url = process.env.TEST_DATABASE_SERVER
  if (url === undefined)
    throw new Error('Run tests through `npm test -- <files>`: it starts the PostgreSQL they use.')
  return url
}
