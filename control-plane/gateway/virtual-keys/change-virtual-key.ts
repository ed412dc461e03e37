import { isUuid } from '../../../shared/contract/common.js'
import { notFound } from '../../../shared/errors/app-error.js'
import { hashToken, lastFour, mintKey, VIRTUAL_KEY_PREFIX } from '../../../shared/secrets/token.js'
import { changedFields } from '../../audit/changed-fields.js'
import { type Actor, record } from '../../audit/record.js'
import type { Sql } from '../../db/sql.js'
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
  actor: Actor,
): Promise<{ row: VirtualKeyRow; key: string }> {
  const key = mintKey(VIRTUAL_KEY_PREFIX)
  const unrestricted = {
    allowedModels: null,
    allowedProviders: null,
    maxRpm: null,
    maxTpm: null,
    cacheTtlSeconds: null,
  }
  const { teamId, userId } = actor
  const row = await changeTeam(deps, teamId, async tx => {
    const createdAt = new Date(deps.now())
    const stored = await insertVirtualKey(tx, {
      ...given({ name: input.name, ...unrestricted }, input),
      id,
      teamId,
      keyHash: hashToken(key),
      keyLastFour: lastFour(key),
      createdBy: userId,
      createdAt,
      revokedAt: null,
    })
    await record(tx, actor, createdAt.getTime(), 'virtual_key_created', named(stored))
    return stored
  })
  return { row, key }
}

/** @throws AppError NOT_FOUND for a revoked key too: revocation is for good. */
export async function changeVirtualKey(
  deps: Deps,
  actor: Actor,
  id: string,
  patch: SettingsInput,
): Promise<VirtualKeyRow> {
  if (!isUuid(id)) throw notFound('Virtual key')
  const { teamId } = actor
  return changeTeam(deps, teamId, async tx => {
    const stored = await lockActiveVirtualKey(tx, teamId, id)
    if (stored === null) throw notFound('Virtual key')
    const row = await updateVirtualKeyRow(tx, teamId, id, given(stored, patch))
    const changed = changedFields(stored, row, CHANGEABLE)
    const updated = { ...named(row), changed }
    if (changed.length > 0) await record(tx, actor, deps.now(), 'virtual_key_updated', updated)
    return row
  })
}

/** The key stops with the next call on every proxy. @throws AppError NOT_FOUND for a revoked key too. */
export async function revokeKey(deps: Deps, actor: Actor, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound('Virtual key')
  const { teamId } = actor
  const revoke = async (tx: Sql) => {
    const nowMs = deps.now()
    const row = await revokeVirtualKeyRow(tx, teamId, id, new Date(nowMs))
    if (row === null) throw notFound('Virtual key')
    await record(tx, actor, nowMs, 'virtual_key_revoked', named(row))
  }
  await changeTeam(deps, teamId, revoke, { revokedIds: [id] })
}

const CHANGEABLE = [
  'name',
  'allowedModels',
  'allowedProviders',
  'maxRpm',
  'maxTpm',
  'cacheTtlSeconds',
] as const

const named = (row: VirtualKeyRow) => ({ name: row.name, virtualKeyId: row.id })

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
