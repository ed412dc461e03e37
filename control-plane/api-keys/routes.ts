import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import * as contract from '../../shared/contract/api-keys.js'
import { isUuid } from '../../shared/contract/common.js'
import { forbidden, notFound, unauthorized } from '../../shared/errors/app-error.js'
import { API_KEY_PREFIX, hashToken, lastFour, mintKey } from '../../shared/secrets/token.js'
import { isManager } from '../access/policy.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import { inTransaction, type Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { changeTeam } from '../gateway/publish.js'
import { route } from '../http/route.js'
import { findMember, lockTeam } from '../teams/queries.js'
import { insertApiKey, listApiKeys, revokeApiKey } from './queries.js'

/** Personal and team-scoped API keys (spec 1, API keys; spec 4, section 3). */
export function registerApiKeys(app: FastifyInstance, deps: Deps): void {
  route(app, deps, contract.createApiKey, async ({ principal, body }) => {
    const teamScoped = body.teamScoped === true
    const key = mintKey(API_KEY_PREFIX)
    const id = randomUUID()
    const createdAt = new Date(deps.now())
    const userId = principal.userId ?? ''
    const { name } = body
    await inTransaction(deps.sql, async tx => {
      // The request may have waited while its person was lowered or removed: what a removal did not see would outlive it.
      await lockTeam(tx, principal.teamId)
      const member = await findMember(tx, principal.teamId, userId)
      if (member === null) throw unauthorized()
      if (teamScoped && !isManager(member)) throw forbidden()
      await insertApiKey(tx, {
        teamId: principal.teamId,
        id,
        name,
        keyHash: hashToken(key),
        lastFour: lastFour(key),
        userId: teamScoped ? null : userId,
        createdBy: userId,
        createdAt,
      })
      const minted = { apiKeyId: id, name, teamScoped }
      await record(tx, principal, createdAt.getTime(), 'api_key_generated', minted)
    })
    return { id, key, name, createdAt: createdAt.toISOString(), teamScoped }
  })

  route(app, deps, contract.listApiKeys, async ({ principal }) => {
    const keys = await listApiKeys(deps.sql, principal.teamId, visibleOwner(principal))
    return keys.map(key => ({ ...key, createdAt: key.createdAt.toISOString() }))
  })

  route(app, deps, contract.revokeApiKey, async ({ principal, params }) => {
    if (!isUuid(params.id)) throw notFound('API key')
    const { teamId } = principal
    // The ledger's marker is text: the id as the database writes it.
    const keyId = params.id.toLowerCase()
    const revoke = async (tx: Sql) => {
      const nowMs = deps.now()
      const revoked = await revokeApiKey(tx, teamId, keyId, visibleOwner(principal), new Date(nowMs))
      if (revoked === null) throw notFound('API key')
      await record(tx, principal, nowMs, 'api_key_revoked', { apiKeyId: keyId, ...revoked })
    }
    await changeTeam(deps, teamId, revoke, { revokedIds: [keyId] })
  })
}

/** Whose personal keys the caller sees: only the own ones, unless owner, admin or a team-scoped key: all of the team. */
const visibleOwner = (principal: Principal): string | null =>
  isManager(principal) || principal.via === 'team_api_key' ? null : principal.userId
