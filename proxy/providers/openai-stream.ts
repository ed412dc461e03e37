import type { StreamReader } from './adapter.js'
import { messageOf, providerText } from './provider-error.js'
import { FrameSplitter, frameEnd, frameEvent } from './sse.js'
import { DONE, NO_BYTES, StreamProgress } from './stream-progress.js'
import { bucketsOf, withCachedTokens } from './usage.js'
import { asList, isObject, type Json, parseJson } from './wire-values.js'

const QUOTE = 34
const BACKSLASH = 92

/**
 * OpenAI's stream to itself. A frame is looked at as bytes: which of the words usage, error, finish_reason and delta it
 * holds decides whether it is parsed at all, and an ordinary one is not (parsing each chunk doubles what a chunk costs).
 * The client gets the provider's bytes, in pieces of whole frames. Taken out: the usage-only chunk that the client did
 * not ask for, and `[DONE]`, which `end` gives back once the answer is known to be complete. `"usage":null` stays.
 *
 * `outputBytes` counts, in every `delta`, the bytes of string values between their quotes, escapes as written, but for
 * the members role, id, type and name: text, refusals, reasoning and tool arguments.
 */
export class OpenAiStreamReader implements StreamReader {
  readonly state = new StreamProgress()
  readonly #splitter = new FrameSplitter()
  readonly #wantsUsage: boolean
  readonly #apiKey: string
  /** Nothing more counts: `[DONE]` was seen, or the stream failed. */
  #over = false

  constructor(call: { wantsUsage: boolean; apiKey: string }) {
    this.#wantsUsage = call.wantsUsage
    this.#apiKey = call.apiKey
  }

  push(piece: Buffer): Uint8Array {
    if (this.#over) return NO_BYTES
    const frames = this.#splitter.push(piece)
    if (this.#splitter.overflow) this.#fail('it sent a frame larger than 16 MB.')
    return frames.length === 0 ? frames : this.#relay(frames)
  }

  end(): Uint8Array {
    const last = this.#over ? NO_BYTES : this.#relayRest(this.#splitter.rest())
    this.#over = true
    if (!this.state.complete || this.state.failure !== null) return last
    return last.length === 0 ? DONE : Buffer.concat([last, DONE])
  }

  /** A last frame without its blank line counts when it is whole; half a frame is what a cut leaves and is dropped. */
  #relayRest(rest: Buffer): Uint8Array {
    const text = rest.toString('utf8').trimEnd()
    const event = frameEvent(text)
    if (event !== null && (event.data === '[DONE]' || isObject(parseJson(event.data)))) {
      return this.#relay(Buffer.from(`${text}\n\n`))
    }
    return text.startsWith('{') ? this.#failPlainly(text) : NO_BYTES
  }

  /** A JSON body where a stream should be: an error with a 200, mostly. */
  #failPlainly(text: string): Uint8Array {
    const answer = parseJson(text)
    const said = isObject(answer) && isError(answer) ? messageOf(answer) : null
    return this.#fail(said ?? 'it sent no event stream.')
  }

  /** @param frames whole ones. @returns those for the client: the same buffer when that is all of them. */
  #relay(frames: Buffer): Uint8Array {
    const text = frames.toString('latin1')
    const words = new Words(text)
    const hasCarriageReturn = text.includes('\r')
    let kept: Uint8Array[] | null = null
    let keptFrom = 0
    for (let from = 0; from < text.length && !this.#over; ) {
      const end = frameEnd(text, from, hasCarriageReturn)
      if (this.state.assembler !== null || !words.ordinary(from, end)) {
        const instead = this.#inspect(frames.toString('utf8', from, end))
        if (instead !== KEEP) {
          kept ??= []
          kept.push(frames.subarray(keptFrom, behindBlankLines(text, from)), instead)
          keptFrom = end
        }
      }
      if (!this.#over) this.#account(words, from, end)
      from = end
    }
    if (kept === null) return frames
    // Behind the frame that ended the stream nothing is the client's.
    if (!this.#over) kept.push(frames.subarray(keptFrom))
    return Buffer.concat(kept)
  }

  #account(words: Words, from: number, end: number): void {
    const reason = words.finishReason(from, end)
    if (reason !== null) {
      this.state.complete = true
      this.state.finishReason = reason
    }
    this.state.outputBytes += words.deltaBytes(from, end)
  }

  /** A frame that may hold more than a delta. @returns the bytes in its place, KEEP when it stays. */
  #inspect(frame: string): Uint8Array {
    const event = frameEvent(frame)
    if (event === null) return frame.startsWith('{') ? this.#failPlainly(frame) : KEEP
    if (event.data.trim() === '[DONE]') {
      this.#over = true
      this.state.complete = true
      this.state.ended = true
      return NO_BYTES
    }
    const chunk = parseJson(event.data)
    if (!isObject(chunk)) return this.#fail('it sent a frame that is not JSON.')
    if (event.event === 'error' || isError(chunk)) return this.#fail(messageOf(chunk) ?? 'it sent an error.')
    this.state.assembler?.add(chunk)
    return this.#readUsage(chunk)
  }

  /** The last usage seen counts: some providers send running totals on every chunk, so they are never added up. */
  #readUsage(chunk: Json): Uint8Array {
    const tokens = bucketsOf(chunk.usage)
    if (tokens === null) return KEEP
    this.state.tokens = tokens
    if (!this.#wantsUsage) return asList(chunk.choices).length === 0 ? NO_BYTES : KEEP
    const shown = withCachedTokens(chunk.usage as Json)
    return shown === null ? KEEP : Buffer.from(`data: ${JSON.stringify({ ...chunk, usage: shown })}\n\n`)
  }

  #fail(message: string): Uint8Array {
    this.#over = true
    this.state.fail(providerText(message, this.#apiKey))
    return NO_BYTES
  }
}

/** Surplus blank lines stay, wherever the reads were cut: they belong to no frame. */
function behindBlankLines(text: string, from: number): number {
  let at = from
  while (text.charCodeAt(at) === 10 || text.charCodeAt(at) === 13) at++
  return at
}

const KEEP: Uint8Array = new Uint8Array(0)

/** `{"error": …}`, and vLLM's `{"object": "error", "message": …}`. */
const isError = (chunk: Json) => (chunk.error ?? false) !== false || chunk.object === 'error'

/**
 * Where the telling words stand in a run of frames. A word with plain quotes is a token of its own, never part of a
 * string: inside one its quotes would have backslashes. Each word is searched for once over the whole run, however many
 * frames it has, so that a run of 64 KB costs one pass and not one per frame.
 */
class Words {
  #usage: number
  #error: number
  #finish: number
  #delta: number
  #choices: number

  constructor(readonly text: string) {
    this.#usage = text.indexOf('"usage"')
    this.#error = text.indexOf('"error"')
    this.#finish = text.indexOf('"finish_reason"')
    this.#delta = text.indexOf('"delta"')
    this.#choices = text.indexOf('"choices"')
  }

  /** Whether the frame is one line of JSON with choices, and neither an error nor usage in it. */
  ordinary(from: number, end: number): boolean {
    const { text } = this
    if (!text.startsWith('data: {', from) || text.charCodeAt(end - 3) !== 125) return false
    this.#choices = advance(text, '"choices"', this.#choices, from)
    if (this.#choices < 0 || this.#choices >= end) return false
    this.#error = advance(text, '"error"', this.#error, from)
    if (this.#error >= 0 && this.#error < end) return false
    this.#usage = advance(text, '"usage"', this.#usage, from)
    while (this.#usage >= 0 && this.#usage < end) {
      if (!text.startsWith('null', valueAt(text, this.#usage + 7))) return false
      this.#usage = text.indexOf('"usage"', this.#usage + 7)
    }
    return true
  }

  /** @returns the last reason that the frame's choices give, or null. */
  finishReason(from: number, end: number): string | null {
    const { text } = this
    let reason: string | null = null
    this.#finish = advance(text, '"finish_reason"', this.#finish, from)
    while (this.#finish >= 0 && this.#finish < end) {
      const at = valueAt(text, this.#finish + 15)
      if (text.charCodeAt(at) === QUOTE && text.charCodeAt(at + 1) !== QUOTE) {
        reason = text.slice(at + 1, text.indexOf('"', at + 1))
      }
      this.#finish = text.indexOf('"finish_reason"', at)
    }
    return reason
  }

  deltaBytes(from: number, end: number): number {
    let bytes = 0
    this.#delta = advance(this.text, '"delta"', this.#delta, from)
    while (this.#delta >= 0 && this.#delta < end) {
      bytes += stringBytes(this.text, valueAt(this.text, this.#delta + 7), end)
      this.#delta = this.text.indexOf('"delta"', this.#delta + 7)
    }
    return bytes
  }
}

const advance = (text: string, word: string, at: number, from: number) =>
  at >= 0 && at < from ? text.indexOf(word, from) : at

/** @returns the offset of the value behind a key's closing quote. */
function valueAt(text: string, afterKey: number): number {
  let at = afterKey
  for (;;) {
    const code = text.charCodeAt(at)
    if (code !== 58 && code !== 32) return at
    at++
  }
}

/** Bytes of the string values of the object that opens at `open`, names aside. 0 when there is no object. */
function stringBytes(text: string, open: number, end: number): number {
  let bytes = 0
  let depth = 0
  let counts = false
  for (let at = open; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const close = closingQuote(text, at + 1)
      if (close < 0) return bytes
      if (text.charCodeAt(close + 1) === 58) counts = !isName(text, at + 1, close)
      else if (counts) bytes += close - at - 1
      at = close
    } else if (code === 123 || code === 91) depth++
    else if (code === 125 || code === 93) depth--
    if (depth <= 0) return bytes
  }
  return bytes
}

function closingQuote(text: string, from: number): number {
  for (let at = from; ; ) {
    const quote = text.indexOf('"', at)
    if (quote < 0 || text.charCodeAt(quote - 1) !== BACKSLASH) return quote
    let slashes = 1
    while (text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote
    at = quote + 1
  }
}

function isName(text: string, from: number, to: number): boolean {
  if (to - from === 2) return text.startsWith('id', from)
  if (to - from !== 4) return false
  return text.startsWith('role', from) || text.startsWith('type', from) || text.startsWith('name', from)
}
