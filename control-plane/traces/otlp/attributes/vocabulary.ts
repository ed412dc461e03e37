import type { SpanKind } from '../../../../shared/contract/traces.js'
import { nanoFromUsd } from '../../../../shared/money/nano.js'
import { clean } from '../../payload.js'
import type { SpanWrite } from '../../span-write.js'
import type { Attributes } from '../attribute-value.js'

/** What a vocabulary's attributes say about a span and its trace. null: nothing. */
export interface Vocabulary
  extends Pick<
    SpanWrite,
    'model' | 'provider' | 'promptTokens' | 'completionTokens' | 'totalTokens' | 'costNano'
  > {
  kind: SpanKind | null
  sessionId: string | null
  tags: readonly string[]
  metadata: Record<string, unknown> | null
}

/** The captured content of a span. null: none. */
export interface Content {
  input: unknown
  output: unknown
}

/** The first of the names that holds text. */
export function textAt(attributes: Attributes, ...names: readonly string[]): string | null {
  for (const name of names) {
    const value = attributes[name]
    if (typeof value === 'string' && value.trim() !== '') return value
  }
  return null
}

/** 2^53 - 1 is also what the API's numbers hold; a larger count is nobody's. */
const MOST_TOKENS = Number.MAX_SAFE_INTEGER

/** The first of the names that holds a count; some exporters send counts as doubles or as text. */
export function countAt(attributes: Attributes, ...names: readonly string[]): number | null {
  for (const name of names) {
    const count = numberOf(attributes[name])
    if (count !== null && count >= 0 && count <= MOST_TOKENS) return Math.round(count)
  }
  return null
}

/** What integer nano-dollars hold exactly; the same bound as `costUsd` of POST /traces. */
const MOST_USD = 9_000_000

/** The first of the names that holds an amount of US dollars, as nano-dollars. */
export function nanoAt(attributes: Attributes, ...names: readonly string[]): number | null {
  for (const name of names) {
    const usd = numberOf(attributes[name])
    if (usd !== null && usd >= 0 && usd <= MOST_USD) return nanoFromUsd(usd)
  }
  return null
}

function numberOf(value: unknown): number | null {
  if (typeof value === 'number') return value
  if (typeof value !== 'string' || !/^\d{1,20}(\.\d{1,20})?(e-?\d{1,3})?$/i.test(value)) return null
  return Number(value)
}

/**
 * JSON text parsed; any other value, and text that is not JSON, as it is. Cleaned, because escapes in the text may stand
 * for what PostgreSQL does not take, and bounded in depth, because what comes after it recurses.
 */
export function parsedJson(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{"\dtfn-]/.test(value)) return value
  try {
    return clean(JSON.parse(value))
  } catch {
    return value
  }
}

/** Prompt and completion add up to the total where the total itself is not given. */
export function totalOf(
  total: number | null,
  prompt: number | null,
  completion: number | null,
): number | null {
  if (total !== null || (prompt === null && completion === null)) return total
  return (prompt ?? 0) + (completion ?? 0)
}
