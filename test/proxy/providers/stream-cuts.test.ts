import { test } from 'tap'
import { adapters } from '../../../proxy/providers/index.js'
import { type ProviderKind, providers } from '../../../shared/contract/common.js'
import { callOf, relayed, stub, stubsOf } from './call.js'

for (const kind of providers) {
  test(`${kind}: where a stream is cut into reads changes nothing`, async t => {
    for (const name of stubsOf(kind).filter(file => file.endsWith('.sse'))) {
      for (const asked of [false, true]) {
        const bytes = stub(kind, name)
        const whole = outcome(kind, asked, [bytes])
        t.same(outcome(kind, asked, bytewise(bytes)), whole, `${name} one byte at a time`)
        const odd = cutPoints(bytes).filter(at => {
          const halves = [bytes.subarray(0, at), bytes.subarray(at)]
          return JSON.stringify(outcome(kind, asked, halves)) !== JSON.stringify(whole)
        })
        t.same(odd, [], `${name} cut at every byte`)
      }
    }
  })
}

function outcome(kind: ProviderKind, asked: boolean, pieces: Iterable<Buffer>) {
  const options = asked ? { stream_options: { include_usage: true } } : {}
  const reader = adapters[kind].streamReader(callOf(kind, { stream: true, ...options }))
  // What a translated stream makes up differs from run to run.
  const text = relayed(reader, pieces)
    .replace(/"created":\d+/g, '"created":0')
    .replace(/call_agh_\w+/g, 'call_agh_')
  const { complete, failure, tokens, finishReason, outputBytes } = reader.state
  return { text, complete, failure, tokens, finishReason, outputBytes }
}

function* bytewise(bytes: Buffer): Iterable<Buffer> {
  for (let at = 0; at < bytes.length; at++) yield bytes.subarray(at, at + 1)
}

function cutPoints(bytes: Buffer): number[] {
  return Array.from({ length: bytes.length - 1 }, (_, at) => at + 1)
}
