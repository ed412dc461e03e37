import type { StreamReader } from './adapter.js'
import { BrokenAnswer, type Completion } from './adapter.js'
import { ChunkWriter } from './chunk-writer.js'
import { providerText } from './provider-error.js'
import { type SseEvent, SseReader } from './sse.js'
import { DONE, NO_BYTES, StreamProgress } from './stream-progress.js'
import { isObject, type Json, parseJson } from './wire-values.js'

/** A plain answer that had to be written anew. */
export class TranslatedCompletion implements Completion {
  readonly bytes: Buffer

  constructor(
    readonly answer: Json,
    readonly tokens: Completion['tokens'],
    readonly finishReason: string | null,
  ) {
    this.bytes = Buffer.from(JSON.stringify(answer))
  }

  value(): Json {
    return this.answer
  }
}

/** @throws BrokenAnswer when the body is not a JSON object. */
export function answerObject(body: Buffer): Json {
  const value = parseJson(body.toString('utf8'))
  if (!isObject(value)) throw new BrokenAnswer('it is not a JSON object.')
  return value
}

/** A `chat.completion` around choices. The vendors date nothing, so `created` is now. */
export const completionOf = (id: string, model: string, choices: Json[], usage: Json | null): Json => ({
  id,
  object: 'chat.completion',
  created: Math.floor(Date.now() / 1000),
  model,
  choices,
  ...(usage !== null && { usage }),
})

/** The part that readers of translated streams share: events in, chunks out, the end only when the vendor said so. */
export abstract class TranslatedStream implements StreamReader {
  readonly state = new StreamProgress()
  protected readonly chunks: ChunkWriter
  readonly #events = new SseReader()
  readonly #apiKey: string
  #over = false

  constructor(call: { wantsUsage: boolean; apiKey: string }) {
    this.chunks = new ChunkWriter(this.state, call.wantsUsage)
    this.#apiKey = call.apiKey
  }

  push(piece: Buffer): Uint8Array {
    if (this.#over) return NO_BYTES
    this.#read(this.#events.push(piece))
    if (this.#events.overflow) this.fail('it sent a frame larger than 16 MB.')
    return this.chunks.take()
  }

  end(): Uint8Array {
    if (!this.#over) this.#read(this.#events.end(), true)
    this.#over = true
    if (!this.state.complete || this.state.failure !== null) return this.chunks.take()
    this.conclude()
    return Buffer.concat([this.chunks.take(), DONE])
  }

  /** One event's JSON. Unknown kinds are ignored: vendors add new ones. */
  protected abstract read(value: Json, event: string): void

  /** Writes what closes a complete answer: finish reasons, usage. */
  protected abstract conclude(): void

  protected fail(message: string): void {
    this.#over = true
    this.state.fail(providerText(message, this.#apiKey))
  }

  /** @param atEnd the body ended here, so a half event is what a cut left. */
  #read(events: SseEvent[], atEnd = false): void {
    for (const { event, data } of events) {
      if (this.#over) return
      const value = parseJson(data)
      if (isObject(value)) this.read(value, event)
      else if (!atEnd) this.fail('it sent a frame that is not JSON.')
    }
  }
}
