import { anthropicBuckets, errorText, stopReason, thinkingTokens } from './anthropic-response.js'
import { TranslatedStream } from './translated.js'
import { usageOf } from './usage.js'
import { asObject, asText, isObject, type Json } from './wire-values.js'

/** A block on its way. */
interface Block {
  type: string
  /** Of a tool call. */
  callIndex: number
  /** Whether any argument was sent. */
  hasArguments: boolean
  /** Thinking and its signature, to be handed back whole. */
  thinking: Json
}

/** `message_start`, then blocks, then one or more `message_delta`, then `message_stop`: without it the stream was cut. */
export class AnthropicStreamReader extends TranslatedStream {
  readonly #blocks = new Map<unknown, Block>()
  #usage: Json = {}
  #native = ''

  protected read(value: Json): void {
    switch (value.type) {
      case 'message_start':
        this.#start(asObject(value.message))
        break
      case 'content_block_start':
        this.#openBlock(value.index, asObject(value.content_block))
        break
      case 'content_block_delta':
        this.#grow(value.index, asObject(value.delta))
        break
      case 'content_block_stop':
        this.#closeBlock(value.index)
        break
      case 'message_delta':
        this.#messageDelta(value)
        break
      case 'message_stop':
        this.state.complete = true
        this.state.ended = true
        break
      case 'error':
        this.fail(errorText(value))
        break
      default:
    }
  }

  protected conclude(): void {
    this.chunks.finish(stopReason(this.#native), this.#native)
    const { tokens } = this.state
    if (tokens !== null) this.chunks.usage(usageOf(tokens, thinkingTokens(this.#usage)))
  }

  #start(message: Json): void {
    this.chunks.begin(asText(message.id), asText(message.model))
    this.chunks.open(0)
    this.#usage = { ...asObject(message.usage) }
    this.state.inputTokens = anthropicBuckets(this.#usage)
  }

  #openBlock(index: unknown, block: Json): void {
    const type = asText(block.type)
    const open: Block = { type, callIndex: 0, hasArguments: false, thinking: {} }
    this.#blocks.set(index, open)
    if (type === 'text') this.chunks.text(asText(block.text))
    if (type === 'tool_use') {
      // The official API opens with `input: {}`; some compatible servers put the whole input here.
      const whole = isObject(block.input) && Object.keys(block.input).length > 0
      const text = whole ? JSON.stringify(block.input) : ''
      open.callIndex = this.chunks.toolCall({
        id: asText(block.id),
        name: asText(block.name),
        arguments: text,
      })
      open.hasArguments = whole
    }
    if (type === 'thinking') {
      open.thinking = { type, thinking: asText(block.thinking), signature: asText(block.signature) }
      this.chunks.reasoning(asText(block.thinking))
    }
    if (type === 'redacted_thinking') open.thinking = block
  }

  #grow(index: unknown, delta: Json): void {
    const block = this.#blocks.get(index)
    switch (delta.type) {
      case 'text_delta':
        this.chunks.text(asText(delta.text))
        break
      case 'input_json_delta':
        if (block?.type !== 'tool_use' || asText(delta.partial_json) === '') break
        block.hasArguments = true
        this.chunks.toolArguments(block.callIndex, asText(delta.partial_json))
        break
      case 'thinking_delta':
        this.chunks.reasoning(asText(delta.thinking))
        if (block !== undefined) append(block.thinking, 'thinking', delta)
        break
      case 'signature_delta':
        if (block !== undefined) append(block.thinking, 'signature', delta)
        break
      default:
    }
  }

  #closeBlock(index: unknown): void {
    const block = this.#blocks.get(index)
    this.#blocks.delete(index)
    if (block?.type === 'tool_use' && !block.hasArguments) this.chunks.toolArguments(block.callIndex, '{}')
    if (block?.type.endsWith('thinking')) this.chunks.delta({ thinking_blocks: [block.thinking] })
  }

  /** Usage is cumulative and may be null in part: each count that is given replaces the one before, nothing is added. */
  #messageDelta(value: Json): void {
    const native = asText(asObject(value.delta).stop_reason)
    if (native !== '') {
      this.#native = native
      this.state.finishReason = stopReason(native)
    }
    const usage = asObject(value.usage)
    for (const [name, count] of Object.entries(usage)) if (count !== null) this.#usage[name] = count
    // message_start counts one token or so of output: until a delta says more, output is unknown.
    if (typeof usage.output_tokens === 'number') this.state.tokens = anthropicBuckets(this.#usage)
  }
}

function append(block: Json, member: 'thinking' | 'signature', delta: Json): void {
  block[member] = asText(block[member]) + asText(delta[member])
}
