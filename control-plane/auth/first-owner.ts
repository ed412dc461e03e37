import { randomBytes, randomUUID } from 'node:crypto'
import { API_KEY_PREFIX, hashToken, lastFour, mintKey } from '../../shared/secrets/token.js'
import { insertApiKey } from '../api-keys/queries.js'
import { record } from '../audit/record.js'
import { inTransaction, type Sql } from '../db/sql.js'
import { hashPassword } from './password.js'
import { hasUsers, lockFirstUser } from './queries.js'
import { createPersonWithTeam } from './sign-up.js'

export interface FirstOwner {
  email: string
  password: string
  userId: string
  teamId: string
  /** A personal API key; shown once. */
  apiKey: string
}

/**
 * Creates the owner that `agh start` prints on an empty database: `owner@localhost` with a random password, a team and
 * a personal API key (spec 4, section 1). It counts as the first user of `SIGNUP=first`.
 *
 * @param keep puts the secrets where a kill cannot take them, before they count: an owner whose password nobody knows
 *   would lock everybody out of `SIGNUP=first`. When it throws, nothing is created.
 * @returns null when there are users: then nothing is created.
 */
export async function createFirstOwner(
  sql: Sql,
  keep: (owner: FirstOwner) => void = () => {},
): Promise<FirstOwner | null> {
  if (await hasUsers(sql)) return null
  const email = 'owner@localhost'
  const password = randomBytes(15).toString('base64url')
  const passwordHash = await hashPassword(password)
  const nowMs = Date.now()
  return inTransaction(sql, async tx => {
    await lockFirstUser(tx)
    if (await hasUsers(tx)) return null
    const created = await createPersonWithTeam(tx, { email, name: 'Owner', passwordHash }, 'My team', nowMs)
    const apiKey = mintKey(API_KEY_PREFIX)
    const { id: userId } = created.user
    const [teamId, apiKeyId, name] = [created.team.id, randomUUID(), 'First key']
    await insertApiKey(tx, {
      teamId,
      id: apiKeyId,
      name,
      keyHash: hashToken(apiKey),
      lastFour: lastFour(apiKey),
      userId,
      createdBy: userId,
      createdAt: new Date(nowMs),
    })
    const minted = { apiKeyId, name, teamScoped: false }
    await record(tx, { teamId, userId }, nowMs, 'api_key_generated', minted)
    const owner = { email, password, userId, teamId, apiKey }
    keep(owner)
    return owner
  })
}
