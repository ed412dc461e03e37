/** What a completion leaves in its trace (spec 3, request headers; spec 4, sections 5 and 9), on two real processes. */
import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { updateTraceSettings } from '../../shared/contract/settings.js'
import { readTrace } from '../../shared/contract/traces.js'
import { addModel, addVirtualKey, complete, expect, gatewayTeam } from '../support/gateway-team.js'
import { hello, MODEL, scene, traceOf } from '../support/scene.js'

test('trace context: headers over body, wrong types dropped and listed, joined traces, foreign ids', async t => {
  const it = await scene(t)
  const { system, team, key } = it
  const traceId = randomUUID()
  const first = await complete(
    system,
    key,
    {
      ...hello,
      trace: { traceId: randomUUID(), tags: 'not a list', sessionId: 's-1' },
      span: { name: 'step one' },
    },
    { 'x-trace-id': traceId, 'x-trace-name': 'caf%C3%A9', 'x-trace-metadata': '{"env":"test"}' },
  )
  t.equal(first.headers.get('x-gateway-trace-id'), traceId)
  t.equal(first.headers.get('x-gateway-context-ignored'), 'trace.tags')
  const second = await complete(system, key, hello, {
    'x-trace-id': traceId,
    'x-trace-name-if-unset': 'other',
  })
  t.equal(second.headers.get('x-gateway-context-ignored'), null)
  const { trace, spans } = await traceOf(it, traceId, 2)
  t.match(trace, { name: 'café', sessionId: 's-1', metadata: { env: 'test' }, spanCount: 2 })
  t.ok(spans.some(span => span.name === 'step one'))

  const strangers = await gatewayTeam(system, 'openai_compatible', it.fake.baseUrl('openai'))
  await addModel(system, strangers, MODEL)
  const foreign = await addVirtualKey(system, strangers)
  const theirs = await complete(system, foreign.key, hello, { 'x-trace-id': traceId })
  t.equal(theirs.status, 200)
  t.equal(theirs.headers.get('x-gateway-context-ignored'), 'x-trace-id')
  t.not(theirs.headers.get('x-gateway-trace-id'), traceId)
  t.equal((await system.call(readTrace, { as: team.apiKey, params: { id: traceId } })).body.spans.length, 2)
})

test('payloads are stored only when asked for, and redacted', async t => {
  const it = await scene(t)
  const { system, team, key } = it
  const secret = { model: MODEL, messages: [{ role: 'user', content: 'My secret word' }] }
  const payloadOf = async (headers: Record<string, string>) => {
    const response = await complete(system, key, secret, headers)
    return (await traceOf(it, response.headers.get('x-gateway-trace-id'))).spans[0]?.payload
  }
  const silent = await payloadOf({})
  t.notMatch(JSON.stringify(silent ?? null), /secret/)
  const loud = await payloadOf({ 'x-capture-payloads': 'true' })
  t.match(JSON.stringify(loud), /My secret word.*Hello/)
  await expect(system, updateTraceSettings, {
    as: team.apiKey,
    body: { capturePayloads: true, redactKeys: ['content'] },
  })
  const redacted = JSON.stringify(await payloadOf({}))
  t.match(redacted, /REDACTED/)
  t.notMatch(redacted, /secret/)
  t.notMatch(JSON.stringify((await payloadOf({ 'x-capture-payloads': 'false' })) ?? null), /REDACTED/)
})
