import { randomUUID } from 'node:crypto'
import { notFound } from '../../shared/errors/app-error.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import { inTransaction } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { deleteSecretRow, findSealedSecrets, type SecretRow, upsertSecret } from './queries.js'

type Author = Pick<Principal, 'teamId' | 'userId'>

/**
 * Stores a secret, sealed for its team and row: copied to another row or team it does not open. A new value is a new
 * row id, so that two writers at once cannot leave one's id with the other's seal.
 */
export async function storeSecret(
  deps: Deps,
  author: Author,
  name: string,
  value: string,
): Promise<SecretRow> {
  const { teamId } = author
  const nowMs = deps.now()
  const id = randomUUID()
  const sealedValue = deps.vault.seal(value, { teamId, rowId: id })
  const updatedAt = new Date(nowMs)
  await inTransaction(deps.sql, async tx => {
    await upsertSecret(tx, teamId, { id, name, sealedValue, updatedAt })
    await record(tx, author, nowMs, 'secret_set', { name, removed: false })
  })
  return { name, updatedAt }
}

/** @throws AppError NOT_FOUND `Secret not found.` */
export async function removeSecret(deps: Deps, author: Author, name: string): Promise<void> {
  await inTransaction(deps.sql, async tx => {
    if (!(await deleteSecretRow(tx, author.teamId, name))) throw notFound('Secret')
    await record(tx, author, deps.now(), 'secret_set', { name, removed: true })
  })
}

/** The values of those of the names that the team has, for a call that is about to be made; never to be answered. */
export async function openSecrets(
  deps: Pick<Deps, 'sql' | 'vault'>,
  teamId: string,
  names: readonly string[],
): Promise<Map<string, string>> {
  if (names.length === 0) return new Map()
  const rows = await findSealedSecrets(deps.sql, teamId, names)
  return new Map(
    rows.map(({ id, name, sealedValue }) => [name, deps.vault.open(sealedValue, { teamId, rowId: id })]),
  )
}
