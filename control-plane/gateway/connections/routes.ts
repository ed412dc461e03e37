import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../../shared/contract/common.js'
import {
  createConnection,
  deleteConnection,
  getConnection,
  listConnections,
  updateConnection,
} from '../../../shared/contract/connections.js'
import type { Result } from '../../../shared/contract/endpoint.js'
import { notFound } from '../../../shared/errors/app-error.js'
import type { Deps } from '../../deps.js'
import { route } from '../../http/route.js'
import { addConnection, changeConnection, removeConnection } from './change-connection.js'
import { type ConnectionRow, findConnection, listConnectionRows } from './queries.js'

/** Provider connections (spec 3, provider connections; spec 4, section 4). */
export function registerConnections(app: FastifyInstance, deps: Deps): void {
  route(app, deps, createConnection, async ({ body, principal }) =>
    shown(await addConnection(deps, { ...body, id: randomUUID() }, principal)),
  )

  route(app, deps, listConnections, async ({ principal }) => {
    const rows = await listConnectionRows(deps.sql, principal.teamId)
    return rows.map(shown)
  })

  route(app, deps, getConnection, async ({ params, principal }) => {
    const row = isUuid(params.id) ? await findConnection(deps.sql, principal.teamId, params.id) : null
    if (row === null) throw notFound('Connection')
    return shown(row)
  })

  route(app, deps, updateConnection, async ({ params, body, principal }) =>
    shown(await changeConnection(deps, principal, params.id, body)),
  )

  route(app, deps, deleteConnection, async ({ params, principal }) => {
    await removeConnection(deps, principal, params.id)
    return undefined
  })
}

const shown = (row: ConnectionRow): Result<typeof getConnection> => ({
  ...row,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
})
