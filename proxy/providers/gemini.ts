/**
 * Google, Gemini API (generateContent).
 * https://ai.google.dev/api/generate-content, …/gemini-api/docs/function-calling, …/thought-signatures, …/thinking
 *
 * Quirks:
 * - The key goes in a header: in the URL, as the vendor's first examples have it, it would end up in logs.
 * - Only `user` and `model` roles; results of tools name the function; ids of calls are optional.
 * - Thought signatures of calls must come back, or Gemini 3 answers 400. They travel in `extra_content.google`.
 * - `finishReason` is STOP for tool calls too; a blocked prompt has no candidates at all.
 * - `candidatesTokenCount` excludes thoughts, `promptTokenCount` includes cached tokens; stream usage is a running total.
 * - A stream has no end mark. A bad key is 400 INVALID_ARGUMENT; the wait of a 429 is in the body (RetryInfo).
 */
import type { ProviderAdapter } from './adapter.js'
import { geminiBody } from './gemini-request.js'
import { geminiCompletion } from './gemini-response.js'
import { GeminiStreamReader } from './gemini-stream.js'
import { providerFailure } from './provider-error.js'
import { pathUnder } from './wire-values.js'

export const google: ProviderAdapter = {
  kind: 'google',
  buildRequest: call => ({
    path: pathUnder(call.baseUrl, `/${resource(call.upstreamModel)}:${method(call.stream)}`),
    headers: ['x-goog-api-key', call.apiKey, 'content-type', 'application/json'],
    body: Buffer.from(JSON.stringify(geminiBody(call))),
  }),
  readCompletion: geminiCompletion,
  streamReader: call => new GeminiStreamReader(call),
  readError: providerFailure,
}

const method = (stream: boolean) => (stream ? 'streamGenerateContent?alt=sse' : 'generateContent')

/** `gemini-…` is a model; `models/…` and `tunedModels/…` say what they are. */
function resource(model: string): string {
  const path = /^(?:tunedM|m)odels\//.test(model) ? model : `models/${model}`
  return path.split('/').map(encodeURIComponent).join('/')
}
