import type { TokenBuckets } from '../../shared/spool/record.js'
import type { InputTokens, StreamState } from './adapter.js'
import { ChunkAssembler } from './chunk-assembler.js'
import type { Json } from './wire-values.js'

export const NO_BYTES: Buffer = Buffer.alloc(0)
export const DONE: Buffer = Buffer.from('data: [DONE]\n\n')

/** What is known of a stream so far, for every vendor's reader. */
export class StreamProgress implements StreamState {
  complete = false
  ended = false
  failure: { message: string } | null = null
  tokens: TokenBuckets | null = null
  inputTokens: InputTokens | null = null
  finishReason: string | null = null
  outputBytes = 0
  assemble: (() => Json) | null = null
  assembler: ChunkAssembler | null = null

  collect(): void {
    const assembler = new ChunkAssembler()
    this.assembler = assembler
    this.assemble = () => assembler.value()
  }

  /** The first failure stays: what follows it is its consequence. */
  fail(message: string): void {
    this.failure ??= { message }
  }
}
