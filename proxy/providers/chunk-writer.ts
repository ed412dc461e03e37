import { NO_BYTES, type StreamProgress } from './stream-progress.js'
import type { Json } from './wire-values.js'

/** Writes OpenAI's chunks for a vendor's stream: one role chunk per choice, deltas, finish, usage. */
export class ChunkWriter {
  readonly #progress: StreamProgress
  readonly #wantsUsage: boolean
  readonly #begun = new Set<number>()
  readonly #calls = new Map<number, number>()
  #head: Json = { id: '', object: 'chat.completion.chunk', created: 0, model: '' }
  #out = ''

  /** @param wantsUsage every chunk then has `usage`, null but on the last (OpenAI's rule). */
  constructor(progress: StreamProgress, wantsUsage: boolean) {
    this.#progress = progress
    this.#wantsUsage = wantsUsage
  }

  begin(id: string, model: string): void {
    this.#head = { id, object: 'chat.completion.chunk', created: Math.floor(Date.now() / 1000), model }
  }

  /** Opens a choice. Any delta does it by itself; a choice without one still shows its role. */
  open(choice: number): void {
    if (this.#begun.has(choice)) return
    this.#begun.add(choice)
    this.#choice(choice, { role: 'assistant', content: '' }, null)
  }

  text(text: string, choice = 0): void {
    if (text === '') return
    this.#progress.outputBytes += Buffer.byteLength(text)
    this.delta({ content: text }, choice)
  }

  reasoning(text: string, choice = 0): void {
    if (text === '') return
    this.#progress.outputBytes += Buffer.byteLength(text)
    this.delta({ reasoning_content: text }, choice)
  }

  /** @returns the call's index, which names it in every later fragment. */
  toolCall(call: { id: string; name: string; arguments: string; extra?: Json }, choice = 0): number {
    const index = this.#calls.get(choice) ?? 0
    this.#calls.set(choice, index + 1)
    this.#progress.outputBytes += Buffer.byteLength(call.arguments)
    const { id, name, arguments: text, extra } = call
    const fragment = { index, id, type: 'function', function: { name, arguments: text }, ...extra }
    this.delta({ tool_calls: [fragment] }, choice)
    return index
  }

  toolArguments(index: number, text: string, choice = 0): void {
    this.#progress.outputBytes += Buffer.byteLength(text)
    this.delta({ tool_calls: [{ index, function: { arguments: text } }] }, choice)
  }

  delta(delta: Json, choice = 0): void {
    this.open(choice)
    this.#choice(choice, delta, null)
  }

  /** @param native the vendor's own word, kept because several of them become one of OpenAI's. */
  finish(reason: string, native: string, choice = 0): void {
    this.open(choice)
    this.#choice(choice, {}, reason, { native_finish_reason: native })
  }

  /** The last chunk. Kept for the assembled answer, sent only to clients that asked. */
  usage(usage: Json): void {
    const chunk = { ...this.#head, choices: [], usage }
    this.#progress.assembler?.add(chunk)
    if (this.#wantsUsage) this.#frame(chunk)
  }

  /** What has been written since the last call. */
  take(): Buffer {
    if (this.#out === '') return NO_BYTES
    const bytes = Buffer.from(this.#out)
    this.#out = ''
    return bytes
  }

  #choice(index: number, delta: Json, reason: string | null, extra?: Json): void {
    const choice = { index, delta, logprobs: null, finish_reason: reason, ...extra }
    const chunk: Json = { ...this.#head, choices: [choice] }
    this.#progress.assembler?.add(chunk)
    this.#frame(this.#wantsUsage ? { ...chunk, usage: null } : chunk)
  }

  #frame(chunk: Json): void {
    this.#out += `data: ${JSON.stringify(chunk)}\n\n`
  }
}
