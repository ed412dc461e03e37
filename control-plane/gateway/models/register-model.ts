import { isDeepStrictEqual } from 'node:util'
import { isUuid } from '../../../shared/contract/common.js'
import type { ModelPricing } from '../../../shared/contract/models.js'
import { conflict, notFound } from '../../../shared/errors/app-error.js'
import { changedFields } from '../../audit/changed-fields.js'
import { type Actor, record } from '../../audit/record.js'
import type { Sql } from '../../db/sql.js'
import type { Deps } from '../../deps.js'
import { findConnection } from '../connections/queries.js'
import { isForeignKeyViolation, isUniqueViolation } from '../constraints.js'
import { changeTeam } from '../publish.js'
import { knownModel } from './price-table.js'
import { deleteModelRow, insertModel, lockModel, type ModelRow, updateModelRow } from './queries.js'

/** Left out: the price table's value. Null: none. */
interface Description {
  pricing?: ModelPricing | null | undefined
  maxOutputTokens?: number | null | undefined
  contextWindow?: number | null | undefined
}

interface ModelInput extends Description {
  id: string
  publicName: string
  connectionId: string
  upstreamModel: string
}

/** @throws AppError NOT_FOUND `Connection not found.`; CONFLICT for a publicName that the team has. */
export async function addModel(deps: Deps, actor: Actor, input: ModelInput): Promise<ModelRow> {
  const { teamId } = actor
  const at = new Date(deps.now())
  const row = {
    ...input,
    ...described(input, tableValues(input.upstreamModel)),
    createdAt: at,
    updatedAt: at,
  }
  return written(deps, teamId, input.publicName, async tx => {
    await requireConnection(tx, teamId, input.connectionId)
    const stored = await insertModel(tx, teamId, row)
    await record(tx, actor, at.getTime(), 'gateway_model_created', named(stored))
    return stored
  })
}

interface ModelPatch extends Description {
  publicName?: string | undefined
  connectionId?: string | undefined
  upstreamModel?: string | undefined
}

/** @param reference uuid or publicName. @throws AppError as addModel; NOT_FOUND `Model not found.` */
export async function changeModel(
  deps: Deps,
  actor: Actor,
  reference: string,
  patch: ModelPatch,
): Promise<ModelRow> {
  const { teamId } = actor
  return written(deps, teamId, patch.publicName ?? reference, async tx => {
    const stored = await lockModel(tx, teamId, reference)
    if (stored === null) throw notFound('Model')
    const connectionId = patch.connectionId ?? stored.connectionId
    if (connectionId !== stored.connectionId) await requireConnection(tx, teamId, connectionId)
    const upstreamModel = patch.upstreamModel ?? stored.upstreamModel
    const at = new Date(deps.now())
    const row = await updateModelRow(tx, teamId, stored.id, {
      publicName: patch.publicName ?? stored.publicName,
      connectionId,
      upstreamModel,
      ...described(patch, inherited(stored, upstreamModel)),
      updatedAt: at,
    })
    const changed = changedFields(stored, row, CHANGEABLE)
    const updated = { ...named(row), changed }
    if (changed.length > 0) await record(tx, actor, at.getTime(), 'gateway_model_updated', updated)
    return row
  })
}

/** @throws AppError NOT_FOUND. */
export async function removeModel(deps: Deps, actor: Actor, reference: string): Promise<void> {
  const { teamId } = actor
  await changeTeam(deps, teamId, async tx => {
    const stored = await lockModel(tx, teamId, reference)
    if (stored === null) throw notFound('Model')
    await deleteModelRow(tx, teamId, stored.id)
    await record(tx, actor, deps.now(), 'gateway_model_deleted', named(stored))
  })
}

const CHANGEABLE = [
  'publicName',
  'connectionId',
  'upstreamModel',
  'pricing',
  'maxOutputTokens',
  'contextWindow',
] as const

const named = (row: ModelRow) => ({ name: row.publicName, modelId: row.id })

type Described = Pick<ModelRow, 'pricing' | 'maxOutputTokens' | 'contextWindow'>

const described = (given: Description, otherwise: Described): Described => ({
  pricing: given.pricing === undefined ? otherwise.pricing : given.pricing,
  maxOutputTokens: given.maxOutputTokens === undefined ? otherwise.maxOutputTokens : given.maxOutputTokens,
  contextWindow: given.contextWindow === undefined ? otherwise.contextWindow : given.contextWindow,
})

function tableValues(upstreamModel: string): Described {
  const known = knownModel(upstreamModel)
  if (known === null) return { pricing: null, maxOutputTokens: null, contextWindow: null }
  return {
    pricing: known.pricing,
    maxOutputTokens: known.maxOutputTokens,
    contextWindow: known.contextWindow,
  }
}

/**
 * What a model keeps when it is pointed at another upstream model: a value that the table gave follows the table, a
 * value that somebody set stays. Otherwise a swap would silently price the new model like the old one.
 */
function inherited(stored: ModelRow, upstreamModel: string): Described {
  if (upstreamModel === stored.upstreamModel) return stored
  const before = tableValues(stored.upstreamModel)
  const after = tableValues(upstreamModel)
  const fromTable = (field: keyof Described) => isDeepStrictEqual(stored[field], before[field])
  return {
    pricing: fromTable('pricing') ? after.pricing : stored.pricing,
    maxOutputTokens: fromTable('maxOutputTokens') ? after.maxOutputTokens : stored.maxOutputTokens,
    contextWindow: fromTable('contextWindow') ? after.contextWindow : stored.contextWindow,
  }
}

async function requireConnection(tx: Sql, teamId: string, id: string): Promise<void> {
  if (!isUuid(id) || (await findConnection(tx, teamId, id)) === null) throw notFound('Connection')
}

async function written(
  deps: Deps,
  teamId: string,
  publicName: string,
  write: (tx: Sql) => Promise<ModelRow>,
): Promise<ModelRow> {
  try {
    return await changeTeam(deps, teamId, write)
  } catch (error) {
    if (isUniqueViolation(error)) throw conflict(`A model named '${publicName}' already exists.`)
    // The connection was deleted between the look and the write.
    if (isForeignKeyViolation(error)) throw notFound('Connection')
    throw error
  }
}
