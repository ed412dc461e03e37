import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import {
  createVirtualKey,
  listVirtualKeys,
  revokeVirtualKey,
  updateVirtualKey,
} from '../../../shared/contract/virtual-keys.js'
import type { Deps } from '../../deps.js'
import { route } from '../../http/route.js'
import { changeVirtualKey, mintVirtualKey, revokeKey } from './change-virtual-key.js'
import { listVirtualKeyRows, type VirtualKeyRow } from './queries.js'

/** Virtual keys (spec 3, virtual keys). */
export function registerVirtualKeys(app: FastifyInstance, deps: Deps): void {
  route(app, deps, createVirtualKey, async ({ body, principal }) => {
    const { row, key } = await mintVirtualKey(deps, randomUUID(), body, principal)
    const { revokedAt: _, ...fields } = shown(row)
    return { ...fields, key }
  })

  route(app, deps, listVirtualKeys, async ({ principal }) => {
    const rows = await listVirtualKeyRows(deps.sql, principal.teamId)
    return rows.map(shown)
  })

  route(app, deps, updateVirtualKey, async ({ params, body, principal }) =>
    shown(await changeVirtualKey(deps, principal, params.id, body)),
  )

  route(app, deps, revokeVirtualKey, async ({ params, principal }) => {
    await revokeKey(deps, principal, params.id)
    return undefined
  })
}

const shown = (row: VirtualKeyRow) => ({
  ...row,
  createdAt: row.createdAt.toISOString(),
  revokedAt: row.revokedAt?.toISOString() ?? null,
})
