/**
 * Anthropic, Messages.
 * https://docs.anthropic.com/en/api/messages, …/messages-streaming, …/errors;
 * https://platform.claude.com/docs/en/build-with-claude/prompt-caching, …/effort, …/extended-thinking
 *
 * Quirks:
 * - `max_tokens` is required; turns alternate; all results of one turn's tool calls go into one user turn, first in it.
 * - `input_tokens` excludes cache reads and writes: the prompt is the sum of the three.
 * - Stream usage is cumulative, spread over `message_start` and every `message_delta`; `overloaded_error` (529 otherwise)
 *   may come in-band after a 200.
 * - Thinking must be sent back with its signature on the next tool turn. It travels in the message members
 *   `reasoning_content` (text, for show) and `thinking_blocks` (whole, to be sent back).
 * - At most four cache markers a request; the API says so itself.
 */
import type { ProviderAdapter } from './adapter.js'
import { anthropicBody } from './anthropic-request.js'
import { anthropicCompletion } from './anthropic-response.js'
import { AnthropicStreamReader } from './anthropic-stream.js'
import { providerFailure } from './provider-error.js'
import { pathUnder } from './wire-values.js'

export const anthropic: ProviderAdapter = {
  kind: 'anthropic',
  buildRequest: call => ({
    path: pathUnder(call.baseUrl, '/messages'),
    headers: [
      'x-api-key',
      call.apiKey,
      'anthropic-version',
      '2023-06-01',
      'content-type',
      'application/json',
    ],
    body: Buffer.from(JSON.stringify(anthropicBody(call))),
  }),
  readCompletion: anthropicCompletion,
  streamReader: call => new AnthropicStreamReader(call),
  readError: providerFailure,
}
