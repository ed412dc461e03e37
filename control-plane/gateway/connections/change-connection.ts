import { isUuid, type ProviderKind } from '../../../shared/contract/common.js'
import type { ConnectionConfig } from '../../../shared/contract/connections.js'
import { conflict, notFound, validation } from '../../../shared/errors/app-error.js'
import { changedFields } from '../../audit/changed-fields.js'
import { type Actor, record } from '../../audit/record.js'
import type { Deps } from '../../deps.js'
import { changeTeam } from '../publish.js'
import { checkedConfig, movesOrigin } from './base-url.js'
import {
  type ConnectionRow,
  deleteConnectionRow,
  insertConnection,
  listModelNamesOn,
  lockConnection,
  updateConnectionRow,
} from './queries.js'

interface ConnectionInput {
  id: string
  provider: ProviderKind
  label: string
  apiKey: string
  config: ConnectionConfig
}

/** Stores a connection; its key is sealed before it leaves this process. */
export async function addConnection(
  deps: Deps,
  input: ConnectionInput,
  actor: Actor,
): Promise<ConnectionRow> {
  const { id, provider, label, apiKey } = input
  const { teamId } = actor
  const config = checkedConfig(provider, input.config, deps.config.PROVIDER_PRIVATE_HOSTS)
  const at = new Date(deps.now())
  const row = { teamId, id, provider, label, config, createdBy: actor.userId, createdAt: at, updatedAt: at }
  return changeTeam(deps, teamId, async tx => {
    const stored = await insertConnection(tx, { ...row, ...sealed(deps, teamId, id, apiKey) })
    const created = { name: label, connectionId: id, provider }
    await record(tx, actor, at.getTime(), 'connection_created', created)
    return stored
  })
}

interface ConnectionPatch {
  label?: string | undefined
  config?: ConnectionConfig | undefined
  apiKey?: string | undefined
  provider?: ProviderKind | undefined
}

/**
 * @throws AppError NOT_FOUND; VALIDATION_ERROR for another provider, a bad config, or a config that would send the
 *   stored key to another origin (spec 4, section 4).
 */
export async function changeConnection(
  deps: Deps,
  actor: Actor,
  id: string,
  patch: ConnectionPatch,
): Promise<ConnectionRow> {
  if (!isUuid(id)) throw notFound('Connection')
  const { teamId } = actor
  return changeTeam(deps, teamId, async tx => {
    const stored = await lockConnection(tx, teamId, id)
    if (stored === null) throw notFound('Connection')
    if (patch.provider !== undefined && patch.provider !== stored.provider) {
      throw validation('provider cannot be changed.')
    }
    const config =
      patch.config === undefined
        ? stored.config
        : checkedConfig(stored.provider, patch.config, deps.config.PROVIDER_PRIVATE_HOSTS)
    if (patch.apiKey === undefined && movesOrigin(stored.provider, stored.config, config)) {
      throw validation('Changing the origin of base_url needs apiKey.')
    }
    const at = new Date(deps.now())
    const row = await updateConnectionRow(tx, teamId, id, {
      label: patch.label ?? stored.label,
      config,
      key: patch.apiKey === undefined ? undefined : sealed(deps, teamId, id, patch.apiKey),
      updatedAt: at,
    })
    const changed: string[] = changedFields(stored, row, ['label', 'config'])
    if (patch.apiKey !== undefined) changed.push('apiKey')
    const updated = { name: row.label, connectionId: row.id, changed }
    if (changed.length > 0) await record(tx, actor, at.getTime(), 'connection_updated', updated)
    return row
  })
}

/** @throws AppError NOT_FOUND; CONFLICT naming the models that use it. */
export async function removeConnection(deps: Deps, actor: Actor, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound('Connection')
  const { teamId } = actor
  await changeTeam(deps, teamId, async tx => {
    const stored = await lockConnection(tx, teamId, id)
    if (stored === null) throw notFound('Connection')
    const models = await listModelNamesOn(tx, teamId, id)
    if (models.length > 0) throw conflict(`The connection is used by models: ${models.join(', ')}.`)
    await deleteConnectionRow(tx, teamId, id)
    const deleted = { name: stored.label, connectionId: stored.id }
    await record(tx, actor, deps.now(), 'connection_deleted', deleted)
  })
}

const sealed = (deps: Deps, teamId: string, id: string, apiKey: string) => ({
  sealedKey: deps.vault.seal(apiKey, { teamId, rowId: id }),
  // Four of very few characters would be the key itself.
  keyLastFour: apiKey.length > 4 ? apiKey.slice(-4) : '****',
})
