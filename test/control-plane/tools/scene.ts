import { commitToolVersion, createTool, type Executor, readTool } from '../../../shared/contract/tools.js'
import type { ControlPlane, Credential } from '../../support/control-plane.js'

/** A public address that no test dials: a literal, so that nothing is resolved either. */
export const PUBLIC_URL = 'https://1.1.1.1/v1'

export const http = (fields: object = {}) =>
  ({ type: 'http', url: PUBLIC_URL, method: 'GET', headers: [], query: [], ...fields }) as Executor

/** The tools of one team, called as one of its people. */
export function toolbox(cp: ControlPlane, as: Credential) {
  const create = async (name: string, description?: string) =>
    (await cp.call(createTool, { as, body: { name, description } })).body
  const commit = (id: string, fields: object = {}) =>
    cp.call(commitToolVersion, {
      as,
      params: { id },
      body: { parametersSchema: { type: 'object' }, executor: { type: 'client' }, ...fields },
    })
  const read = async (id: string) => (await cp.call(readTool, { as, params: { id } })).body
  return { create, commit, read }
}

/** A team's audit rows about a tool, oldest first. */
export const auditOf = async (cp: ControlPlane, teamId: string, toolId: string) => [
  ...(await cp.deps.sql<{ event: string; actorId: string | null; metadata: Record<string, unknown> }[]>`
    select event, actor_id, metadata from audit_events
    where team_id = ${teamId} and tool_id = ${toolId} order by position`),
]

export const epochOf = async (cp: ControlPlane, teamId: string): Promise<number> => {
  const [row] = await cp.deps.sql<{ epoch: string }[]>`select epoch from teams where id = ${teamId}`
  return Number(row?.epoch)
}
