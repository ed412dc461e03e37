import type { ProviderKind } from '../../../shared/contract/common.js'
import type { ModelPricing } from '../../../shared/contract/models.js'

/**
 * List prices of the three vendors' current chat models, as published up to November 2026:
 * https://developers.openai.com/api/docs/pricing, https://platform.claude.com/docs/en/about-claude/pricing,
 * https://ai.google.dev/gemini-api/docs/pricing.
 *
 * Standard tier, text, first band: some models cost more above 100,000 (Haiku 5.5), 200,000 (Gemini Pro) or 272,000
 * (GPT-5.4 and later) prompt tokens, and Gemini 3.6 to 3.8 Flash double on 2027-01-01. A cache write is Anthropic's
 * and OpenAI's shortest; Google bills storage by the hour instead, which is not a price per token.
 */
export interface KnownModel {
  vendor: Exclude<ProviderKind, 'openai_compatible'>
  name: string
  pricing: ModelPricing
  maxOutputTokens: number
  contextWindow: number
}

/** [name, input, output, cached input, cache write, most output tokens, context window]; USD per million tokens. */
type Row = readonly [string, number, number, number | null, number | null, number, number]

const OPENAI: readonly Row[] = [
  ['gpt-6.2-astra', 8, 40, 0.4, 10, 128_000, 1_050_000],
  ['gpt-6.2-sol', 2, 10, 0.1, 2.5, 128_000, 1_050_000],
  ['gpt-6.1-sol', 2, 10, 0.1, 2.5, 128_000, 1_050_000],
  ['gpt-6.1-terra', 1, 5, 0.05, 1.25, 128_000, 1_050_000],
  ['gpt-6-astra', 10, 50, 1, 12.5, 128_000, 1_050_000],
  ['gpt-6-sol', 2, 10, 0.2, 2.5, 128_000, 1_050_000],
  ['gpt-6-luna', 0.1, 0.5, 0.01, 0.125, 128_000, 1_050_000],
  ['gpt-5.6-sol', 4, 20, 0.4, 5, 128_000, 1_050_000],
  ['gpt-5.6-terra', 2, 12, 0.2, 2.5, 128_000, 1_050_000],
  ['gpt-5.6-luna', 0.2, 1.2, 0.02, 0.25, 128_000, 1_050_000],
  ['gpt-5.6', 4, 20, 0.4, 5, 128_000, 1_050_000],
  ['gpt-5.5-pro', 30, 180, null, null, 128_000, 1_050_000],
  ['gpt-5.5', 5, 30, 0.5, null, 128_000, 1_050_000],
  ['gpt-5.4-pro', 30, 180, null, null, 128_000, 1_050_000],
  ['gpt-5.4-mini', 0.75, 4.5, 0.075, null, 128_000, 400_000],
  ['gpt-5.4-nano', 0.2, 1.25, 0.02, null, 128_000, 400_000],
  ['gpt-5.4', 2.5, 15, 0.25, null, 128_000, 1_050_000],
  ['gpt-5.3-codex', 1.75, 14, 0.175, null, 128_000, 400_000],
  ['gpt-5.2-pro', 21, 168, null, null, 128_000, 400_000],
  ['gpt-5.2', 1.75, 14, 0.175, null, 128_000, 400_000],
  ['gpt-5.1', 1.25, 10, 0.125, null, 128_000, 400_000],
  ['gpt-5-pro', 15, 120, null, null, 272_000, 400_000],
  ['gpt-5-mini', 0.25, 2, 0.025, null, 128_000, 400_000],
  ['gpt-5-nano', 0.05, 0.4, 0.005, null, 128_000, 400_000],
  ['gpt-5', 1.25, 10, 0.125, null, 128_000, 400_000],
  ['gpt-4.1', 2, 8, 0.5, null, 32_768, 1_047_576],
  ['gpt-4.1-mini', 0.4, 1.6, 0.1, null, 32_768, 1_047_576],
  ['gpt-4.1-nano', 0.1, 0.4, 0.025, null, 32_768, 1_047_576],
  ['gpt-4o', 2.5, 10, 1.25, null, 16_384, 128_000],
  // The first snapshot kept its first price.
  ['gpt-4o-2024-05-13', 5, 15, null, null, 4_096, 128_000],
  ['gpt-4o-mini', 0.15, 0.6, 0.075, null, 16_384, 128_000],
  ['o4-mini', 1.1, 4.4, 0.275, null, 100_000, 200_000],
  ['o3-pro', 20, 80, null, null, 100_000, 200_000],
  ['o3-mini', 1.1, 4.4, 0.55, null, 100_000, 200_000],
  ['o3', 2, 8, 0.5, null, 100_000, 200_000],
  ['o1', 15, 60, 7.5, null, 100_000, 200_000],
  ['gpt-4-turbo', 10, 30, null, null, 4_096, 128_000],
  ['gpt-3.5-turbo', 0.5, 1.5, null, null, 4_096, 16_385],
]

const ANTHROPIC: readonly Row[] = [
  ['claude-fable-5-1', 10, 50, 0.25, 12.5, 128_000, 1_000_000],
  ['claude-fable-5', 10, 50, 1, 12.5, 128_000, 1_000_000],
  ['claude-mythos-5-1', 10, 50, 0.25, 12.5, 128_000, 1_000_000],
  ['claude-mythos-5', 10, 50, 1, 12.5, 128_000, 1_000_000],
  ['claude-opus-5-5', 4, 20, 0.2, 5, 128_000, 1_000_000],
  ['claude-opus-5', 5, 25, 0.5, 6.25, 128_000, 1_000_000],
  ['claude-opus-4-8', 5, 25, 0.5, 6.25, 128_000, 1_000_000],
  ['claude-opus-4-7', 5, 25, 0.5, 6.25, 128_000, 1_000_000],
  ['claude-opus-4-6', 5, 25, 0.5, 6.25, 128_000, 1_000_000],
  ['claude-opus-4-5', 5, 25, 0.5, 6.25, 64_000, 200_000],
  ['claude-opus-4-1', 15, 75, 1.5, 18.75, 32_000, 200_000],
  ['claude-opus-4', 15, 75, 1.5, 18.75, 32_000, 200_000],
  ['claude-sonnet-5-5', 2, 10, 0.1, 2.5, 128_000, 1_000_000],
  ['claude-sonnet-5', 2, 10, 0.2, 2.5, 128_000, 1_000_000],
  ['claude-sonnet-4-6', 3, 15, 0.3, 3.75, 64_000, 1_000_000],
  ['claude-sonnet-4-5', 3, 15, 0.3, 3.75, 64_000, 200_000],
  ['claude-sonnet-4', 3, 15, 0.3, 3.75, 64_000, 200_000],
  ['claude-haiku-5-5', 0.1, 0.5, 0.01, 0.125, 128_000, 1_000_000],
  ['claude-haiku-4-5', 1, 5, 0.1, 1.25, 64_000, 200_000],
  ['claude-3-7-sonnet', 3, 15, 0.3, 3.75, 64_000, 200_000],
  ['claude-3-5-haiku', 0.8, 4, 0.08, 1, 8_192, 200_000],
]

const GOOGLE: readonly Row[] = [
  ['gemini-3.8-flash', 0.75, 3.75, 0.075, null, 65_536, 1_048_576],
  ['gemini-3.7-flash', 0.75, 3.75, 0.075, null, 65_536, 1_048_576],
  ['gemini-3.6-flash', 0.75, 3.75, 0.075, null, 65_536, 1_048_576],
  ['gemini-3.5-flash-lite', 0.3, 2.5, 0.03, null, 65_536, 1_048_576],
  ['gemini-3.5-flash', 1.5, 9, 0.15, null, 65_536, 1_048_576],
  ['gemini-3.1-pro', 2, 12, 0.2, null, 65_536, 1_048_576],
  ['gemini-3.1-flash-lite', 0.25, 1.5, 0.025, null, 65_536, 1_048_576],
  ['gemini-3-pro', 2, 12, 0.2, null, 65_536, 1_048_576],
  ['gemini-3-flash', 0.5, 3, 0.05, null, 65_536, 1_048_576],
  ['gemini-2.5-pro', 1.25, 10, 0.125, null, 65_536, 1_048_576],
  ['gemini-2.5-flash', 0.3, 2.5, 0.03, null, 65_536, 1_048_576],
  ['gemini-2.5-flash-lite', 0.1, 0.4, 0.01, null, 65_536, 1_048_576],
]

const named =
  (vendor: KnownModel['vendor']) =>
  ([name, input, output, cached, cacheWrite, maxOutputTokens, contextWindow]: Row): KnownModel => ({
    vendor,
    name,
    pricing: {
      inputPerMTok: input,
      outputPerMTok: output,
      cachedInputPerMTok: cached,
      cacheWritePerMTok: cacheWrite,
    },
    maxOutputTokens,
    contextWindow,
  })

const table = [
  ...OPENAI.map(named('openai')),
  ...ANTHROPIC.map(named('anthropic')),
  ...GOOGLE.map(named('google')),
]
const byName = new Map(table.map(model => [model.name, model]))

/** What a first start registers for a vendor whose key it finds: the flagship, the everyday and the cheapest model. */
export const STARTER_MODELS: Record<KnownModel['vendor'], readonly string[]> = {
  openai: ['gpt-6.2-astra', 'gpt-6.2-sol', 'gpt-6-luna'],
  anthropic: ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-haiku-5-5'],
  google: ['gemini-3.1-pro-preview', 'gemini-3.8-flash', 'gemini-3.5-flash-lite'],
}

/**
 * The built-in table's entry for an upstream model id, or null. Dated snapshots and previews are their family's
 * (`gpt-4o-mini-2024-07-18`, `claude-haiku-4-5-20251001`, `gemini-2.5-flash-preview-09-2025`), and so are the names
 * that routers use (`anthropic/claude-sonnet-4.5`, `models/gemini-2.5-pro`).
 */
export function knownModel(upstreamModel: string): KnownModel | null {
  const bare = upstreamModel.toLowerCase().replace(/^(openai|anthropic|google|models)\//, '')
  const family = familyOf(bare)
  // Routers write Anthropic's versions with a dot.
  const dashed = family.startsWith('claude-') ? family.replaceAll('.', '-') : family
  return byName.get(bare) ?? byName.get(dashed) ?? null
}

const SNAPSHOT = /(-\d{4}-\d{2}-\d{2}|[-@]20\d{6}|-latest|-\d{3}|-exp|-preview|-\d{2}-\d{4}|-\d{2}-\d{2})$/

function familyOf(name: string): string {
  const family = name.replace(SNAPSHOT, '')
  return family === name ? name : familyOf(family)
}
