import { blockReason, finishReason, geminiBuckets, textSignature, toolCallOf } from './gemini-response.js'
import { messageOf } from './provider-error.js'
import { TranslatedStream } from './translated.js'
import { usageOf } from './usage.js'
import { asCount, asList, asObject, asText, isObject, type Json } from './wire-values.js'

interface Candidate {
  native: string
  callsTools: boolean
}

/** Frames are whole answers of new parts, with no end mark: without a finish reason the stream was cut. */
export class GeminiStreamReader extends TranslatedStream {
  readonly #candidates = new Map<number, Candidate>()
  #begun = false
  #blocked = false
  #usage: Json | null = null

  protected read(value: Json): void {
    if (value.error !== undefined && value.error !== null) {
      this.fail(messageOf(value) ?? 'it sent an error.')
      return
    }
    if (!this.#begun) {
      this.#begun = true
      this.chunks.begin(asText(value.responseId), asText(value.modelVersion))
    }
    const candidates = asList(value.candidates).filter(isObject)
    candidates.forEach((candidate, position) => {
      this.#grow(candidate, asCount(candidate.index) ?? position)
    })
    const blocked = blockReason(value)
    if (blocked !== null && this.#candidates.size === 0) this.#block(blocked)
    if (isObject(value.usageMetadata)) this.#readUsage(value.usageMetadata)
  }

  protected conclude(): void {
    for (const [choice, { native, callsTools }] of this.#candidates) {
      this.chunks.finish(this.#blocked ? 'content_filter' : finishReason(native, callsTools), native, choice)
    }
    const { tokens } = this.state
    if (tokens !== null) this.chunks.usage(usageOf(tokens, asCount(this.#usage?.thoughtsTokenCount)))
  }

  #grow(fresh: Json, choice: number): void {
    const candidate = this.#candidates.get(choice) ?? { native: '', callsTools: false }
    this.#candidates.set(choice, candidate)
    this.chunks.open(choice)
    for (const part of asList(asObject(fresh.content).parts).filter(isObject)) {
      if (isObject(part.functionCall)) {
        candidate.callsTools = true
        this.#call(part, choice)
      } else if (part.thought === true) this.chunks.reasoning(asText(part.text), choice)
      else this.chunks.text(asText(part.text), choice)
      const signature = textSignature(part)
      if (signature !== undefined) {
        this.chunks.delta({ extra_content: { google: { thought_signature: signature } } }, choice)
      }
    }
    const native = asText(fresh.finishReason)
    if (native === '') return
    candidate.native = native
    this.state.complete = true
    this.state.finishReason = finishReason(native, candidate.callsTools)
  }

  #call(part: Json, choice: number): void {
    const call = toolCallOf(part)
    const { name, arguments: text } = asObject(call.function)
    const extra = call.extra_content === undefined ? {} : { extra_content: call.extra_content }
    this.chunks.toolCall({ id: asText(call.id), name: asText(name), arguments: asText(text), extra }, choice)
  }

  #block(native: string): void {
    this.#candidates.set(0, { native, callsTools: false })
    this.chunks.open(0)
    this.#blocked = true
    this.state.complete = true
    this.state.finishReason = 'content_filter'
  }

  /** Running totals: the last ones count. Before any output they say nothing of it. */
  #readUsage(usage: Json): void {
    this.#usage = usage
    const knowsOutput = asCount(usage.candidatesTokenCount) !== null || this.state.complete
    if (knowsOutput) this.state.tokens = geminiBuckets(usage)
  }
}
