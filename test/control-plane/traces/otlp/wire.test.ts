import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { updateTraceSettings } from '../../../../shared/contract/settings.js'
import { listTraces, readTrace } from '../../../../shared/contract/traces.js'
import { revokeVirtualKey } from '../../../../shared/contract/virtual-keys.js'
import { type Credential, startControlPlane } from '../../../support/control-plane.js'
import {
  decodedResponse,
  exportRequest,
  newTraceId,
  otlpSpan,
  postOtlp,
  protobuf,
  uuidOf,
} from '../../../support/otlp.js'
import { team } from '../../../support/seed.js'

const MB = 1024 * 1024

async function setUp(t: Test) {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.viewer.personalKey
  const send = (
    body: object | Buffer | string,
    headers: Record<string, string> = {},
    who: Credential = ours.virtualKey,
  ) => postOtlp(cp, who, body, { headers })
  const spansOf = async (traceId: string) =>
    (await cp.call(readTrace, { as, params: { id: uuidOf(traceId) } })).body?.spans
  const total = async () => (await cp.call(listTraces, { as })).body.total
  return { cp, ours, send, spansOf, total }
}

const gzip = { 'content-encoding': 'gzip' }

t.test('200: protobuf is answered with an empty message of zero bytes, JSON with {}', async t => {
  const { send, spansOf } = await setUp(t)
  const span = otlpSpan({ attributes: { big: 9_007_199_254_740_993n, pi: 3.5, list: [1, { a: true }] } })
  const asProtobuf = await send(protobuf(exportRequest([span], { 'service.name': 'shop' })))
  t.equal(asProtobuf.status, 200)
  t.equal(asProtobuf.headers['content-type'], 'application/x-protobuf')
  t.equal(asProtobuf.bytes.length, 0)
  const first = await spansOf(span.traceId)
  const asJson = await send(exportRequest([span], { 'service.name': 'shop' }), {
    'content-type': 'application/json; charset=utf-8',
  })
  t.equal(asJson.status, 200)
  t.match(asJson.headers['content-type'], /^application\/json/)
  t.same(asJson.json, {})
  t.same(await spansOf(span.traceId), first, 'both forms say the same')
  t.same(first?.[0]?.attributes, {
    big: '9007199254740993',
    pi: 3.5,
    list: [1, { a: true }],
    resource: { 'service.name': 'shop' },
  })
})

t.test('200: an empty request of either form, and the address that exporters make themselves', async t => {
  const { cp, ours, send, spansOf } = await setUp(t)
  t.equal((await send(Buffer.alloc(0))).status, 200)
  t.same((await send({})).json, {})
  t.same((await send({ resourceSpans: [{ scopeSpans: [{}] }, {}] })).json, {})
  const span = otlpSpan()
  const path = '/api/v1/traces/otlp/v1/traces'
  t.same((await postOtlp(cp, ours.virtualKey, exportRequest([span]), { path })).json, {})
  t.equal((await spansOf(span.traceId))?.length, 1)
})

t.test('200: gzip of either form', async t => {
  const { send, spansOf } = await setUp(t)
  const [one, two] = [otlpSpan(), otlpSpan()]
  t.equal((await send(gzipSync(protobuf(exportRequest([one]))), gzip)).status, 200)
  const json = gzipSync(JSON.stringify(exportRequest([two])))
  t.same((await send(json, { ...gzip, 'content-type': 'application/json' })).json, {})
  t.equal((await spansOf(one.traceId))?.length, 1)
  t.equal((await spansOf(two.traceId))?.length, 1)
})

t.test(
  '400: an undecodable body is a VALIDATION_ERROR that says what is wrong; nothing is stored',
  async t => {
    const { send, total } = await setUp(t)
    const whole = protobuf(exportRequest([otlpSpan()]))
    const json = { 'content-type': 'application/json' }
    const span = (fields: object) => exportRequest([otlpSpan(fields as never)])
    const cases: [object | Buffer | string, Record<string, string>, RegExp][] = [
      [Buffer.from('this is no protobuf'), {}, /./],
      [whole.subarray(0, whole.length - 3), {}, /index out of range/],
      [Buffer.alloc(64), {}, /no resourceSpans/],
      [JSON.stringify(exportRequest([otlpSpan()])), { 'content-type': 'application/x-protobuf' }, /./],
      ['{"resourceSpans": [', json, /JSON/],
      ['', json, /the body is not a JSON object/],
      ['[]', json, /the body is not a JSON object/],
      ['null', json, /the body is not a JSON object/],
      [`{"resourceSpans":${'['.repeat(400)}`, json, /nested deeper than 256 levels/],
      [{ resourceSpans: 'spans' }, {}, /resourceSpans is not an array/],
      [{ resourceSpans: [7] }, {}, /resourceSpans holds what is not an object/],
      [span({ traceId: 'mine' }), {}, /traceId is not an id of 16 bytes/],
      [span({ spanId: 'ab' }), {}, /spanId is not an id of 8 bytes/],
      [span({ parentSpanId: 12 }), {}, /parentSpanId is not an id of 8 bytes/],
      [span({ startTimeUnixNano: 'now' }), {}, /startTimeUnixNano is not a time in nanoseconds/],
      [span({ name: 5 }), {}, /name is not text/],
      [protobuf({ resourceSpans: [] }).subarray(0), { 'content-encoding': 'br' }, /Content-Encoding/],
      [
        whole,
        { 'content-type': 'text/plain' },
        /Content-Type must be application\/x-protobuf or application\/json/,
      ],
      [whole, gzip, /gzip: /],
      [gzipSync(whole).subarray(0, 40), gzip, /gzip: /],
    ]
    for (const [body, headers, detail] of cases) {
      const { status, json: answer } = await send(body, headers)
      t.equal(status, 400, String(detail))
      t.equal(answer?.error?.code, 'VALIDATION_ERROR')
      t.match(answer?.error?.message, /^Malformed OTLP request: ./)
      t.match(answer?.error?.message.slice('Malformed OTLP request: '.length), detail)
    }
    t.equal(await total(), 0)
  },
)

t.test('401: without a live credential; a revoked key stops at once', async t => {
  const { cp, ours, send, total } = await setUp(t)
  const body = protobuf(exportRequest([otlpSpan()]))
  for (const who of [{}, { key: 'agh_sk_nobody' }]) {
    const { status, json } = await send(body, {}, who)
    t.equal(status, 401)
    t.same(json?.error, { code: 'UNAUTHORIZED', message: 'Authentication required.' })
  }
  for (const who of [ours.virtualKey, ours.teamKey, ours.viewer.personalKey, ours.viewer.session]) {
    t.equal((await send(protobuf(exportRequest([otlpSpan()])), {}, who)).status, 200)
  }
  await cp.call(revokeVirtualKey, { as: ours.owner.personalKey, params: { id: ours.virtualKeyId } })
  t.equal((await send(body)).status, 401)
  t.equal(await total(), 4)
})

t.test('413: a body over 20 MB, plain or inflated, and a gzip body that inflates a hundredfold', async t => {
  const { send, total } = await setUp(t)
  const bombs: [string, Buffer, Record<string, string>][] = [
    ['plain', Buffer.alloc(20 * MB + 1), {}],
    ['inflated', gzipSync(Buffer.alloc(50 * MB)), gzip],
    ['a small bomb', gzipSync(Buffer.alloc(5 * MB)), gzip],
    ['not even a request', gzipSync(Buffer.alloc(200 * MB)), gzip],
  ]
  for (const [name, body, headers] of bombs) {
    const { status, json } = await send(body, headers)
    t.equal(status, 413, name)
    t.equal(json?.error?.code, 'PAYLOAD_TOO_LARGE')
  }
  t.equal(await total(), 0)
})

t.test(
  'spans of another team’s trace are rejected in partialSuccess with 200; the others are stored',
  async t => {
    const { cp, ours, send, spansOf, total } = await setUp(t)
    const theirs = await team(cp)
    const foreign = otlpSpan({ name: 'theirs' })
    await send(exportRequest([foreign]), {}, theirs.virtualKey)
    const spans = [
      otlpSpan({ traceId: foreign.traceId }),
      otlpSpan(),
      otlpSpan({ traceId: foreign.traceId, spanId: foreign.spanId, name: 'ours' }),
    ]
    const partial = { rejectedSpans: 2, errorMessage: '2 rejected: Trace not found.' }
    const asProtobuf = await send(protobuf(exportRequest(spans)))
    t.equal(asProtobuf.status, 200)
    t.same(decodedResponse(asProtobuf.bytes), { partialSuccess: partial })
    const asJson = await send(exportRequest(spans))
    t.equal(asJson.status, 200)
    t.same(asJson.json, { partialSuccess: { ...partial, rejectedSpans: '2' } })
    t.equal(await total(), 1)
    t.equal(await spansOf(foreign.traceId), undefined)
    const { body } = await cp.call(readTrace, {
      as: theirs.viewer.personalKey,
      params: { id: uuidOf(foreign.traceId) },
    })
    t.match(body.spans, [{ name: 'theirs' }])
    t.ok(ours)
  },
)

t.test('spans without a usable identity are rejected, the others stored', async t => {
  const { send, spansOf } = await setUp(t)
  const good = otlpSpan()
  const { status, json } = await send(
    exportRequest([
      otlpSpan({ traceId: '0'.repeat(32) }),
      otlpSpan({ spanId: '' }),
      otlpSpan({ traceId: undefined }),
      { ...good, parentSpanId: '0'.repeat(16) },
    ]),
  )
  t.equal(status, 200)
  t.same(json, {
    partialSuccess: {
      rejectedSpans: '3',
      errorMessage: '3 rejected: A span needs a trace id and a span id.',
    },
  })
  t.match(await spansOf(good.traceId), [{ parentSpanId: null }])
})

t.test('JSON as other printers write it: base64 ids, number times, enum names, .proto names', async t => {
  const { send, spansOf } = await setUp(t)
  const [traceId, spanId] = [newTraceId(), 'a1b2c3d4e5f60718']
  const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64')
  const sloppy = {
    resource_spans: [
      {
        scope_spans: [
          {
            spans: [
              {
                trace_id: base64(traceId),
                span_id: base64(spanId),
                name: 'step',
                start_time_unix_nano: 1_795_262_400_000_000_000,
                end_time_unix_nano: '1795262400250999999',
                status: { code: 'STATUS_CODE_OK' },
                attributes: [{ key: 'snake_case.key', value: { string_value: 'kept_as_is' } }],
              },
            ],
          },
        ],
      },
    ],
  }
  t.same((await send(sloppy)).json, {})
  t.match(await spansOf(traceId), [
    {
      spanId,
      status: 'ok',
      startTime: '2026-11-21T12:00:00.000Z',
      endTime: '2026-11-21T12:00:00.250Z',
      durationMs: 250,
      attributes: { 'snake_case.key': 'kept_as_is' },
    },
  ])
})

t.test('a time that came as a JSON number is the millisecond that was meant', async t => {
  const { send, spansOf } = await setUp(t)
  const meant = Date.parse('2026-11-21T12:00:00.000Z')
  for (let ms = meant; ms < meant + 10; ms++) {
    const numbered = otlpSpan({ startTimeUnixNano: ms * 1e6, endTimeUnixNano: (ms + 1) * 1e6 })
    await send(exportRequest([numbered]))
    t.match(await spansOf(numbered.traceId), [{ startTime: new Date(ms).toISOString(), durationMs: 1 }])
  }
})

t.test('what exporters may leave out or get wrong does no harm', async t => {
  const { send, spansOf } = await setUp(t)
  const bare = { traceId: newTraceId(), spanId: 'a1b2c3d4e5f60718' }
  const backwards = otlpSpan({ endTimeUnixNano: '1000000000' })
  const far = otlpSpan({ endTimeUnixNano: '18446744073709551615' })
  t.equal((await send(exportRequest([bare, backwards, far]))).status, 200)
  t.match(await spansOf(bare.traceId), [{ name: '', endTime: null, durationMs: null, status: 'unset' }])
  t.match(await spansOf(backwards.traceId), [{ durationMs: 0 }])
  t.match(await spansOf(far.traceId), [{ endTime: /^2554-/ }])
})

t.test('keys from outside reach no prototype, NUL and depth no database', async t => {
  const { send, spansOf } = await setUp(t)
  const names = ['__proto__', 'constructor', 'llm.input_messages.0.message.__proto__', 'nul\0']
  const attributes = Object.fromEntries(names.map(name => [name, 'x\0y']))
  Object.defineProperty(attributes, '__proto__', { value: 'x', enumerable: true })
  let deep: object = { end: true }
  for (let level = 0; level < 200; level++) deep = { deep }
  for (const form of ['json', 'protobuf']) {
    const span = otlpSpan({ attributes: { ...attributes, ...(form === 'protobuf' && { deep }) } })
    const request = exportRequest([span])
    const { status } = await send(form === 'json' ? request : protobuf(request))
    t.equal(status, 200)
    const kept = (await spansOf(span.traceId))?.[0]?.attributes
    t.match(kept, { constructor: 'x\ufffdy', 'nul\ufffd': 'x\ufffdy' })
    t.notMatch(JSON.stringify(kept), '__proto__')
    t.notMatch(JSON.stringify(kept), 'end')
  }
  t.equal(({} as Record<string, unknown>).end, undefined)
})

t.test('JSON inside of text hides no NUL, no prototype and no depth either', async t => {
  const { cp, ours, send, spansOf } = await setUp(t)
  const body = { capturePayloads: true }
  await cp.call(updateTraceSettings, { as: ours.owner.personalKey, body })
  const nasty = '{"nul":"a\\u0000b","half":"\\ud800","__proto__":{"x":1},"list":[1]}'
  const deep = `${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`
  const span = otlpSpan({
    attributes: {
      'openinference.span.kind': 'RETRIEVER',
      'input.value': nasty,
      'input.mime_type': 'application/json',
      metadata: nasty,
      'retrieval.documents.0.document.metadata': nasty,
    },
  })
  const call = { type: 'tool_call', name: 'x', arguments: '$' }
  const messages = JSON.stringify([{ role: 'assistant', parts: [call] }]).replace('"$"', deep)
  const other = otlpSpan({ attributes: { 'gen_ai.input.messages': messages, 'llm.input_messages': deep } })
  const answer = await send(exportRequest([span, other]))
  t.same(answer.json, {})
  const cleaned = { nul: 'a\ufffdb', half: '\ufffd', list: [1] }
  t.same((await spansOf(span.traceId))?.[0]?.payload, {
    input: cleaned,
    output: [{ metadata: cleaned }],
    variables: null,
  })
  t.match(JSON.stringify((await spansOf(other.traceId))?.[0]?.payload), 'NESTED TOO DEEPLY')
})
