import { test } from 'tap'
import type { ReferencesQuery } from '../../../proxy/control-plane-client.js'
import { createReferences, type FoundPrompt } from '../../../proxy/directory/references.js'
import type { PromptRecord, ReferencesAnswer } from '../../../shared/directory/records.js'

const wanted = { prompt: { name: 'greet', alias: 'production' }, tools: [], promptVersionId: null }
const at = (epoch: number) => ({ teamId: 'team', epoch })

function setUp() {
  const asked: ReferencesQuery[] = []
  const served: PromptRecord = {
    promptId: 'p',
    versionId: 'v1',
    versionNumber: 1,
    model: null,
    messages: [{ role: 'user', content: 'Hello {{ name }}' }],
    tools: [],
  }
  const plane = {
    asked,
    served,
    async lookUpReferences(query: ReferencesQuery): Promise<ReferencesAnswer> {
      asked.push(query)
      return { prompt: { ...served }, tools: [], promptVersionKnown: null }
    },
  }
  return { plane, references: createReferences(plane) }
}

test('what a call names is asked for once an epoch, and then found without waiting', async t => {
  const { plane, references } = setUp()
  const first = await references.find(at(1), wanted)
  const second = references.find(at(1), wanted)
  t.notOk(second instanceof Promise)
  t.equal(second, first)
  t.equal(plane.asked.length, 1)
  await references.find(at(2), wanted)
  t.equal(plane.asked.length, 2, 'a moved epoch is asked anew')
})

test('a version that still serves is not parsed again when the epoch moved', async t => {
  const { plane, references } = setUp()
  const before = (await references.find(at(1), wanted)).prompt as FoundPrompt
  const after = (await references.find(at(2), wanted)).prompt as FoundPrompt
  t.equal(after.compiled, before.compiled)
  plane.served.versionId = 'v2'
  const moved = (await references.find(at(3), wanted)).prompt as FoundPrompt
  t.not(moved.compiled, before.compiled)
})

test('calls that name the same at once share a look-up, of their own epoch', async t => {
  const { plane, references } = setUp()
  await Promise.all(Array.from({ length: 50 }, () => references.find(at(1), wanted)))
  t.equal(plane.asked.length, 1)
  await Promise.all([references.find(at(2), wanted), references.find(at(3), wanted)])
  t.equal(plane.asked.length, 3, 'a look-up of another epoch may have read too early')
})

test('what was asked weighs as much as what was answered', async t => {
  const { plane, references } = setUp()
  const asking = (number: number) => {
    const name = `${number}${'x'.repeat(1_000_000)}`
    return references.find(at(1), { ...wanted, prompt: { name, alias: 'production' } })
  }
  for (let number = 0; number < 12; number++) await asking(number)
  t.ok(asking(0) instanceof Promise, 'the first one is forgotten')
  t.equal(plane.asked.length, 13)
})

test('teams never share what is remembered', async t => {
  const { plane, references } = setUp()
  await references.find(at(1), wanted)
  await references.find({ teamId: 'other', epoch: 1 }, wanted)
  t.same(
    plane.asked.map(({ teamId }) => teamId),
    ['team', 'other'],
  )
})

test('a failed look-up is tried again by the next call', async t => {
  let fails = true
  const references = createReferences({
    async lookUpReferences() {
      if (fails) throw new Error('away')
      return { prompt: { missing: 'Prompt not found.' }, tools: [], promptVersionKnown: null }
    },
  })
  await t.rejects(Promise.resolve(references.find(at(1), wanted)), /away/)
  fails = false
  t.match(await references.find(at(1), wanted), { prompt: { missing: 'Prompt not found.' } })
})
