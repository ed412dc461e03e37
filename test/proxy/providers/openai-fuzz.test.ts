import { test } from 'tap'
import { openai } from '../../../proxy/providers/openai.js'
import { bucketsOf, withCachedTokens } from '../../../proxy/providers/usage.js'
import { isObject, type Json } from '../../../proxy/providers/wire-values.js'
import { callOf } from './call.js'

/** Pieces of the format itself: texts made of them look like usage, errors and ends. */
const PIECES = [
  ...[
    '"usage"',
    '"usage":{',
    ',"usage":{"prompt_tokens":9}',
    '"finish_reason":"x"',
    '"error":',
    '[DONE]',
    'data: ',
  ],
  ...['\\', '"', ':', '{', '}', '[', ']', 'usage', 'choices', 'delta', 'null', 'é', '\n', '\n\n', '\r\n\r\n'],
]
const KEYS = ['usage', 'choices', 'error', 'delta', 'meta']

class Hostile {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T
  }

  text(): string {
    return Array.from({ length: this.below(6) }, () => this.pick(PIECES)).join('')
  }

  value(depth = 0): unknown {
    const kind = this.below(depth > 2 ? 4 : 7)
    if (kind < 2) return this.text()
    if (kind === 2) return this.below(100)
    if (kind === 3) return null
    if (kind === 4) return [this.value(depth + 1), this.value(depth + 1)]
    return this.object(depth + 1)
  }

  object(depth: number): Json {
    const members = Array.from({ length: this.below(4) }, () => [
      this.pick([...KEYS, this.text()]),
      this.value(depth),
    ])
    return Object.fromEntries(members) as Json
  }

  /** In OpenAI's words and order, now and then with a member or a value that is not one of them. */
  openAiUsage(counts: Json): Json {
    const prompt: Json = { cached_tokens: this.below(3), audio_tokens: 0 }
    const completion: Json = { reasoning_tokens: this.below(9), accepted_prediction_tokens: 0 }
    if (this.below(4) === 0) prompt.cache_write_tokens = 1
    if (this.below(8) === 0) completion[this.text()] = this.value(1)
    const total_tokens = this.below(8) === 0 ? this.value(1) : 2 + this.below(120)
    const usage: Json = { ...counts, total_tokens, prompt_tokens_details: prompt }
    return this.below(4) === 0 ? usage : { ...usage, completion_tokens_details: completion }
  }

  usage(): Json {
    const counts: Json = { prompt_tokens: 2 + this.below(50), completion_tokens: this.below(50) }
    if (this.below(2) === 0) return this.openAiUsage(counts)
    const details = this.below(2) === 0 ? {} : { prompt_tokens_details: { cached_tokens: this.below(3) } }
    return { ...counts, ...details, ...(this.below(4) === 0 && { [this.text()]: this.value(1) }) }
  }
}

test('what is read from a body’s tail is what parsing it whole gives', async t => {
  const hostile = new Hostile(7)
  for (let round = 0; round < 20_000; round++) {
    const message = { content: hostile.text(), ...(hostile.below(3) === 0 && { usage: hostile.usage() }) }
    const reason = hostile.pick(['stop', 'length', null])
    const choices: [string, unknown] = ['choices', [{ index: 0, message, finish_reason: reason }]]
    const members: [string, unknown][] = [['id', 'a'], choices]
    if (hostile.below(5) > 0)
      members.push(['usage', hostile.below(8) === 0 ? hostile.value() : hostile.usage()])
    for (let more = hostile.below(4); more > 0; more--) {
      members.splice(hostile.below(members.length + 1), 0, [`x${hostile.text()}`, hostile.value()])
    }
    const answer = Object.fromEntries(members) as Json
    const text = JSON.stringify(answer, null, hostile.below(3) === 0 ? 2 : 0)
    const { tokens, finishReason, bytes } = openai.readCompletion(Buffer.from(text), callOf('openai'))
    const shown = JSON.parse(bytes.toString('utf8')) as Json
    const right =
      JSON.stringify(tokens) === JSON.stringify(bucketsOf(answer.usage)) &&
      finishReason === reason &&
      JSON.stringify(shown.choices) === JSON.stringify(answer.choices) &&
      JSON.stringify(shown.usage) === JSON.stringify(shownUsage(answer.usage))
    if (!right) t.fail('read otherwise than parsed', { text, tokens, finishReason })
  }
})

test('an absurd count of tokens is no count: no charge could hold it', async t => {
  for (const count of [1e20, 2 ** 53, 2 ** 28 + 1, -1, Number.NaN]) {
    t.equal(bucketsOf({ prompt_tokens: count, completion_tokens: count }), null, String(count))
  }
  t.equal(bucketsOf({ prompt_tokens: 2 ** 28, completion_tokens: 0 })?.input, 2 ** 28)
})

test('a frame that is only looked at tells what parsing it tells, however it is cut', async t => {
  const hostile = new Hostile(11)
  for (let round = 0; round < 5000; round++) {
    const frames = Array.from({ length: 1 + hostile.below(5) }, () => frameOf(hostile))
    if (hostile.below(3) === 0) frames.push('data: [DONE]\n\n')
    const bytes = Buffer.from(frames.join(''))
    const asks = hostile.below(2) === 0
    const looked = outcome(asks, [bytes], false)
    const pieces: Buffer[] = []
    for (let at = 0; at < bytes.length; ) {
      const end = at + 1 + hostile.below(40)
      pieces.push(bytes.subarray(at, end))
      at = end
    }
    for (const other of [outcome(asks, [bytes], true), outcome(asks, pieces, false)]) {
      if (other !== looked) t.fail('read otherwise', { stream: bytes.toString(), looked, other })
    }
  }
})

function shownUsage(usage: unknown): unknown {
  return isObject(usage) ? (withCachedTokens(usage) ?? usage) : usage
}

function frameOf(hostile: Hostile): string {
  const delta = hostile.below(5) === 0 ? hostile.value() : { content: hostile.text() }
  const chunk: Json = { id: 'c' }
  if (hostile.below(6) > 0) {
    chunk.choices = [{ index: 0, delta, finish_reason: hostile.pick([null, 'stop', '']) }]
  }
  if (hostile.below(3) === 0) chunk.usage = hostile.pick([null, hostile.usage(), hostile.value()])
  if (hostile.below(6) === 0) chunk[hostile.pick(KEYS)] = hostile.value()
  return `data: ${JSON.stringify(chunk)}${hostile.below(8) === 0 ? '\r\n\r\n' : '\n\n'}`
}

/** @param parsing collecting the answer parses every frame. */
function outcome(asks: boolean, pieces: Buffer[], parsing: boolean): string {
  const options = asks ? { stream_options: { include_usage: true } } : {}
  const reader = openai.streamReader(callOf('openai', { stream: true, ...options }))
  if (parsing) reader.state.collect()
  const bytes = Buffer.concat([...pieces.map(piece => reader.push(piece)), reader.end()])
  const { complete, failure, tokens, finishReason, outputBytes } = reader.state
  return JSON.stringify([bytes.toString('utf8'), complete, failure, tokens, finishReason, outputBytes])
}
