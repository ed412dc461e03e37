import type { TokenBuckets } from '../../shared/spool/record.js'
import { asCount, asObject, isObject, type Json } from './wire-values.js'

/**
 * OpenAI's `usage` to exclusive buckets. `prompt_tokens` includes what was read from and written to caches. Other names
 * for cache reads: `cached_tokens` beside the totals (this gateway, some routers), `prompt_cache_hit_tokens` (DeepSeek),
 * `cache_read_input_tokens` and `cache_creation_input_tokens` (routers in front of Anthropic).
 *
 * @returns null when the totals are missing; zeros are values.
 */
export function bucketsOf(usage: unknown): TokenBuckets | null {
  if (!isObject(usage)) return null
  const prompt = asCount(usage.prompt_tokens)
  const completion = asCount(usage.completion_tokens)
  if (prompt === null && completion === null) return null
  const total = prompt ?? 0
  const cacheRead = Math.min(total, cachedTokens(usage))
  const written = asCount(asObject(usage.prompt_tokens_details).cache_write_tokens)
  const cacheWrite = Math.min(total - cacheRead, written ?? asCount(usage.cache_creation_input_tokens) ?? 0)
  const output = (completion ?? 0) + reasoningOutside(usage, total, completion ?? 0)
  return { input: total - cacheRead - cacheWrite, cacheRead, cacheWrite, output }
}

/** xAI leaves reasoning out of `completion_tokens` but not out of the total, and bills it as output. */
function reasoningOutside(usage: Json, prompt: number, completion: number): number {
  const reasoning = asCount(asObject(usage.completion_tokens_details).reasoning_tokens) ?? 0
  return reasoning > 0 && usage.total_tokens === prompt + completion + reasoning ? reasoning : 0
}

function cachedTokens(usage: Json): number {
  const detail = asCount(asObject(usage.prompt_tokens_details).cached_tokens)
  return (
    detail ??
    asCount(usage.cached_tokens) ??
    asCount(usage.prompt_cache_hit_tokens) ??
    asCount(usage.cache_read_input_tokens) ??
    0
  )
}

/**
 * Cached tokens are shown in both places where clients look, `cached_tokens` and `prompt_tokens_details.cached_tokens`
 * (spec 3, completions; spec 4, section 9).
 *
 * @returns null when the provider's own object already does, or when nothing was cached.
 */
export function withCachedTokens(usage: Json): Json | null {
  const cached = cachedTokens(usage)
  const details = asObject(usage.prompt_tokens_details)
  if (cached === 0 || (usage.cached_tokens === cached && details.cached_tokens === cached)) return null
  return {
    ...usage,
    cached_tokens: cached,
    prompt_tokens_details: { ...details, cached_tokens: cached },
  }
}

/** Buckets as OpenAI's `usage`. `reasoning` is the part of the output that the model thought, when known. */
export function usageOf(tokens: TokenBuckets, reasoning: number | null): Json {
  const { input, cacheRead, cacheWrite, output } = tokens
  const prompt = input + cacheRead + cacheWrite
  const usage: Json = { prompt_tokens: prompt, completion_tokens: output, total_tokens: prompt + output }
  if (cacheRead > 0) usage.cached_tokens = cacheRead
  if (cacheRead > 0 || cacheWrite > 0) {
    usage.prompt_tokens_details = {
      cached_tokens: cacheRead,
      ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }),
    }
  }
  if (reasoning !== null) usage.completion_tokens_details = { reasoning_tokens: reasoning }
  return usage
}
