import { isUuid } from '../../../shared/contract/common.js'
import { notFound } from '../../../shared/errors/app-error.js'
import { hashToken, lastFour, mintKey, VIRTUAL_KEY_PREFIX } from '../../../shared/secrets/token.js'
import type { Principal } from '../../access/principal.js'
import type { Deps } from '../../deps.js'
import { changeTeam } from '../publish.js'
import {
  insertVirtualKey,
  lockActiveVirtualKey,
  revokeVirtualKeyRow,
  updateVirtualKeyRow,
  type VirtualKeyRow,
  type VirtualKeySettings,
} from './queries.js'

/** Settings as a request has them: left out means unrestricted on create, unchanged on patch; null clears. */
export type SettingsInput = { [K in keyof VirtualKeySettings]?: VirtualKeySettings[K] | undefined }

/** @returns the row and the key itself, which is not stored and cannot be shown again. */
export async function mintVirtualKey(
  deps: Deps,
  id: string,
  input: SettingsInput & { name: string },
  creator: Pick<Principal, 'teamId' | 'userId'>,
): Promise<{ row: VirtualKeyRow; key: string }> {
  const key = mintKey(VIRTUAL_KEY_PREFIX)
  const unrestricted = {
    allowedModels: null,
    allowedProviders: null,
    maxRpm: null,
    maxTpm: null,
    cacheTtlSeconds: null,
  }
  const row = await changeTeam(deps, creator.teamId, tx =>
    insertVirtualKey(tx, {
      ...given({ name: input.name, ...unrestricted }, input),
      id,
      teamId: creator.teamId,
      keyHash: hashToken(key),
      keyLastFour: lastFour(key),
      createdBy: creator.userId,
      createdAt: new Date(deps.now()),
      revokedAt: null,
    }),
  )
  return { row, key }
}

/** @throws AppError NOT_FOUND for a revoked key too: revocation is for good. */
export async function changeVirtualKey(
  deps: Deps,
  teamId: string,
  id: string,
  patch: SettingsInput,
): Promise<VirtualKeyRow> {
  if (!isUuid(id)) throw notFound('Virtual key')
  return changeTeam(deps, teamId, async tx => {
    const stored = await lockActiveVirtualKey(tx, teamId, id)
    if (stored === null) throw notFound('Virtual key')
    return updateVirtualKeyRow(tx, teamId, id, given(stored, patch))
  })
}

/** The key stops with the next call on every proxy. @throws AppError NOT_FOUND for a revoked key too. */
export async function revokeKey(deps: Deps, teamId: string, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound('Virtual key')
  const revoke = async (tx: Parameters<typeof revokeVirtualKeyRow>[0]) => {
    if (!(await revokeVirtualKeyRow(tx, teamId, id, new Date(deps.now())))) throw notFound('Virtual key')
  }
  await changeTeam(deps, teamId, revoke, { revokedIds: [id] })
}

function given(settings: VirtualKeySettings, change: SettingsInput): VirtualKeySettings {
  const pick = <K extends keyof VirtualKeySettings>(field: K): VirtualKeySettings[K] => {
    const value = change[field]
    return value === undefined ? settings[field] : (value as VirtualKeySettings[K])
  }
  const distinct = <T>(list: T[] | null) => (list === null ? null : [...new Set(list)])
  return {
    name: pick('name'),
    allowedModels: distinct(pick('allowedModels')),
    allowedProviders: distinct(pick('allowedProviders')),
    maxRpm: pick('maxRpm'),
    maxTpm: pick('maxTpm'),
    cacheTtlSeconds: pick('cacheTtlSeconds'),
  }
}
