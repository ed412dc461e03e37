import type { ProviderKind } from '../../shared/contract/common.js'
import type { ProviderAdapter } from './adapter.js'
import { anthropic } from './anthropic.js'
import { google } from './gemini.js'
import { openai } from './openai.js'
import { openaiCompatible } from './openai-compatible.js'

/** Every provider kind. A new one: its file and its line here; the compiler and the conformance suite ask for the rest. */
export const adapters = {
  openai,
  anthropic,
  google,
  openai_compatible: openaiCompatible,
} satisfies Record<ProviderKind, ProviderAdapter>
