import { isUuid, type ProviderKind } from '../../../shared/contract/common.js'
import type { ConnectionConfig } from '../../../shared/contract/connections.js'
import { conflict, notFound, validation } from '../../../shared/errors/app-error.js'
import type { Principal } from '../../access/principal.js'
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
  creator: Pick<Principal, 'teamId' | 'userId'>,
): Promise<ConnectionRow> {
  const { id, provider, label, apiKey } = input
  const { teamId } = creator
  const config = checkedConfig(provider, input.config, deps.config.PROVIDER_PRIVATE_HOSTS)
  const at = new Date(deps.now())
  const row = { teamId, id, provider, label, config, createdBy: creator.userId, createdAt: at, updatedAt: at }
  return changeTeam(deps, teamId, tx => insertConnection(tx, { ...row, ...sealed(deps, teamId, id, apiKey) }))
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
  teamId: string,
  id: string,
  patch: ConnectionPatch,
): Promise<ConnectionRow> {
  if (!isUuid(id)) throw notFound('Connection')
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
    return updateConnectionRow(tx, teamId, id, {
      label: patch.label ?? stored.label,
      config,
      key: patch.apiKey === undefined ? undefined : sealed(deps, teamId, id, patch.apiKey),
      updatedAt: new Date(deps.now()),
    })
  })
}

/** @throws AppError NOT_FOUND; CONFLICT naming the models that use it. */
export async function removeConnection(deps: Deps, teamId: string, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound('Connection')
  await changeTeam(deps, teamId, async tx => {
    if ((await lockConnection(tx, teamId, id)) === null) throw notFound('Connection')
    const models = await listModelNamesOn(tx, teamId, id)
    if (models.length > 0) throw conflict(`The connection is used by models: ${models.join(', ')}.`)
    await deleteConnectionRow(tx, teamId, id)
  })
}

const sealed = (deps: Deps, teamId: string, id: string, apiKey: string) => ({
  sealedKey: deps.vault.seal(apiKey, { teamId, rowId: id }),
  // Four of very few characters would be the key itself.
  keyLastFour: apiKey.length > 4 ? apiKey.slice(-4) : '****',
})
