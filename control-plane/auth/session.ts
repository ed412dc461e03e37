import { randomUUID } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import { hashToken, mintToken } from '../../shared/secrets/token.js'
import { SESSION_COOKIE } from '../access/credentials.js'
import type { Config } from '../config.js'
import type { Sql } from '../db/sql.js'
import { insertSession } from './queries.js'

const SESSION_SECONDS = 30 * 86_400

/** Signs a person in to a team. @returns the cookie's value; only its hash is stored. */
export async function openSession(
  tx: Sql,
  who: { userId: string; teamId: string },
  nowMs: number,
): Promise<string> {
  const token = mintToken()
  await insertSession(tx, {
    id: randomUUID(),
    tokenHash: hashToken(token),
    userId: who.userId,
    teamId: who.teamId,
    createdAt: new Date(nowMs),
    expiresAt: new Date(nowMs + SESSION_SECONDS * 1000),
  })
  return token
}

/** `agh_session`: httpOnly, SameSite=Lax, Secure when APP_URL is https, 30 days (spec 4, section 3). */
export function setSessionCookie(reply: FastifyReply, config: Config, token: string): void {
  reply.setCookie(SESSION_COOKIE, token, { ...cookieOptions(config), maxAge: SESSION_SECONDS })
}

export function clearSessionCookie(reply: FastifyReply, config: Config): void {
  reply.clearCookie(SESSION_COOKIE, cookieOptions(config))
}

const cookieOptions = (config: Config) =>
  ({ path: '/', httpOnly: true, sameSite: 'lax', secure: config.appUrl.startsWith('https:') }) as const
