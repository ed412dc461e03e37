import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Result } from '../../../shared/contract/endpoint.js'
import {
  createModel,
  deleteModel,
  getModel,
  listModels,
  updateModel,
} from '../../../shared/contract/models.js'
import { notFound } from '../../../shared/errors/app-error.js'
import type { Principal } from '../../access/principal.js'
import type { Deps } from '../../deps.js'
import { route } from '../../http/route.js'
import { findVirtualKeyScope } from '../virtual-keys/queries.js'
import { findModel, listModelRows, type ModelRow } from './queries.js'
import { addModel, changeModel, removeModel } from './register-model.js'

/** The model registry (spec 4, section 4; the object's shape: section 9, Gateway). */
export function registerModels(app: FastifyInstance, deps: Deps): void {
  route(app, deps, createModel, async ({ body, principal }) =>
    shown(await addModel(deps, principal, { ...body, id: randomUUID() })),
  )

  route(app, deps, listModels, async ({ principal }) => {
    const rows = await callable(deps, principal, await listModelRows(deps.sql, principal.teamId))
    return { object: 'list' as const, data: rows.map(shown) }
  })

  route(app, deps, getModel, async ({ params, principal }) => {
    const row = await findModel(deps.sql, principal.teamId, params.id)
    if (row === null) throw notFound('Model')
    return shown(row)
  })

  route(app, deps, updateModel, async ({ params, body, principal }) =>
    shown(await changeModel(deps, principal, params.id, body)),
  )

  route(app, deps, deleteModel, async ({ params, principal }) => {
    await removeModel(deps, principal, params.id)
    return undefined
  })
}

/** A virtual key sees the models that both of its allow-lists let through; a member sees all. */
async function callable(deps: Deps, principal: Principal, rows: ModelRow[]): Promise<ModelRow[]> {
  if (principal.via !== 'virtual_key') return rows
  const scope = await findVirtualKeyScope(deps.sql, principal.teamId, principal.credentialId)
  if (scope === null) return []
  const { allowedModels, allowedProviders } = scope
  return rows.filter(
    row =>
      (allowedModels === null || allowedModels.includes(row.publicName)) &&
      (allowedProviders === null || allowedProviders.includes(row.provider)),
  )
}

const shown = (row: ModelRow): Result<typeof getModel> => ({
  id: row.publicName,
  modelId: row.id,
  publicName: row.publicName,
  object: 'model',
  created: Math.floor(row.createdAt.getTime() / 1000),
  owned_by: row.provider,
  connectionId: row.connectionId,
  provider: row.provider,
  upstreamModel: row.upstreamModel,
  pricing: row.pricing,
  maxOutputTokens: row.maxOutputTokens,
  contextWindow: row.contextWindow,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
})
