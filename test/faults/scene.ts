import type { Test } from 'tap'
import { connectSql, type Sql } from '../../control-plane/db/sql.js'
import { createModel } from '../../shared/contract/models.js'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.js'
import { expect, type GatewayTeam, gatewayTeam } from '../support/gateway-team.js'
import { testDatabase } from '../support/postgres.js'
import { type System, type SystemOptions, startSystem } from '../support/system.js'
import { FRACTIONAL } from './books.js'
import { type Client, createClient } from './client.js'

export const MODEL = 'gpt-fake'
export const NANO = 1e9

/** Both programs, a provider that keeps its own bill, one team with one model, and a look into the database. */
export interface Scene {
  system: System
  fake: FakeProvider
  team: GatewayTeam
  /** The only team of the database. */
  teamId: string
  sql: Sql
  client: Client
}

export async function scene(t: Test, options: SystemOptions): Promise<Scene> {
  const fake = await startFakeProvider()
  t.teardown(() => fake.stop())
  const databaseUrl = options.databaseUrl ?? (await testDatabase(t)).url
  const system = await startSystem(t, { ...options, databaseUrl })
  const team = await gatewayTeam(system, 'openai_compatible', fake.baseUrl('openai'))
  const { connectionId } = team
  const body = { publicName: MODEL, connectionId, upstreamModel: MODEL, pricing: FRACTIONAL }
  await expect(system, createModel, { as: team.apiKey, body })
  const sql = connectSql(databaseUrl, { deadlineMs: 20_000, max: 2, name: 'agh-test' })
  const client = createClient(system.baseUrl)
  t.teardown(async () => {
    await client.close()
    await sql.end({ timeout: 1 })
  })
  const [row] = await sql<{ id: string }[]>`select id from teams`
  return { system, fake, team, teamId: row?.id ?? '', sql, client }
}
