import t from 'tap'
import { knownModel, STARTER_MODELS } from '../../../control-plane/gateway/models/price-table.js'

t.test('a dated snapshot has the price of its family', async t => {
  const families: Record<string, string> = {
    'gpt-4o-mini-2024-07-18': 'gpt-4o-mini',
    'gpt-4o-2024-08-06': 'gpt-4o',
    'gpt-5-2025-08-07': 'gpt-5',
    'gpt-4.1-nano-2025-04-14': 'gpt-4.1-nano',
    'o4-mini-2025-04-16': 'o4-mini',
    'claude-haiku-4-5-20251001': 'claude-haiku-4-5',
    'claude-sonnet-4-20250514': 'claude-sonnet-4',
    'claude-opus-4-1-20250805': 'claude-opus-4-1',
    'claude-3-5-haiku-latest': 'claude-3-5-haiku',
    'claude-opus-4-5@20251101': 'claude-opus-4-5',
    'gemini-2.5-flash-preview-09-2025': 'gemini-2.5-flash',
    'gemini-3.1-pro-preview': 'gemini-3.1-pro',
    'gemini-2.5-flash-lite-001': 'gemini-2.5-flash-lite',
  }
  for (const [snapshot, family] of Object.entries(families))
    t.equal(knownModel(snapshot)?.name, family, snapshot)
})

t.test('a snapshot that was priced apart keeps its own price', async t => {
  t.equal(knownModel('gpt-4o-2024-05-13')?.pricing.inputPerMTok, 5)
  t.equal(knownModel('gpt-4o')?.pricing.inputPerMTok, 2.5)
})

t.test('the names that routers use are known', async t => {
  t.equal(knownModel('anthropic/claude-sonnet-4.5')?.name, 'claude-sonnet-4-5')
  t.equal(knownModel('openai/gpt-4o')?.name, 'gpt-4o')
  t.equal(knownModel('google/gemini-2.5-pro')?.name, 'gemini-2.5-pro')
  t.equal(knownModel('models/gemini-2.5-pro')?.name, 'gemini-2.5-pro')
})

t.test('a model that is not in the table is unknown, never priced like a neighbour', async t => {
  const strangers = `llama-3.3-70b gpt-4o-audio-preview gpt-4o-realtime-preview gpt-oss-120b o1-mini gpt-5-turbo
    claude-9 gemini-2.5-flash-image demo gpt- 2024-07-18 -latest`
  for (const name of [...strangers.trim().split(/\s+/), '', 'constructor', '__proto__'])
    t.equal(knownModel(name), null, name)
})

t.test('every price is positive, reading a cache costs less than input and writing one more', async t => {
  for (const [vendor, names] of Object.entries(STARTER_MODELS)) {
    for (const name of names) {
      const known = knownModel(name)
      if (known === null) return t.fail(`${name} is not in the table`)
      const { inputPerMTok, outputPerMTok, cachedInputPerMTok, cacheWritePerMTok } = known.pricing
      t.equal(known.vendor, vendor, name)
      t.ok(inputPerMTok > 0 && outputPerMTok > inputPerMTok, name)
      t.ok(cachedInputPerMTok === null || cachedInputPerMTok < inputPerMTok, name)
      t.ok(cacheWritePerMTok === null || cacheWritePerMTok > inputPerMTok, name)
      t.ok(known.maxOutputTokens < known.contextWindow, name)
    }
  }
})
