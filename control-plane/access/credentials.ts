import type { FastifyRequest } from 'fastify'
import type { Access } from '../../shared/contract/endpoint.js'
import { forbidden, unauthorized } from '../../shared/errors/app-error.js'
import { API_KEY_PREFIX, hashToken, VIRTUAL_KEY_PREFIX } from '../../shared/secrets/token.js'
import type { Deps } from '../deps.js'
import { isOwnOrigin } from '../http/origin.js'
import { anonymous, internal, type Principal } from './principal.js'
import { findApiKeyByHash, findSessionByHash, findVirtualKeyByHash } from './queries.js'
import { sameText } from './same-text.js'

export const SESSION_COOKIE = 'agh_session'

/**
 * The caller of an endpoint, or 401. A Bearer credential wins over a cookie: it was sent on purpose.
 * What a principal may do is `policy.ts`.
 *
 * @throws AppError UNAUTHORIZED `Authentication required.` for a missing or dead credential; FORBIDDEN for a write with
 *   a cookie that does not come from the service's own pages.
 */
export async function authenticate(access: Access, request: FastifyRequest, deps: Deps): Promise<Principal> {
  // A public endpoint takes no credential, so a stale one does no harm; accepting an invite looks for a session itself.
  if (access === 'public') return anonymous
  const bearer = bearerToken(request)
  if (access === 'internal') return internalCaller(bearer, deps)
  if (bearer !== null) return keyHolder(bearer, deps)
  const session = await signedInSession(request, deps)
  if (session === null) throw unauthorized()
  return session
}

/**
 * The person behind the session cookie, or null without a live one.
 *
 * @throws AppError FORBIDDEN for a write that another site's page sent (spec 4, section 3).
 */
export async function signedInSession(request: FastifyRequest, deps: Deps): Promise<Principal | null> {
  const token = request.cookies[SESSION_COOKIE]
  if (token === undefined || token === '') return null
  const session = await findSessionByHash(deps.sql, hashToken(token), new Date(deps.now()))
  if (session === null) return null
  if (isWrite(request.method) && !isOwnOrigin(request, deps.config)) {
    throw crossSite()
  }
  return {
    via: 'session',
    teamId: session.teamId,
    userId: session.userId,
    role: session.role,
    credentialId: session.id,
  }
}

export const crossSite = () => forbidden('Cross-site requests are not allowed.')

const isWrite = (method: string) => method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS'

function bearerToken(request: FastifyRequest): string | null {
  const match = /^bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')
  return match?.[1] ?? null
}

async function keyHolder(token: string, deps: Deps): Promise<Principal> {
  if (token.startsWith(API_KEY_PREFIX)) {
    const key = await findApiKeyByHash(deps.sql, hashToken(token))
    if (key === null) throw unauthorized()
    const via = key.userId === null ? 'team_api_key' : 'api_key'
    return { via, teamId: key.teamId, userId: key.userId, role: key.role, credentialId: key.id }
  }
  if (token.startsWith(VIRTUAL_KEY_PREFIX)) {
    const key = await findVirtualKeyByHash(deps.sql, hashToken(token))
    if (key === null) throw unauthorized()
    return { via: 'virtual_key', teamId: key.teamId, userId: null, role: null, credentialId: key.id }
  }
  throw unauthorized()
}

function internalCaller(bearer: string | null, deps: Deps): Principal {
  if (bearer === null || !sameText(bearer, deps.config.internalToken)) throw unauthorized()
  return internal
}
