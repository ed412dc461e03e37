import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attributes, context, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { BatchSpanProcessor, NodeTracerProvider, type SpanExporter } from '@opentelemetry/sdk-trace-node'
import t, { type Test } from 'tap'
import { gateLimits } from '../../../../control-plane/traces/ingest-gate.js'
import { updateTraceSettings } from '../../../../shared/contract/settings.js'
import { listTraces, readTrace } from '../../../../shared/contract/traces.js'
import { startControlPlane } from '../../../support/control-plane.js'
import { uuidOf } from '../../../support/otlp.js'
import { team } from '../../../support/seed.js'

/** The exporters that applications use, against a listening control plane; what they sent is read back whole. */

type Options = NonNullable<ConstructorParameters<typeof ProtobufExporter>[0]>
const gzip = 'gzip' as NonNullable<Options['compression']>

async function setUp(t: Test) {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.owner.personalKey
  await cp.call(updateTraceSettings, { as, body: { capturePayloads: true } })
  const origin = await cp.app.listen({ host: '127.0.0.1', port: 0 })
  const options = (more: Options = {}): Options => ({
    url: `${origin}/api/v1/traces/otlp`,
    headers: { authorization: `Bearer ${ours.virtualKey.key}` },
    ...more,
  })
  const read = async (hexTraceId: string) =>
    (await cp.call(readTrace, { as, params: { id: uuidOf(hexTraceId) } })).body
  const total = async () => (await cp.call(listTraces, { as })).body.total
  return { cp, ours, origin, options, read, total }
}

/** Runs an instrumented program; resolves when its spans are exported. */
async function instrumented<T>(
  exporter: SpanExporter,
  program: (tracer: Tracer) => T,
  maxExportBatchSize = 512,
): Promise<T> {
  const processor = new BatchSpanProcessor(exporter, { maxExportBatchSize, maxQueueSize: 10_000 })
  const provider = new NodeTracerProvider({ spanProcessors: [processor] })
  const result = program(provider.getTracer('test-instrumentation', '1.2.3'))
  await provider.forceFlush()
  await provider.shutdown()
  return result
}

const kinds = {
  LLM: 'llm',
  TOOL: 'tool',
  RETRIEVER: 'retrieval',
  EMBEDDING: 'embedding',
  AGENT: 'agent',
  CHAIN: 'chain',
  RERANKER: 'other',
}

/** An agent with a child of every kind, in both vocabularies, and one that fails. @returns the trace id in hex. */
function agentRun(tracer: Tracer): string {
  const root = tracer.startSpan('agent_run_3f2b8c1e-0d4a-4e6b-9a57-1c2d3e4f5a6b', {
    attributes: {
      'openinference.span.kind': 'AGENT',
      'session.id': 'session-1',
      'tag.tags': ['beta', 'eu'],
      metadata: '{"plan":"pro"}',
    },
  })
  const inside = trace.setSpan(context.active(), root)
  const child = (name: string, attributes: Attributes, kind = SpanKind.INTERNAL) =>
    tracer.startSpan(name, { attributes, kind }, inside)
  for (const kind of Object.keys(kinds)) child(kind, { 'openinference.span.kind': kind }).end()
  child('openinference chat', {
    'openinference.span.kind': 'LLM',
    'llm.model_name': 'gpt-test',
    'llm.provider': 'openai',
    'llm.token_count.prompt': 10,
    'llm.token_count.completion': 5,
    'llm.cost.total': 0.25,
    'llm.input_messages.0.message.role': 'user',
    'llm.input_messages.0.message.content': 'Hi',
    'output.value': '{"text":"Hello"}',
    'output.mime_type': 'application/json',
    ratio: 0.5,
    flags: [true, false],
  }).end()
  child(
    'genai chat',
    {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.request.model': 'claude-test',
      'gen_ai.usage.input_tokens': 7,
      'gen_ai.usage.output_tokens': 3,
    },
    SpanKind.CLIENT,
  ).end()
  const failing = child('failing tool', { 'openinference.span.kind': 'TOOL' })
  failing.recordException(new Error('boom'))
  failing.addLink({ context: root.spanContext() })
  failing.setStatus({ code: SpanStatusCode.ERROR, message: 'it failed' })
  failing.end()
  root.setStatus({ code: SpanStatusCode.OK })
  root.end()
  return root.spanContext().traceId
}

const exporters = {
  'exporter-trace-otlp-proto': (options: Options) => new ProtobufExporter(options),
  'exporter-trace-otlp-proto, gzip': (options: Options) =>
    new ProtobufExporter({ ...options, compression: gzip }),
  'exporter-trace-otlp-http (JSON)': (options: Options) => new JsonExporter(options),
  'exporter-trace-otlp-http (JSON), gzip': (options: Options) =>
    new JsonExporter({ ...options, compression: gzip }),
}

for (const [name, make] of Object.entries(exporters)) {
  t.test(`${name}: a run of every span kind and both vocabularies reads back whole`, async t => {
    const { options, read } = await setUp(t)
    const { trace: found, spans } = await read(await instrumented(make(options()), agentRun))
    t.match(found, {
      name: 'agent_run',
      status: 'error',
      sessionId: 'session-1',
      tags: ['beta', 'eu'],
      metadata: { plan: 'pro' },
      spanCount: 11,
      totalTokens: 25,
      totalCostUsd: 0.25,
    })
    const named = (spanName: string) => spans.find(span => span.name === spanName)
    const root = spans.find(span => span.parentSpanId === null)
    t.match(root, { kind: 'agent', status: 'ok' })
    t.ok(spans.every(span => span === root || span.parentSpanId === root?.spanId))
    for (const [kind, ours] of Object.entries(kinds)) t.equal(named(kind)?.kind, ours, kind)
    t.match(named('openinference chat'), {
      kind: 'llm',
      status: 'unset',
      model: 'gpt-test',
      provider: 'openai',
      usage: { promptTokens: 10, completionTokens: 5, totalTokens: 15 },
      costUsd: 0.25,
      payload: { input: [{ role: 'user', content: 'Hi' }], output: { text: 'Hello' } },
      attributes: {
        ratio: 0.5,
        flags: [true, false],
        scope: { name: 'test-instrumentation', version: '1.2.3' },
      },
    })
    t.match(named('genai chat'), {
      kind: 'other',
      model: 'claude-test',
      provider: 'anthropic',
      usage: { totalTokens: 10 },
      attributes: { 'gen_ai.operation.name': 'chat', spanKind: 'client' },
    })
    t.match(named('failing tool'), {
      status: 'error',
      attributes: {
        statusMessage: 'it failed',
        events: [{ name: 'exception', attributes: { 'exception.message': 'boom' } }],
        links: [{ spanId: root?.spanId }],
        resource: { 'telemetry.sdk.language': 'nodejs' },
      },
    })
  })
}

t.test('the general endpoint variable’s address works too, and 3,000 spans in batches of 512', async t => {
  const { origin, options, read, total } = await setUp(t)
  const exporter = new ProtobufExporter(options({ url: `${origin}/api/v1/traces/otlp/v1/traces` }))
  const traceId = await instrumented(exporter, tracer => {
    const root = tracer.startSpan('root')
    const inside = trace.setSpan(context.active(), root)
    for (let i = 0; i < 2_999; i++) tracer.startSpan(`step ${i}`, {}, inside).end()
    root.end()
    return root.spanContext().traceId
  })
  const { trace: found, spans } = await read(traceId)
  t.equal(found.spanCount, 3_000)
  t.equal(new Set(spans.map(span => span.name)).size, 3_000)
  t.equal(await total(), 1)
})

t.test('an exporter that meets 503 keeps its spans and sends them again when it is told to', async t => {
  const { cp, ours, origin, options, read } = await setUp(t)
  const stalled = await stallUploads(origin, ours.virtualKey.key ?? '', gateLimits.requests)
  const statuses: number[] = []
  cp.app.server.on('request', (request, response) => {
    const isExporter = request.headers['user-agent']?.includes('OTel-OTLP-Exporter')
    if (isExporter) response.once('finish', () => statuses.push(response.statusCode))
  })
  t.teardown(() => stalled.forEach(socket => void socket.destroy()))
  const exporting = instrumented(new ProtobufExporter(options()), agentRun)
  while (statuses.length === 0) await sleep(10)
  t.same(statuses, [503])
  for (const socket of stalled) socket.destroy()
  t.equal((await read(await exporting)).trace.spanCount, 11)
  t.same(statuses, [503, 200])
})

/** As many requests as ingestion takes, each of which announces a body and sends none. */
async function stallUploads(origin: string, key: string, count: number): Promise<Socket[]> {
  const sockets = await Promise.all(Array.from({ length: count }, () => stalledUpload(origin, key)))
  // Each is let in once its key was looked up; a probe may take the place of one that comes just then.
  for (let tries = 0; tries < 500; tries++) {
    const probe = await fetch(`${origin}/api/v1/traces/otlp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{}',
    })
    if (probe.status === 503) {
      if (probe.headers.get('retry-after') !== '2') throw new Error('no Retry-After')
      return sockets
    }
    await sleep(20)
    if (tries % 10 === 9) sockets.push(await stalledUpload(origin, key))
  }
  throw new Error('ingestion never filled up')
}

async function stalledUpload(origin: string, key: string): Promise<Socket> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  socket.on('error', () => {})
  await new Promise(resolve => socket.once('connect', resolve))
  const head = [
    'POST /api/v1/traces/otlp HTTP/1.1',
    'host: x',
    `authorization: Bearer ${key}`,
    'content-length: 9',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  return socket
}
