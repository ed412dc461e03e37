import { asList, asObject, isObject, type Json } from './wire-values.js'

/** Deltas whose strings are pieces of one text are joined; these are names and are set. */
const SET = new Set(['role', 'id', 'type', 'name'])

/** Chunks of a stream to the plain answer that they spell (`chat.completion`). */
export class ChunkAssembler {
  readonly #head: Json = {}
  readonly #choices = new Map<number, Choice>()
  #usage: unknown

  add(chunk: Json): void {
    for (const name of ['id', 'created', 'model', 'system_fingerprint', 'service_tier']) {
      if (chunk[name] !== undefined && chunk[name] !== null) this.#head[name] = chunk[name]
    }
    if (isObject(chunk.usage)) this.#usage = chunk.usage
    for (const item of asList(chunk.choices)) {
      const choice = asObject(item)
      const index = typeof choice.index === 'number' ? choice.index : 0
      let draft = this.#choices.get(index)
      if (draft === undefined) {
        draft = new Choice(index)
        this.#choices.set(index, draft)
      }
      draft.add(choice)
    }
  }

  value(): Json {
    const { id, created, model, ...rest } = this.#head
    const choices = [...this.#choices.values()].sort((a, b) => a.index - b.index).map(draft => draft.value())
    return {
      id: id ?? '',
      object: 'chat.completion',
      created: created ?? 0,
      model: model ?? '',
      choices,
      ...(this.#usage !== undefined && { usage: this.#usage }),
      ...rest,
    }
  }
}

class Choice {
  readonly #message: Json = { role: 'assistant', content: null }
  readonly #calls: Json[] = []
  readonly #rest: Json = {}
  #logprobs: Json | null = null

  constructor(readonly index: number) {}

  add(choice: Json): void {
    const { index: _index, delta, logprobs, ...rest } = choice
    for (const [name, value] of Object.entries(rest)) {
      if (value !== null) this.#rest[name] = value
    }
    if (isObject(logprobs)) this.#logprobs = joinLists(this.#logprobs ?? {}, logprobs)
    const { tool_calls: calls, ...members } = asObject(delta)
    merge(this.#message, members)
    for (const call of asList(calls)) this.#addCall(asObject(call))
  }

  value(): Json {
    const { finish_reason: reason, ...rest } = this.#rest
    const message = { ...this.#message }
    if (this.#calls.length > 0) {
      message.tool_calls = this.#calls
      // Streams open with an empty text; a plain answer that only calls tools has none.
      if (message.content === '') message.content = null
    }
    return { index: this.index, message, logprobs: this.#logprobs, finish_reason: reason ?? null, ...rest }
  }

  /** `index` names the call; providers that leave it out send the id on each call's first fragment. */
  #addCall(fragment: Json): void {
    const { index, ...members } = fragment
    const slot =
      typeof index === 'number' && Number.isInteger(index) && index >= 0 && index <= this.#calls.length
        ? index
        : this.#slotById(members.id)
    const call = this.#calls[slot]
    if (call === undefined) this.#calls[slot] = { ...members }
    else merge(call, members)
  }

  #slotById(id: unknown): number {
    const known = this.#calls.findIndex(call => call.id === id)
    if (known >= 0) return known
    const last = this.#calls.length - 1
    return id === undefined || id === null ? Math.max(0, last) : last + 1
  }
}

function merge(target: Json, delta: Json): void {
  for (const [name, value] of Object.entries(delta)) {
    if (value === null || value === undefined || name === '__proto__') continue
    const known = target[name]
    if (typeof value === 'string' && typeof known === 'string' && !SET.has(name)) target[name] = known + value
    else if (Array.isArray(value) && Array.isArray(known)) target[name] = [...known, ...value]
    else if (isObject(value) && isObject(known)) {
      const inner = { ...known }
      merge(inner, value)
      target[name] = inner
    } else if (value !== '' || typeof known !== 'string') target[name] = value
  }
}

/** `logprobs.content` and `.refusal` grow with every chunk. */
function joinLists(known: Json, more: Json): Json {
  const joined: Json = { ...known }
  for (const [name, value] of Object.entries(more)) {
    joined[name] = Array.isArray(value) ? [...asList(known[name]), ...value] : (value ?? known[name] ?? null)
  }
  return joined
}
