/**
 * OpenAI, Chat Completions.
 * https://platform.openai.com/docs/api-reference/chat, …/chat-streaming; https://platform.openai.com/docs/guides/error-codes
 *
 * Quirks:
 * - Usage of a stream comes only when `stream_options.include_usage` asks, as an extra chunk with `choices: []`; every
 *   other chunk then carries `"usage":null`. Compatible servers also send it on a last chunk with choices, or running
 *   totals on every chunk.
 * - `prompt_tokens` includes cached tokens, `completion_tokens` includes reasoning.
 * - 429 means too fast (`rate_limit_exceeded`) or out of money (`insufficient_quota`); both say so in the message.
 */
import type { ProviderAdapter } from './adapter.js'
import { openAiCompletion } from './openai-completion.js'
import { openAiRequest } from './openai-request.js'
import { OpenAiStreamReader } from './openai-stream.js'
import { providerFailure } from './provider-error.js'

export const openai: ProviderAdapter = {
  kind: 'openai',
  buildRequest: call => openAiRequest(call, 'drop'),
  readCompletion: openAiCompletion,
  streamReader: call => new OpenAiStreamReader(call),
  readError: providerFailure,
}
