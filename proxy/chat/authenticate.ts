import { forbidden, unauthorized } from '../../shared/errors/app-error.js'
import { API_KEY_PREFIX, hashToken, VIRTUAL_KEY_PREFIX } from '../../shared/secrets/token.js'
import type { DirectoryEntry } from '../directory/team.js'
import type { RequestHeaders } from '../http/exchange.js'

/** What a request shows, not yet looked up. */
export interface Credential {
  kind: 'key' | 'session'
  /** SHA-256 of the key or cookie, hex: the token itself goes no further. */
  hash: string
}

const BEARER = 'bearer '
const KEY_CHARACTERS = 40
const SESSION_COOKIE = /(?:^|;\s*)agh_session=([^;\s]+)/

/**
 * Reads the credential of a completion: a bearer key, else the session cookie (spec 3, Authentication).
 *
 * @param ownOrigin of APP_URL: a cookie is taken only from the service's own pages (spec 4, section 3).
 * @throws AppError UNAUTHORIZED when there is none, or it has no form of ours.
 */
export function readCredential(headers: RequestHeaders, ownOrigin: string): Credential {
  const authorization = headers.get('authorization')
  if (authorization !== undefined) {
    const token = authorization.slice(BEARER.length).trim()
    if (authorization.slice(0, BEARER.length).toLowerCase() !== BEARER || !isKey(token)) throw unauthorized()
    return { kind: 'key', hash: hashToken(token) }
  }
  const session = SESSION_COOKIE.exec(headers.get('cookie') ?? '')?.[1]
  if (session === undefined) throw unauthorized()
  if (!isOwnPage(headers, ownOrigin)) throw forbidden('Cross-site request refused.')
  return { kind: 'session', hash: hashToken(session) }
}

/** Prefixes are checked first, so that a guess costs neither a hash nor a look-up. */
function isKey(token: string): boolean {
  const prefix = token.startsWith(VIRTUAL_KEY_PREFIX) ? VIRTUAL_KEY_PREFIX : API_KEY_PREFIX
  return token.length === prefix.length + KEY_CHARACTERS && token.startsWith(prefix)
}

function isOwnPage(headers: RequestHeaders, ownOrigin: string): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  return headers.get('origin') === ownOrigin
}

/**
 * Completions are for virtual keys, team-scoped keys, and people who may write (spec 3, Authentication; spec 4,
 * section 9).
 *
 * @throws AppError FORBIDDEN for a viewer's key or session.
 */
export function checkRole({ credential }: DirectoryEntry): void {
  if (credential.role === 'viewer') throw forbidden()
}
