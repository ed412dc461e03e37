import { AppError } from '../../shared/errors/app-error.js'
import type { CachedAnswer } from '../cache/response-cache.js'
import type { Deps } from '../deps.js'
import type { Exchange } from '../http/exchange.js'
import {
  BrokenAnswer,
  type Completion,
  type ProviderAdapter,
  type UpstreamCall,
} from '../providers/adapter.js'
import { adapters } from '../providers/index.js'
import type { Flight, UpstreamError, UpstreamHandlers } from '../providers/upstream.js'
import { AnswerStream } from './answer-stream.js'
import { asDepthError } from './parse.js'
import { NOTHING, type Outcome, type Recorded } from './record.js'
import { plainHeaders, providerError, replyError, traceHeaders } from './reply.js'
import { settleCall } from './settle.js'

/** What a provider sends behind the end of a stream is discarded this long, so that its connection serves again. */
const AFTER_END_MS = 5_000
/** A plain answer larger than this is not a completion. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/**
 * The provider's side of one admitted call: sends it, relays the answer, settles exactly once at whichever end comes
 * first (answer complete, provider failed, client gone).
 */
export class ProviderCall implements UpstreamHandlers {
  readonly #adapter: ProviderAdapter
  readonly #upstreamCall: UpstreamCall
  #flight: Flight | null = null
  #status = 0
  #header: (name: string) => string | undefined = () => undefined
  #chunks: Buffer[] = []
  #bytes = 0
  #stream: AnswerStream | null = null
  #settled = false
  #endedAtMs = 0

  constructor(
    readonly exchange: Exchange,
    readonly call: Recorded,
    /** Where a complete answer is kept; null when the key has no response cache. */
    readonly keep: ((answer: CachedAnswer) => void) | null,
    readonly deps: Deps,
  ) {
    const { target } = call.admission
    this.#adapter = adapters[target.connection.provider]
    this.#upstreamCall = {
      request: target.call.request,
      raw: target.call.raw,
      upstreamModel: target.model.upstreamModel,
      baseUrl: target.connection.baseUrl,
      apiKey: target.connection.apiKey,
      stream: target.call.stream,
      wantsUsage: target.call.wantsUsage,
      maxOutputTokens: target.model.maxOutputTokens,
      requestId: call.requestId,
    }
  }

  start(): void {
    if (this.exchange.closed) {
      // The client left while the call was being admitted.
      this.#settled = true
      settleCall(this.call, { ...NOTHING, errorCode: 'client_disconnected' }, this.deps)
      return
    }
    let request: ReturnType<ProviderAdapter['buildRequest']>
    try {
      request = this.#adapter.buildRequest(this.#upstreamCall)
    } catch (error) {
      this.#fail(asDepthError(error), { ...NOTHING, errorCode: 'invalid_request' })
      return
    }
    this.exchange.onAbort(() => this.#clientLeft())
    const { path, headers, body } = request
    this.#flight = this.deps.upstream.send({ baseUrl: this.#upstreamCall.baseUrl, path, headers, body }, this)
  }

  onHead(status: number, header: (name: string) => string | undefined): void {
    this.#status = status
    this.#header = header
    if (status >= 200 && status < 300 && this.#upstreamCall.stream) {
      const reader = this.#adapter.streamReader(this.#upstreamCall)
      if (this.keep !== null || this.call.captures) reader.state.collect()
      this.#stream = new AnswerStream(this.exchange, this.call, reader, this.deps, () =>
        this.#flight?.resume(),
      )
    }
  }

  onData(chunk: Buffer): boolean {
    if (this.#settled) {
      if (this.deps.now() - this.#endedAtMs > AFTER_END_MS) this.#flight?.abort()
      return true
    }
    if (this.#stream !== null) {
      const more = this.#stream.push(chunk)
      if (this.#stream.failed) this.#endStream(true)
      else if (this.#stream.ended) this.#endStream(false)
      // A client that lags holds its provider back, but not past the end: nobody would resume it then.
      return more || this.#settled
    }
    this.#bytes += chunk.length
    if (this.#bytes > MAX_ANSWER_BYTES) {
      this.#flight?.abort()
      this.#fail(brokenAnswer('larger than 64 MB'), this.#providerFault('broken_answer'))
      return true
    }
    this.#chunks.push(chunk)
    return true
  }

  onEnd(): void {
    if (this.#settled) return
    if (this.#stream !== null) {
      this.#endStream(false)
      return
    }
    const whole = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#bytes)
    const body = withoutMark(whole)
    if (this.#status < 200 || this.#status >= 300) {
      this.#refused(body)
      return
    }
    let completion: Completion
    let outputBytes: number
    try {
      completion = this.#adapter.readCompletion(body, this.#upstreamCall)
      outputBytes = completion.tokens === null ? contentBytes(completion) : 0
      // A usual answer is relayed unparsed; one that is kept or captured must be JSON throughout.
      if (this.keep !== null || this.call.captures) completion.value()
    } catch (error) {
      const detail = error instanceof BrokenAnswer ? error : brokenAnswer('not a completion', error)
      this.#fail(detail, this.#providerFault('broken_answer'))
      return
    }
    this.#answer(completion, outputBytes)
  }

  onError(error: UpstreamError): void {
    if (this.#settled) return
    if (this.#stream !== null) {
      this.#endStream(true)
      return
    }
    this.#fail(upstreamFailure(error), this.#providerFault(error.kind))
  }

  #answer(completion: Completion, outputBytes: number): void {
    this.#settled = true
    const { tokens, finishReason } = completion
    // Every field by name: V8 defines what follows a spread one by one in its runtime, 9 thousand instructions here.
    const outcome: Outcome = {
      status: 'ok',
      charged: true,
      tokens,
      inputTokens: null,
      outputBytes,
      finishReason,
      errorType: null,
      errorCode: null,
      firstByteAtMs: null,
      retries: this.#flight?.retries ?? 0,
      cached: false,
      completion: () => completion.value(),
    }
    settleCall(this.call, outcome, this.deps, cost => {
      this.exchange.reply(200, plainHeaders(this.call, 'miss', cost), completion.bytes)
      this.keep?.({ completion: completion.value(), tokens, finishReason })
    })
  }

  #endStream(broken: boolean): void {
    this.#settled = true
    const stream = this.#stream!
    this.#endedAtMs = this.deps.now()
    if (broken) this.#flight?.abort()
    const retries = this.#flight?.retries ?? 0
    const answer = stream.finish(broken, retries)
    if (answer !== null) this.keep?.(answer)
  }

  /** A non-2xx answer of the provider. */
  #refused(body: Buffer): void {
    const failure = this.#adapter.readError(this.#status, this.#header, body, this.#upstreamCall.apiKey)
    const outcome = this.#providerFault(`http_${this.#status}`)
    this.#fail(providerError(failure), outcome)
  }

  #clientLeft(): void {
    if (this.#settled) return
    this.#settled = true
    this.#flight?.abort()
    const { retries = 0, sent = false } = this.#flight ?? {}
    // A provider that was never reached, or was about to refuse, did no work.
    const charged = sent && this.#status < 300
    const outcome: Outcome = { ...NOTHING, charged, errorCode: 'client_disconnected', retries }
    settleCall(this.call, this.#stream?.outcome(outcome) ?? outcome, this.deps)
  }

  #fail(error: unknown, outcome: Outcome): void {
    this.#settled = true
    settleCall(this.call, outcome, this.deps, () => {
      replyError(this.exchange, asAppError(error), traceHeaders(this.call))
    })
  }

  #providerFault(errorCode: string): Outcome {
    return { ...NOTHING, errorType: 'provider_error', errorCode, retries: this.#flight?.retries ?? 0 }
  }
}

/** Some servers begin with a byte order mark, which clients take off and JSON.parse does not. */
const withoutMark = (body: Buffer) =>
  body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body

const brokenAnswer = (detail: string, cause?: unknown) =>
  new AppError('PROVIDER_ERROR', `The provider's answer could not be read: ${detail}.`, { cause })

const asAppError = (error: unknown) =>
  error instanceof BrokenAnswer ? new AppError('PROVIDER_ERROR', error.message, { cause: error }) : error

const reasons: Record<UpstreamError['kind'], string> = {
  refused: 'The provider refused the connection.',
  reset: 'The provider closed the connection.',
  timeout: 'The provider did not answer in time.',
  blocked: 'The address of the provider connection may not be called.',
  broken: "The provider's answer could not be read.",
  aborted: 'The call was cancelled.',
}

const upstreamFailure = (error: UpstreamError): AppError =>
  new AppError('PROVIDER_ERROR', reasons[error.kind], { cause: error })

/** Text of the choices, for a provider that reports no usage. */
function contentBytes(completion: Completion): number {
  const { choices } = completion.value()
  return Buffer.byteLength(JSON.stringify(choices ?? ''))
}
