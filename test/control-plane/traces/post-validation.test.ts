import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { ingestTraces } from '../../../shared/contract/trace-ingestion.js'
import { listTraces, readTrace } from '../../../shared/contract/traces.js'
import { revokeVirtualKey } from '../../../shared/contract/virtual-keys.js'
import { type Credential, headersOf, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

const START = '2026-11-21T12:00:00.000Z'
const span = (fields: object = {}) => ({ spanId: 'a', name: 'step', startTime: START, ...fields })

async function setUp(t: Test) {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const post = (body: unknown, as: Credential = ours.virtualKey) =>
    cp.call(ingestTraces, { as, body: body as never })
  /** @returns what one span with these fields is answered. */
  const postSpan = (fields: object, trace: object = {}) =>
    post({ traces: [{ ...trace, spans: [span(fields)] }] })
  const count = async () => (await cp.call(listTraces, { as: ours.viewer.personalKey })).body.total
  return { cp, ours, post, postSpan, count }
}

t.test('400: what is missing or wrong is named with its path, in the texts of the contract', async t => {
  const { post, postSpan, count } = await setUp(t)
  const message = async (
    answer: Promise<{ status: number; error: { code: string; message: string } | null }>,
  ) => {
    const { status, error } = await answer
    return `${status} ${error?.code} ${error?.message}`
  }
  const refused = (text: string) => `400 VALIDATION_ERROR ${text}`
  t.equal(await message(post({})), refused('Required'))
  t.equal(await message(post({ traces: [] })), refused('Array must contain at least 1 element(s)'))
  t.equal(
    await message(post({ traces: [{ spans: [] }] })),
    refused('traces.0.spans: Array must contain at least 1 element(s)'),
  )
  t.equal(await message(post({ traces: [{}] })), refused('traces.0.spans: Required'))
  t.equal(
    await message(post({ traces: [{ spans: [span(), span({ spanId: 'b' }), span()] }] })),
    refused('Duplicate spanId "a" within a trace.'),
  )
  t.equal(await message(postSpan({}, { traceId: 'mine' })), refused('traces.0.traceId: Invalid uuid'))
  const cases: [object, string][] = [
    [{ spanId: undefined }, 'spanId: Required'],
    [{ spanId: '' }, 'spanId: String must contain at least 1 character(s)'],
    [{ spanId: 'x'.repeat(513) }, 'spanId: String must contain at most 512 character(s)'],
    [{ name: undefined }, 'name: Required'],
    [{ startTime: undefined }, 'startTime: Required'],
    [{ startTime: 'yesterday' }, 'startTime: Invalid date'],
    [{ endTime: '2026-13-01' }, 'endTime: Invalid date'],
    [
      { kind: 'LLM' },
      "kind: Invalid enum value. Expected 'llm' | 'tool' | 'retrieval' | 'embedding' | 'agent' | 'chain' | 'other', received 'LLM'",
    ],
    [
      { status: 'failed' },
      "status: Invalid enum value. Expected 'ok' | 'error' | 'unset', received 'failed'",
    ],
    [{ usage: { promptTokens: 1.5 } }, 'usage.promptTokens: Expected integer, received float'],
    [{ usage: { promptTokens: -1 } }, 'usage.promptTokens: Number must be greater than or equal to 0'],
    [{ costUsd: -0.01 }, 'costUsd: Number must be greater than or equal to 0'],
    [{ costUsd: 1e300 }, 'costUsd: Number must be less than or equal to 9000000'],
    [{ costUsd: '1' }, 'costUsd: Expected number, received string'],
    [{ attributes: [] }, 'attributes: Expected object'],
    [{ payload: { variables: 'x' } }, 'payload.variables: Expected object'],
    [{ name: 'nul \0' }, 'name: Text must not contain the NUL character.'],
    [{ spanId: 'nul \0' }, 'spanId: Text must not contain the NUL character.'],
    [{ model: 'half \ud800' }, 'model: Text must be well-formed Unicode.'],
  ]
  for (const [fields, text] of cases) {
    t.equal(await message(postSpan(fields)), refused(`traces.0.spans.0.${text}`))
  }
  t.equal(await count(), 0)
})

t.test('a duplicate is one within a trace: two traces may use one reference', async t => {
  const { post } = await setUp(t)
  t.equal((await post({ traces: [{ spans: [span()] }, { spans: [span()] }] })).status, 200)
})

t.test('400: a body that is not JSON, or nested too deeply', async t => {
  const { cp, ours } = await setUp(t)
  const send = async (payload: string) => {
    const headers = { 'content-type': 'application/json', ...headersOf(ours.virtualKey) }
    const { statusCode, body } = await cp.app.inject({
      method: 'POST',
      url: '/api/v1/traces',
      headers,
      payload,
    })
    return `${statusCode} ${JSON.parse(body).error.message}`
  }
  t.match(await send('{"traces": ['), /^400 Malformed JSON body: /)
  t.match(await send('['.repeat(300)), /^400 Malformed JSON body: nested deeper than 256 levels/)
})

t.test(
  '413: a body over 20 MB is refused, one of 15 MB is stored, what does not fit a field is cut',
  async t => {
    const { cp, ours, post, count } = await setUp(t)
    const payload = 'x'.repeat(20 * 1024 * 1024 + 1)
    const headers = { 'content-type': 'application/json', ...headersOf(ours.virtualKey) }
    const { statusCode, body } = await cp.app.inject({
      method: 'POST',
      url: '/api/v1/traces',
      headers,
      payload,
    })
    t.equal(statusCode, 413)
    t.equal(JSON.parse(body).error.code, 'PAYLOAD_TOO_LARGE')
    const spans = Array.from({ length: 15 }, (_, i) =>
      span({ spanId: `s${i}`, attributes: { text: 'x'.repeat(1024 * 1024) } }),
    )
    const stored = await post({ traces: [{ spans }] })
    t.equal(stored.status, 200)
    const found = await cp.call(readTrace, {
      as: ours.viewer.personalKey,
      params: { id: stored.body.traceIds[0]! },
    })
    t.equal(found.body.spans.length, 15)
    t.match(found.body.spans[0]?.attributes.text, /truncated, 1048576 characters\]$/)
    t.equal(await count(), 1)
  },
)

t.test('null is as good as leaving an optional field out', async t => {
  const { postSpan } = await setUp(t)
  const nothing = { parentSpanId: null, kind: null, status: null, endTime: null, model: null, usage: null }
  const more = { costUsd: null, attributes: null, promptVersionId: null, payload: null, errorType: null }
  const trace = { traceId: null, name: null, sessionId: null, tags: null, metadata: null }
  t.equal((await postSpan({ ...nothing, ...more }, trace)).status, 200)
})

t.test('keys from outside reach no prototype, and NUL in free-form JSON no database', async t => {
  const { cp, ours } = await setUp(t)
  const traceId = randomUUID()
  const attributes =
    '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"nul\\u0000":"a\\u0000b","half":"\\ud800"}'
  const spanText = JSON.stringify(span()).slice(0, -1)
  const payload = `{"traces":[{"traceId":"${traceId}","metadata":${attributes},"spans":[${spanText},"attributes":${attributes}}]}]}`
  const headers = { 'content-type': 'application/json', ...headersOf(ours.virtualKey) }
  const sent = await cp.app.inject({ method: 'POST', url: '/api/v1/traces', headers, payload })
  t.equal(sent.statusCode, 200)
  const { body } = await cp.call(readTrace, { as: ours.viewer.personalKey, params: { id: traceId } })
  const kept = { constructor: { prototype: { polluted: 1 } }, 'nul\ufffd': 'a\ufffdb', half: '\ufffd' }
  t.same(body.spans[0]?.attributes, kept)
  t.same(body.trace.metadata, kept)
  t.equal(({} as Record<string, unknown>).polluted, undefined)
})

t.test('every credential that may ingest does, without a role gate; nobody else', async t => {
  const { cp, ours, post } = await setUp(t)
  const body = { traces: [{ spans: [span()] }] }
  for (const as of [
    ours.virtualKey,
    ours.teamKey,
    ours.viewer.personalKey,
    ours.viewer.session,
    ours.owner.session,
  ]) {
    t.equal((await post(body, as)).status, 200)
  }
  for (const as of [{}, { key: 'agh_sk_nobody' }]) {
    const { status, error } = await post(body, as)
    t.equal(status, 401)
    t.same(error, { code: 'UNAUTHORIZED', message: 'Authentication required.' })
  }
  const bySite = await cp.call(ingestTraces, {
    as: ours.owner.session,
    body: body as never,
    headers: { origin: 'https://evil.example' },
  })
  t.equal(bySite.status, 403)
})

t.test('a revoked key stops at once', async t => {
  const { cp, ours, post, count } = await setUp(t)
  const body = { traces: [{ spans: [span()] }] }
  await post(body)
  await cp.call(revokeVirtualKey, { as: ours.owner.personalKey, params: { id: ours.virtualKeyId } })
  t.equal((await post(body)).status, 401)
  t.equal(await count(), 1)
})

t.test('an end before the start is taken as the start: no duration is negative', async t => {
  const { cp, ours, postSpan } = await setUp(t)
  const { body } = await postSpan({ endTime: '2026-11-21T11:00:00.000Z' })
  const found = await cp.call(readTrace, { as: ours.viewer.personalKey, params: { id: body.traceIds[0]! } })
  t.match(found.body.spans[0], { endTime: START, durationMs: 0 })
})
