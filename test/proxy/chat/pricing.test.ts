import { test } from 'tap'
import { type ChatCall, parseCall } from '../../../proxy/chat/parse.js'
import { costNano, estimateCall, tokenPrices } from '../../../proxy/chat/pricing.js'
import { geminiBuckets } from '../../../proxy/providers/gemini-response.js'

const prices = tokenPrices({
  inputPerMTok: 0.15,
  outputPerMTok: 0.6,
  cachedInputPerMTok: 0.075,
  cacheWritePerMTok: null,
})
const NOTHING = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }
const call = (fields: Record<string, unknown>) =>
  parseCall(
    Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...fields })),
  ) as ChatCall

test('each bucket has its own price, and a cache price that is missing is the input price', async t => {
  t.equal(costNano({ input: 1, cacheRead: 0, cacheWrite: 0, output: 0 }, prices), 150)
  t.equal(costNano({ input: 0, cacheRead: 2, cacheWrite: 0, output: 0 }, prices), 150)
  t.equal(costNano({ input: 0, cacheRead: 0, cacheWrite: 1, output: 0 }, prices), 150)
  t.equal(costNano({ input: 0, cacheRead: 0, cacheWrite: 0, output: 1 }, prices), 600)
  t.equal(costNano({ input: 1_000_000, cacheRead: 0, cacheWrite: 0, output: 1_000_000 }, prices), 750_000_000)
})

test('a model with no price reserves and costs nothing', async t => {
  t.equal(costNano({ input: 9, cacheRead: 9, cacheWrite: 9, output: 9 }, null), 0)
  t.equal(estimateCall(call({ max_tokens: 100 }), null, null).costNano, 0)
})

test('the reservation covers max_tokens times n, else the smaller of the model’s maximum and 4096', async t => {
  t.equal(estimateCall(call({ max_tokens: 100 }), prices, 50_000).outputTokens, 100)
  t.equal(estimateCall(call({ max_completion_tokens: 70, n: 3 }), prices, null).outputTokens, 210)
  t.equal(estimateCall(call({}), prices, 1_000).outputTokens, 1_000)
  t.equal(estimateCall(call({}), prices, 100_000).outputTokens, 4_096)
  t.equal(estimateCall(call({}), prices, null).outputTokens, 4_096)
})

test('of two limits the reservation covers the greater, whichever the provider follows', async t => {
  for (const limits of [
    { max_tokens: 1, max_completion_tokens: 64_000 },
    { max_tokens: 64_000, max_completion_tokens: 1 },
  ]) {
    t.equal(estimateCall(call(limits), prices, null).outputTokens, 64_000)
  }
})

test('usage beyond all reason at the highest price is still an amount that can be settled and stored', async t => {
  const most = 1_000_000
  const highest = tokenPrices({
    inputPerMTok: most,
    outputPerMTok: most,
    cachedInputPerMTok: most,
    cacheWritePerMTok: most,
  })
  const tokens = geminiBuckets({
    promptTokenCount: 2 ** 28,
    candidatesTokenCount: 2 ** 28,
    thoughtsTokenCount: 2 ** 31 - 1,
  })
  t.ok(tokens !== null && tokens.output < 2 ** 31, 'a charge holds the tokens')
  t.ok(Number.isSafeInteger(costNano(tokens ?? NOTHING, highest)), 'the ledger takes the cost')
  t.equal(costNano({ input: 0, cacheRead: 0, cacheWrite: 0, output: 1_000 }, highest), 1e12)
})

test('the base64 of an image is not counted as text', async t => {
  const url = `data:image/png;base64,${'A'.repeat(300_000)}`
  const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
  t.ok(estimateCall(call({ messages }), prices, null).promptTokens < 2_000)
})

test('an absurd max_tokens or n reserves an amount that the ledger takes', async t => {
  const dear = tokenPrices({
    inputPerMTok: 1_000_000,
    outputPerMTok: 1_000_000,
    cachedInputPerMTok: null,
    cacheWritePerMTok: null,
  })
  for (const fields of [
    { max_tokens: 1e308 },
    { max_completion_tokens: 2 ** 53 },
    { max_tokens: 5, n: 1e21 },
  ]) {
    const { outputTokens, costNano } = estimateCall(call(fields), dear, null)
    t.ok(Number.isSafeInteger(outputTokens) && outputTokens > 1e9, JSON.stringify(fields))
    t.ok(Number.isSafeInteger(costNano) && costNano >= 1e15, 'no budget that a call can fit admits it')
  }
})
