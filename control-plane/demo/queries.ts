import type { ConnectionConfig } from '../../shared/contract/connections.js'
import type { Sql } from '../db/sql.js'

export interface DemoConnection {
  teamId: string
  id: string
  config: ConnectionConfig
}

/** Connections of every team to a demo provider, wherever it listened when they were made. */
export async function listDemoConnections(
  sql: Sql,
  mark: { label: string; keyLastFour: string; path: string },
): Promise<DemoConnection[]> {
  return sql<DemoConnection[]>`
    select team_id, id, config from connections
    where provider = 'openai_compatible' and label = ${mark.label} and key_last_four = ${mark.keyLastFour}
      and right(config->>'base_url', ${mark.path.length}::int) = ${mark.path}`
}
