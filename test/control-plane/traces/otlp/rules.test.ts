import t, { type Test } from 'tap'
import { updateTraceSettings } from '../../../../shared/contract/settings.js'
import { ingestTraces } from '../../../../shared/contract/trace-ingestion.js'
import { listTraces, readTrace } from '../../../../shared/contract/traces.js'
import { startControlPlane } from '../../../support/control-plane.js'
import {
  exportRequest,
  nanos,
  newSpanId,
  newTraceId,
  otlpSpan,
  postOtlp,
  protobuf,
  START_MS,
  uuidOf,
} from '../../../support/otlp.js'
import { team } from '../../../support/seed.js'

/** The eight mapping rules of spec 2, POST /traces/otlp, by number. */

async function setUp(t: Test) {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.viewer.personalKey
  const send = async (...spans: object[]) => {
    const answer = await postOtlp(cp, ours.virtualKey, exportRequest(spans))
    if (answer.status !== 200) throw new Error(answer.bytes.toString())
    return answer.json
  }
  const read = async (traceId: string) => {
    const { status, body } = await cp.call(readTrace, { as, params: { id: uuidOf(traceId) } })
    return status === 200 ? body : null
  }
  /** Sends a span of its own trace. @returns it as it is read. */
  const stored = async (fields: Parameters<typeof otlpSpan>[0]) => {
    const span = otlpSpan(fields)
    await send(span)
    return (await read(span.traceId))!.spans[0]!
  }
  const capture = () =>
    cp.call(updateTraceSettings, { as: ours.owner.personalKey, body: { capturePayloads: true } })
  const total = async () => (await cp.call(listTraces, { as })).body.total
  return { cp, ours, send, read, stored, capture, total }
}

t.test('rule 1: the trace id is the uuid of its hex, the span id stays hex; either letter case', async t => {
  const { send, read } = await setUp(t)
  const [traceId, root, child] = [newTraceId(), newSpanId(), newSpanId()]
  await send(
    otlpSpan({ traceId: traceId.toUpperCase(), spanId: root.toUpperCase() }),
    otlpSpan({ traceId, spanId: child, parentSpanId: root, startTimeUnixNano: nanos(START_MS + 1) }),
  )
  const found = await read(traceId)
  t.equal(found?.trace.id, uuidOf(traceId))
  t.match(found?.spans, [
    { spanId: root, parentSpanId: null },
    { spanId: child, parentSpanId: root },
  ])
})

t.test('rule 2: the OpenInference kind, in any letter case; without one it is other', async t => {
  const { stored } = await setUp(t)
  const wanted = {
    LLM: 'llm',
    tool: 'tool',
    Retriever: 'retrieval',
    EMBEDDING: 'embedding',
    AGENT: 'agent',
    ChAiN: 'chain',
    RERANKER: 'other',
    GUARDRAIL: 'other',
    EVALUATOR: 'other',
    PROMPT: 'other',
    UNKNOWN: 'other',
    '': 'other',
    constructor: 'other',
  }
  for (const [name, kind] of Object.entries(wanted)) {
    const attributes = { 'openinference.span.kind': name }
    const span = await stored({ attributes })
    t.equal(span.kind, kind, name)
    t.equal(span.attributes['openinference.span.kind'], name)
  }
  t.equal((await stored({ attributes: { 'openinference.span.kind': 7 } })).kind, 'other')
  t.equal((await stored({})).kind, 'other')
  t.equal((await stored({ attributes: { 'gen_ai.operation.name': 'chat' } })).kind, 'other')
})

t.test('rule 2: status code 1 is ok, 2 is error with its message kept, anything else unset', async t => {
  const { stored } = await setUp(t)
  const status = async (value: unknown) => (await stored({ status: value })).status
  t.equal(await status({ code: 1 }), 'ok')
  t.equal(await status({ code: 0 }), 'unset')
  t.equal(await status({ code: 9 }), 'unset')
  t.equal(await status({}), 'unset')
  t.equal(await status(undefined), 'unset')
  t.equal(await status({ code: 'STATUS_CODE_ERROR' }), 'error')
  const failed = await stored({ status: { code: 2, message: 'no route' } })
  t.equal(failed.status, 'error')
  t.equal(failed.attributes.statusMessage, 'no route')
})

t.test('rule 3: input, output and messages leave the attributes for the payload', async t => {
  const { stored, capture } = await setUp(t)
  const attributes = {
    'openinference.span.kind': 'LLM',
    'input.value': 'Hi',
    'output.value': '{"answer": 42}',
    'output.mime_type': 'application/json',
    'llm.input_messages.0.message.role': 'user',
    'llm.input_messages.0.message.content': 'from the messages',
    'llm.output_messages.0.message.content': 'from the messages',
    'llm.model_name': 'm',
  }
  const kept = {
    'openinference.span.kind': 'LLM',
    'output.mime_type': 'application/json',
    'llm.model_name': 'm',
  }
  const closed = await stored({ attributes })
  t.same(closed.attributes, kept)
  t.equal(closed.payload, null, 'the team does not capture')
  await capture()
  const open = await stored({ attributes })
  t.same(open.attributes, kept)
  t.same(open.payload, { input: 'Hi', output: { answer: 42 }, variables: null })
})

t.test('rule 3: redaction holds for promoted payloads, attributes, events and metadata alike', async t => {
  const { cp, ours, stored, capture } = await setUp(t)
  await capture()
  await cp.call(updateTraceSettings, {
    as: ours.owner.personalKey,
    body: { redactKeys: ['password', 'llm.token'] },
  })
  const secret = 'hunter2-hunter2'
  const hidden = JSON.stringify({ password: secret })
  const span = await stored({
    attributes: {
      'input.value': hidden,
      'input.mime_type': 'application/json',
      'output.value': hidden,
      'llm.token': secret,
      metadata: hidden,
      nested: { list: [{ password: secret }] },
    },
    events: [{ name: 'e', attributes: [{ key: 'password', value: { stringValue: secret } }] }],
  })
  t.notMatch(JSON.stringify(span), secret)
  t.equal(span.attributes['llm.token'], '[REDACTED]')
  t.notMatch(JSON.stringify(await cp.deps.sql`select traces::text, spans::text from traces, spans`), secret)
})

t.test('rule 4: a retrieval’s documents are an ordered array in payload.output', async t => {
  const { stored, capture } = await setUp(t)
  await capture()
  const at = (index: number, fields: object) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [`retrieval.documents.${index}.document.${name}`, value]),
    )
  const attributes = {
    ...at(10, { content: 'third', score: 0.1 }),
    ...at(9, { content: 'second', score: 0.5, metadata: '{"source":"wiki"}' }),
    ...at(0, { id: 'd-1', content: 'first', score: 0.9 }),
    'input.value': 'the question',
  }
  const span = await stored({ attributes: { ...attributes, 'openinference.span.kind': 'RETRIEVER' } })
  t.same(span.payload, {
    input: 'the question',
    output: [
      { id: 'd-1', content: 'first', score: 0.9 },
      { content: 'second', score: 0.5, metadata: { source: 'wiki' } },
      { content: 'third', score: 0.1 },
    ],
    variables: null,
  })
  t.same(span.attributes, { 'openinference.span.kind': 'RETRIEVER' })
  const chain = await stored({ attributes: { ...attributes, 'openinference.span.kind': 'CHAIN' } })
  t.equal(chain.payload?.output, null)
  t.equal(chain.attributes['retrieval.documents.10.document.content'], 'third', 'kept: no retrieval span')
})

t.test('rule 5: unrecognised attributes of every type are kept as they came', async t => {
  const { send, read } = await setUp(t)
  const attributes = {
    text: 'x',
    empty: '',
    yes: true,
    no: false,
    integer: -7,
    beyond: 9_007_199_254_740_993n,
    double: 0.25,
    list: ['a', 1, true, null],
    object: { nested: { deep: [] } },
    nothing: null,
    'dotted.name.0': 'x',
  }
  const span = otlpSpan({ attributes })
  const more = [
    { key: 'bytes', value: { bytesValue: 'AQID' } },
    { key: 'nan', value: { doubleValue: 'NaN' } },
    { key: 'plainInteger', value: { intValue: 5 } },
    { key: 'twice', value: { stringValue: 'first' } },
    { key: 'twice', value: { stringValue: 'last' } },
  ]
  await send({ ...span, attributes: [...span.attributes, ...more] })
  t.same((await read(span.traceId))?.spans[0]?.attributes, {
    ...attributes,
    beyond: '9007199254740993',
    bytes: 'AQID',
    nan: 'NaN',
    plainInteger: 5,
    twice: 'last',
  })
})

t.test(
  'rule 5: resource, scope, events, links and the rest of OTLP are kept under names of their own',
  async t => {
    const { cp, ours, read } = await setUp(t)
    const [span, link] = [
      otlpSpan({ attributes: { links: 'mine' } }),
      { traceId: newTraceId(), spanId: newSpanId() },
    ]
    const full = {
      ...span,
      kind: 3,
      traceState: 'vendor=1',
      droppedAttributesCount: 2,
      events: [
        {
          name: 'exception',
          timeUnixNano: nanos(START_MS),
          attributes: [{ key: 'exception.message', value: { stringValue: 'boom' } }],
        },
      ],
      links: [link],
    }
    const request = exportRequest([full], { 'service.name': 'shop' }, { name: 'lib', version: '1.0' })
    await postOtlp(cp, ours.virtualKey, request)
    const found = await read(span.traceId)
    t.same(found?.spans[0]?.attributes, {
      links: 'mine',
      'otel.links': [{ ...link, attributes: {} }],
      events: [
        { name: 'exception', time: '2026-11-21T12:00:00.000Z', attributes: { 'exception.message': 'boom' } },
      ],
      resource: { 'service.name': 'shop' },
      scope: { name: 'lib', version: '1.0' },
      spanKind: 'client',
      traceState: 'vendor=1',
      droppedAttributesCount: 2,
    })
  },
)

t.test(
  'rule 6: the root names the trace, its run id trimmed; without a root it keeps its start time',
  async t => {
    const { send, read } = await setUp(t)
    const [traceId, root] = [newTraceId(), newSpanId()]
    const name = async () => (await read(traceId))?.trace.name
    await send(otlpSpan({ traceId, parentSpanId: root, name: 'child' }))
    t.equal(await name(), 'Trace 2026-11-21T12:00:00.000Z')
    await send(otlpSpan({ traceId, spanId: root, name: 'graph_run_3f2b8c1e-0d4a-4e6b-9a57-1c2d3e4f5a6b' }))
    t.equal(await name(), 'graph_run')
    await send(otlpSpan({ traceId, name: 'a second root', startTimeUnixNano: nanos(START_MS + 5) }))
    t.equal(await name(), 'graph_run')
  },
)

t.test('rule 6: a name set through POST /traces is never overwritten, before or after', async t => {
  const { cp, ours, send, read } = await setUp(t)
  const post = (traceId: string, name: string) =>
    cp.call(ingestTraces, {
      as: ours.virtualKey,
      body: {
        traces: [
          {
            traceId: uuidOf(traceId),
            name,
            spans: [{ spanId: 'own', name: 's', startTime: '2026-11-21T12:00:00Z' }],
          },
        ],
      },
    })
  const [before, after] = [newTraceId(), newTraceId()]
  await post(before, 'Mine')
  await send(otlpSpan({ traceId: before, name: 'derived' }))
  await send(otlpSpan({ traceId: after, name: 'derived', startTimeUnixNano: nanos(START_MS - 10_000) }))
  t.equal((await read(after))?.trace.name, 'derived')
  await post(after, 'Mine')
  await send(otlpSpan({ traceId: after, name: 'derived again', startTimeUnixNano: nanos(START_MS - 20_000) }))
  t.equal((await read(before))?.trace.name, 'Mine')
  t.equal((await read(after))?.trace.name, 'Mine')
})

t.test('rule 7: a request of more than 200 spans is stored whole, of one trace or of many', async t => {
  const { cp, ours, send, read, total } = await setUp(t)
  const [traceId, root] = [newTraceId(), newSpanId()]
  const children = Array.from({ length: 450 }, (_, i) =>
    otlpSpan({ traceId, parentSpanId: root, startTimeUnixNano: nanos(START_MS + i) }),
  )
  const strangers = Array.from({ length: 250 }, () => otlpSpan())
  const all = [
    ...children.slice(0, 300),
    ...strangers,
    ...children.slice(300),
    otlpSpan({ traceId, spanId: root }),
  ]
  t.same(await send(...all), {})
  const found = await read(traceId)
  t.equal(found?.spans.length, 451)
  t.equal(found?.trace.spanCount, 451)
  t.equal(await total(), 251)
  await postOtlp(cp, ours.virtualKey, protobuf(exportRequest(all)))
  t.equal((await read(traceId))?.trace.spanCount, 451, 'again, as protobuf: rule 8')
  t.equal(await total(), 251)
})

t.test(
  'rule 7: a trace that fits into a chunk is written at once, wherever its spans are in the request',
  async t => {
    const { cp, send } = await setUp(t)
    const traceIds = Array.from({ length: 50 }, newTraceId)
    const spans = Array.from({ length: 7 }, () => traceIds.map(traceId => otlpSpan({ traceId }))).flat()
    t.same(await send(...spans), {})
    const traces = await cp.deps.sql<{ transactions: number; spans: number }[]>`
    select count(distinct xmin::text)::int as transactions, count(*)::int as spans from spans group by trace_id`
    t.same(
      [...traces],
      traceIds.map(() => ({ transactions: 1, spans: 7 })),
    )
  },
)

t.test('rule 8: the same (trace, span) again is absorbed, and its last form stays', async t => {
  const { send, read } = await setUp(t)
  const span = otlpSpan({ attributes: { 'llm.token_count.total': 5, 'llm.cost.total': 1 } })
  const ended = { ...span, name: 'ended', status: { code: 2 } }
  await send(span)
  await send(span, span)
  t.match((await read(span.traceId))?.trace, { spanCount: 1, totalTokens: 5, totalCostUsd: 1, status: 'ok' })
  await send(span, ended)
  const found = await read(span.traceId)
  t.match(found?.trace, { spanCount: 1, totalTokens: 5, totalCostUsd: 1, status: 'error' })
  t.match(found?.spans, [{ name: 'ended', status: 'error' }])
})

t.test('spans that arrive before their parent are kept', async t => {
  const { send, read } = await setUp(t)
  const [traceId, root] = [newTraceId(), newSpanId()]
  await send(otlpSpan({ traceId, parentSpanId: root }))
  await send(otlpSpan({ traceId, spanId: root, startTimeUnixNano: nanos(START_MS - 1) }))
  t.same(
    (await read(traceId))?.spans.map(span => span.parentSpanId),
    [null, root],
  )
})
