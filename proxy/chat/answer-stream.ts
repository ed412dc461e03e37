import { AppError } from '../../shared/errors/app-error.js'
import type { CachedAnswer } from '../cache/response-cache.js'
import type { Deps } from '../deps.js'
import type { Exchange } from '../http/exchange.js'
import type { StreamReader } from '../providers/adapter.js'
import { costNano, outputTokensOf } from './pricing.js'
import { NOTHING, type Outcome, type Recorded } from './record.js'
import { errorFrame, replyError, streamHeaders, traceHeaders } from './reply.js'
import { settleCall } from './settle.js'

/** A hold that a stream outgrew is raised to this much of what it has cost so far, so that raising stays rare. */
const HOLD_HEADROOM = 1.5
/** No vendor's tokens carry more text than this on average over an answer. */
const MOST_BYTES_PER_TOKEN = 8

/**
 * A streamed answer on its way to the client. The reply's head waits for the first byte of the answer, so that a
 * provider that fails before it is answered as JSON, with the right status (spec 3, completions).
 */
export class AnswerStream {
  #started = false
  #firstByteAtMs: number | null = null
  #heldNano: number

  constructor(
    readonly exchange: Exchange,
    readonly call: Recorded,
    readonly reader: StreamReader,
    readonly deps: Deps,
    readonly resume: () => void,
  ) {
    this.#heldNano = call.admission.estimate.costNano
  }

  /** The vendor's end mark came: the answer need not wait for the end of the body. */
  get ended(): boolean {
    return this.reader.state.ended
  }

  get failed(): boolean {
    return this.reader.state.failure !== null
  }

  /** @returns false when the client lags: the provider is paused until it has drained. */
  push(chunk: Buffer): boolean {
    const bytes = this.reader.push(chunk)
    if (bytes.length === 0) return true
    if (!this.#started) this.#start()
    this.#extendHold()
    return this.exchange.write(bytes)
  }

  /**
   * @param broken the provider failed, or the connection did.
   * @returns the whole answer when it is complete and was collected.
   */
  finish(broken: boolean, retries: number): CachedAnswer | null {
    const { state } = this.reader
    const last = broken || this.failed ? null : this.#lastBytes()
    if (last === null || !state.complete || state.failure !== null) {
      this.#break(retries)
      return null
    }
    settleCall(this.call, { ...this.outcome({ ...NOTHING, retries }), status: 'ok' }, this.deps, () => {
      if (!this.#started) this.#start()
      if (last.length > 0) this.exchange.write(last)
      this.exchange.end()
    })
    if (state.assemble === null) return null
    return { completion: state.assemble(), tokens: state.tokens, finishReason: state.finishReason }
  }

  /** Adds what has been seen so far to an outcome. */
  outcome(base: Outcome): Outcome {
    const { state } = this.reader
    return {
      ...base,
      charged: true,
      tokens: state.tokens,
      inputTokens: state.inputTokens,
      outputBytes: state.outputBytes,
      finishReason: state.finishReason,
      firstByteAtMs: this.#firstByteAtMs,
      completion: state.assemble,
    }
  }

  /** Null: what was left could not be read, JSON nested deeper than the stack for instance. */
  #lastBytes(): Uint8Array | null {
    try {
      return this.reader.end()
    } catch {
      return null
    }
  }

  #start(): void {
    this.#started = true
    this.#firstByteAtMs = this.deps.now()
    this.exchange.startStream(200, streamHeaders(this.call, 'miss'))
    this.exchange.onDrain(this.resume)
  }

  #break(retries: number): void {
    const detail = this.reader.state.failure?.message ?? 'the stream ended before the answer was complete'
    const error = new AppError('PROVIDER_ERROR', `The provider failed: ${detail}`)
    const base: Outcome = {
      ...NOTHING,
      retries,
      errorType: 'provider_error',
      errorCode: 'stream_interrupted',
    }
    // Nothing of an answer came: no work to charge.
    const outcome = this.#started ? this.outcome(base) : base
    settleCall(this.call, outcome, this.deps, () => {
      if (!this.#started) {
        replyError(this.exchange, error, traceHeaders(this.call))
        return
      }
      this.exchange.write(errorFrame(error))
      this.exchange.end()
    })
  }

  /**
   * A stream that outgrows its estimate extends its hold (spec 4, section 5). With `max_tokens` the estimate is what an
   * honest provider may spend at most: only one that has broken it for certain is followed. Three bytes a token, the
   * cautious count, would raise most long answers' holds, past caps that the spend never passes.
   */
  #extendHold(): void {
    const { hold, target, estimate } = this.call.admission
    if (hold === null || target.model.prices === null) return
    const { outputBytes } = this.reader.state
    const output =
      target.call.maxTokens === null
        ? outputTokensOf(outputBytes)
        : Math.ceil(outputBytes / MOST_BYTES_PER_TOKEN)
    if (output <= estimate.outputTokens) return
    const soFar = costNano(
      { input: estimate.promptTokens, cacheRead: 0, cacheWrite: 0, output },
      target.model.prices,
    )
    if (soFar <= this.#heldNano) return
    this.#heldNano = Math.ceil(soFar * HOLD_HEADROOM)
    this.deps.ledger.extend(hold, this.#heldNano).catch(() => this.deps.metrics.unsettledCalls.inc())
  }
}
