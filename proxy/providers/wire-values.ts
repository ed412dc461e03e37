import { isObject } from '../../shared/json/is-object.js'

/** Reading values that came over the wire and may be anything. */
export type Json = Record<string, unknown>

export { isObject }

export const asObject = (value: unknown): Json => (isObject(value) ? value : {})

export const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** @returns '' for anything but a string. */
export const asText = (value: unknown): string => (typeof value === 'string' ? value : '')

/**
 * A hundred times the largest context window; a provider that counts further is not counting tokens. A charge holds eight
 * times as much, so that the sum of a few counts fits too.
 */
const MOST_TOKENS = 2 ** 28

/** @returns a whole number of at least 0, or null: an explicit zero is a value, an absent or absurd count is not. */
export const asCount = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= MOST_TOKENS ? Math.trunc(value) : null

/** @returns the parsed value, or undefined when the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Members that are set to something: `undefined` never reaches JSON, null would tell a vendor "unset" in words it may not know. */
export function present(members: Json): Json {
  const kept: Json = {}
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined && value !== null) kept[name] = value
  }
  return kept
}

/** A vendor path below a base URL: the URL's own path and query stay (`…?api-version=1`). */
export function pathUnder(baseUrl: string, suffix: string): string {
  // Past `https://` and at least one character of the host.
  const start = baseUrl.indexOf('/', 8)
  if (start < 0) return suffix
  const query = baseUrl.indexOf('?', start)
  if (query < 0) return baseUrl.slice(start) + suffix
  const glue = suffix.includes('?') ? '&' : '?'
  return baseUrl.slice(start, query) + suffix + glue + baseUrl.slice(query + 1)
}
