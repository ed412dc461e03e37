import type { PricingRecord } from '../../shared/directory/records.js'
import type { TokenBuckets } from '../../shared/spool/record.js'
import type { ChatMessage } from '../providers/adapter.js'
import type { ChatCall } from './parse.js'

/** Nano-dollars per token, possibly fractional: 0.15 USD per million tokens is 150, 0.0375 is 37.5. */
export interface TokenPrices {
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly output: number
}

/** A cache price that is not configured is the input prices. */
export function tokenPrices(pricing: PricingRecord): TokenPrices {
  return {
    input: nanoPerToken(pricing.inputPerMTok),
    cacheRead: nanoPerToken(pricing.cachedInputPerMTok ?? pricing.inputPerMTok),
    cacheWrite: nanoPerToken(pricing.cacheWritePerMTok ?? pricing.inputPerMTok),
    output: nanoPerToken(pricing.outputPerMTok),
  }
}

/** To twelve digits: 0.0011 * 1000 is 1.1 and not 1.1000000000000001. */
const nanoPerToken = (usdPerMTok: number) => Number((usdPerMTok * 1000).toPrecision(12))

/** A million dollars: more than any call costs, and far from where sums of doubles lose nano-dollars. */
const MOST_COST_NANO = 1e15

/** Whole nano-dollars. The buckets are exclusive, so nothing is counted twice. */
export function costNano(tokens: TokenBuckets, prices: TokenPrices | null): number {
  if (prices === null) return 0
  const nano =
    tokens.input * prices.input +
    tokens.cacheRead * prices.cacheRead +
    tokens.cacheWrite * prices.cacheWrite +
    tokens.output * prices.output
  return Math.min(Math.round(nano), MOST_COST_NANO)
}

/** Output reserved when a call names no maximum (spec 4, section 5). */
const DEFAULT_OUTPUT_TOKENS = 4_096
/** Three bytes a token is above what English (about 4) and most other text needs: an estimate that errs high. */
const BYTES_PER_TOKEN = 3
const TOKENS_PER_MESSAGE = 8
/** What a large image costs at the three vendors, roughly; its base64 bytes say nothing about it. */
const TOKENS_PER_IMAGE = 1_600
/** More than any model writes. The provider judges an absurd `max_tokens`; the ledger takes safe integers alone. */
const MOST_OUTPUT_TOKENS = 2 ** 31 - 1

export interface Estimate {
  promptTokens: number
  outputTokens: number
  costNano: number
}

/**
 * What a call may cost at most, as far as one can know before it: reserved at admission (spec 4, section 5).
 *
 * @param maxOutputTokens of the model; null when not configured.
 */
export function estimateCall(
  call: ChatCall,
  prices: TokenPrices | null,
  maxOutputTokens: number | null,
): Estimate {
  const { images, dataUrlBytes } = countImages(call.request.messages)
  const promptTokens =
    Math.ceil((call.bodyBytes - dataUrlBytes) / BYTES_PER_TOKEN) +
    TOKENS_PER_MESSAGE * call.request.messages.length +
    TOKENS_PER_IMAGE * images
  const perChoice =
    call.maxTokens ?? Math.min(maxOutputTokens ?? DEFAULT_OUTPUT_TOKENS, DEFAULT_OUTPUT_TOKENS)
  const outputTokens = Math.min(perChoice * call.choices, MOST_OUTPUT_TOKENS)
  const tokens = { input: promptTokens, cacheRead: 0, cacheWrite: 0, output: outputTokens }
  return { promptTokens, outputTokens, costNano: costNano(tokens, prices) }
}

/** Output tokens that so many bytes of text are, for a stream whose provider has not said. */
export const outputTokensOf = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN)

function countImages(messages: readonly ChatMessage[]): { images: number; dataUrlBytes: number } {
  let images = 0
  let dataUrlBytes = 0
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue
    for (const part of content as { type?: unknown; image_url?: { url?: unknown } }[]) {
      if (part?.type !== 'image_url') continue
      images++
      const url = part.image_url?.url
      if (typeof url === 'string' && url.startsWith('data:')) dataUrlBytes += url.length
    }
  }
  return { images, dataUrlBytes }
}
