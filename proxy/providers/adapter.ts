import type { ProviderKind } from '../../shared/contract/common.js'
import type { TokenBuckets } from '../../shared/spool/record.js'

/**
 * A vendor's wire format, both directions: pure functions over values, no I/O. One file per vendor, listed in
 * `providers/index.ts`; one conformance suite runs every capability against every adapter (design D13).
 */
export interface ProviderAdapter {
  readonly kind: ProviderKind
  /** @throws AppError VALIDATION_ERROR for a request that the vendor's format cannot hold. */
  buildRequest(call: UpstreamCall): UpstreamRequest
  /** A 2xx plain answer in OpenAI's form. @throws BrokenAnswer when it is not a completion. */
  readCompletion(body: Buffer, call: UpstreamCall): Completion
  /** One reader per stream. */
  streamReader(call: UpstreamCall): StreamReader
  /** A non-2xx answer. `apiKey`: the connection's, taken out of the message should the provider repeat it. */
  readError(status: number, headers: UpstreamHeaders, body: Buffer, apiKey?: string): ProviderFailure
}

/** One call, resolved: what goes to the provider and how. */
export interface UpstreamCall {
  /** The client's request without gateway-owned fields, `model` still the public name. Treat as read-only. */
  request: ChatRequest
  /** The client's bytes, when they may be used as they are but for `model`: see chat/parse.ts. Null otherwise. */
  raw: RawBody | null
  upstreamModel: string
  baseUrl: string
  apiKey: string
  stream: boolean
  /** The client asked for `stream_options.include_usage`. */
  wantsUsage: boolean
  maxOutputTokens: number | null
  requestId: string
}

export interface RawBody {
  bytes: Buffer
  /** Where the JSON string of the top-level `model` lies, quotes included; equal offsets when there is none. */
  modelStart: number
  modelEnd: number
  /** Offset just after the opening brace, where a member can be inserted. */
  insertAt: number
  /** Whether a top-level `stream_options` is there: then usage cannot be asked for by insertion. */
  hasStreamOptions: boolean
  /** Whether any message may carry `cache_control`. */
  mayHaveCacheControl: boolean
}

/** An OpenAI chat completion request, as loosely as the wire has it: unknown members pass through. */
export interface ChatRequest {
  model?: string
  messages: ChatMessage[]
  stream?: boolean
  stream_options?: { include_usage?: boolean; [key: string]: unknown }
  max_tokens?: number
  max_completion_tokens?: number
  tools?: unknown[]
  tool_choice?: unknown
  n?: number
  [key: string]: unknown
}

export interface ChatMessage {
  role: string
  content?: unknown
  cache_control?: { type: string }
  [key: string]: unknown
}

export interface UpstreamRequest {
  /** Absolute path and query under the base URL's origin. */
  path: string
  /** Flat [name, value, …]; the credential included. No content-length. */
  headers: string[]
  body: Buffer
}

export type UpstreamHeaders = (name: string) => string | undefined

export interface Completion {
  /** The bytes for the client: the provider's own, untouched, wherever nothing must be added or stripped. */
  bytes: Buffer
  tokens: TokenBuckets | null
  finishReason: string | null
  /** For payload capture and the replay of cached answers; parsed on demand. */
  value(): Record<string, unknown>
}

export type InputTokens = Omit<TokenBuckets, 'output'>

/**
 * Feed it the provider's bytes in any pieces; it gives the client's bytes. Hostile ones are told of in `state`; only JSON
 * that is nested deeper than the stack may make `push` or `end` throw, and then the stream is broken.
 */
export interface StreamReader {
  /** @returns bytes for the client, possibly empty. */
  push(chunk: Buffer): Uint8Array
  /** The provider ended the body. Returns the last bytes for the client, `data: [DONE]` among them if all is well. */
  end(): Uint8Array
  readonly state: StreamState
}

export interface StreamState {
  /** Whether the vendor's own end mark or finish reason was seen: otherwise the stream was cut. */
  complete: boolean
  /** The vendor's end mark was seen (Google has none): `end` may be called although the provider keeps the body open. */
  ended: boolean
  /** An in-band error of the provider, or bytes that are not its format; nothing more may be sent as an answer. */
  failure: { message: string } | null
  tokens: TokenBuckets | null
  /** What the prompt was counted as, where the vendor says so before the answer begins (Anthropic). */
  inputTokens: InputTokens | null
  finishReason: string | null
  /**
   * Bytes of text, reasoning and tool arguments so far: what output is estimated from while usage is unknown. In streams
   * that pass through, escapes count as they are written.
   */
  outputBytes: number
  /** Assembled answer in OpenAI's non-streamed form; costs memory, so it exists only when asked for. */
  assemble: (() => Record<string, unknown>) | null
  /** Turns assembling on (payload capture, response cache). Call it before the first push. */
  collect(): void
}

/** What the client gets for a provider's error (spec 3, completions; spec 4, section 9 Gateway). */
export interface ProviderFailure {
  /** 400, 404, 413, 422 are forwarded with the provider's own message; 429 is PROVIDER_RATE_LIMITED; all else 502. */
  status: number
  code: 'PROVIDER_ERROR' | 'PROVIDER_RATE_LIMITED'
  message: string
  retryAfterSeconds: number | null
}

/** A 2xx answer that is not the vendor's format: 502 PROVIDER_ERROR. */
export class BrokenAnswer extends Error {
  constructor(detail: string) {
    super(`The provider's answer could not be read: ${detail}`)
    this.name = 'BrokenAnswer'
  }
}
