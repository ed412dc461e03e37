import { z } from 'zod'
import { id, timestamp } from './common.js'

/** What prompts and tools have in common: a name, numbered versions, and aliases that say which of them serves. */

/** Characters of the longest name that anything has: a prompt's. */
export const LONGEST_NAME = 200
/** PostgreSQL's integer, which version numbers are. */
export const HIGHEST_VERSION = 2_147_483_647
export const versionNumber = z.number().int().min(1).max(HIGHEST_VERSION)

/** A version number in a path; null: what is none can only name a missing version. */
export const versionNumberOf = (text: string): number | null =>
  /^[1-9]\d{0,9}$/.test(text) && Number(text) <= HIGHEST_VERSION ? Number(text) : null

/** The name of an alias (spec 4, section 6). */
export const aliasName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, {
  message: 'An alias must match ^[a-z0-9][a-z0-9_-]{0,63}$.',
})

/** An alias and the version that it serves. */
export const versionAlias = z.object({
  id,
  alias: z.string(),
  versionId: id,
  versionNumber: z.number().int(),
  updatedAt: timestamp,
})

/** For `refine` on the body that renames or describes: one of the two has to be there (spec 1, PATCH /prompts/:id). */
export const nameOrDescription = [
  (body: { name?: unknown; description?: unknown }) =>
    body.name !== undefined || body.description !== undefined,
  { message: 'At least one of name or description must be provided.' },
] as const
