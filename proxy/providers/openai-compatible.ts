/**
 * Servers that speak OpenAI's Chat Completions under a base URL of their own: vLLM, SGLang, Ollama, OpenRouter, LiteLLM,
 * Groq, DeepSeek, xAI and many more.
 * https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html; https://openrouter.ai/docs/features/prompt-caching
 *
 * Quirks:
 * - Routers in front of Anthropic take cache markers on a content block, and nowhere else.
 * - In-band errors: `data: {"error": …}` (OpenRouter with a number as code), vLLM `{"object":"error"}` without the key.
 * - OpenRouter sends comment frames (`: OPENROUTER PROCESSING`) while it waits.
 */
import type { ProviderAdapter } from './adapter.js'
import { openai } from './openai.js'
import { openAiRequest } from './openai-request.js'

export const openaiCompatible: ProviderAdapter = {
  ...openai,
  kind: 'openai_compatible',
  buildRequest: call => openAiRequest(call, isAnthropicModel(call.upstreamModel) ? 'blocks' : 'drop'),
}

/** `anthropic/claude-…` (OpenRouter), `claude-…`, `eu.anthropic.claude-…` (LiteLLM, Bedrock). */
const isAnthropicModel = (model: string) => /claude|anthropic\//i.test(model)
