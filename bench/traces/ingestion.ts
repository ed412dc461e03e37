import { Pool } from 'undici'
import type { SpanWrite } from '../../control-plane/traces/span-write.js'
import { exportRequest, keyValues, nanos, protobuf } from '../../test/support/otlp.js'
import { cpuMicroseconds, percentile, processTree, sleep } from '../processes.js'
import { type BenchTrace, traceSource } from './data.js'
import type { BenchTeam } from './world.js'

export interface Ingestion {
  door: string
  spans: number
  spansPerSecond: number
  requestP95Ms: number
  /** µs of CPU a span; null where the server is not ours to look at. */
  controlPlaneMicroseconds: number
  postgresMicroseconds: number | null
  /** Requests that were told to come again later. */
  refused: number
}

interface Door {
  name: string
  path: string
  contentType: string
  spansPerRequest: number
  encode(spans: SpanWrite[]): Buffer
}

/** What the service takes at most (spec 2), and what the OpenTelemetry SDKs' batch processor sends at most. */
export const doors: readonly Door[] = [
  {
    name: 'POST /traces',
    path: '/api/v1/traces',
    contentType: 'application/json',
    spansPerRequest: 200,
    encode: spans => Buffer.from(JSON.stringify({ traces: reported(spans) })),
  },
  {
    name: 'OTLP protobuf',
    path: '/api/v1/traces/otlp',
    contentType: 'application/x-protobuf',
    spansPerRequest: 512,
    encode: spans => protobuf(exportRequest(spans.map(otlp), { 'service.name': 'bench' })),
  },
]

interface Prepared {
  team: BenchTeam
  body: Buffer
  spans: number
}

export interface Sent extends Ingestion {
  traceIds: string[]
  /** Those of the warm-up included. */
  allSpans: number
}

/** Sends new spans of all teams as fast as eight exporters get answers. Bodies are made before the clock starts. */
export async function measureIngestion(
  door: Door,
  teams: readonly BenchTeam[],
  { origin, spans, seed, controlPlanePid, postgresPid }: IngestionOptions,
): Promise<Sent> {
  const { requests, traceIds } = prepare(door, teams, spans, seed)
  const pool = new Pool(origin, { connections: EXPORTERS, pipelining: 1 })
  const cpu = () =>
    [
      cpuMicroseconds(processTree(controlPlanePid)),
      postgresPid === null ? null : cpuMicroseconds(processTree(postgresPid)),
    ] as const
  // The first requests make connections and compile what they touch.
  const warmUp = requests.splice(0, EXPORTERS)
  const times: number[] = []
  let refused = 0
  const work = async (queue: Prepared[]) => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const startedAt = performance.now()
      const again = await send(pool, door, next)
      refused += again
      times.push(performance.now() - startedAt)
    }
  }
  const all = (queue: Prepared[]) => Promise.all(Array.from({ length: EXPORTERS }, () => work(queue)))
  const warmUpSpans = warmUp.reduce((sum, request) => sum + request.spans, 0)
  await all(warmUp)
  times.length = 0
  const sent = requests.reduce((sum, request) => sum + request.spans, 0)
  const before = cpu()
  const startedAt = performance.now()
  await all(requests)
  const seconds = (performance.now() - startedAt) / 1_000
  const after = cpu()
  await pool.close()
  return {
    door: door.name,
    spans: sent,
    spansPerSecond: sent / seconds,
    requestP95Ms: percentile(times, 0.95),
    controlPlaneMicroseconds: (after[0] - before[0]) / sent,
    postgresMicroseconds: after[1] === null || before[1] === null ? null : (after[1] - before[1]) / sent,
    refused,
    traceIds,
    allSpans: sent + warmUpSpans,
  }
}

const EXPORTERS = 8

export interface IngestionOptions {
  origin: string
  spans: number
  seed: number
  controlPlanePid: number
  postgresPid: number | null
}

function prepare(door: Door, teams: readonly BenchTeam[], spans: number, seed: number) {
  const next = traceSource(teams, seed)
  const open = new Map<BenchTeam, BenchTrace['spans']>()
  const requests: Prepared[] = []
  const traceIds: string[] = []
  const flush = (team: BenchTeam, batch: SpanWrite[]) => {
    requests.push({ team, body: door.encode(batch), spans: batch.length })
    open.delete(team)
  }
  for (let made = 0; made < spans; ) {
    const trace = next(Date.now())
    made += trace.spans.length
    traceIds.push(trace.spans[0]?.trace.id ?? '')
    const held = open.get(trace.team) ?? []
    if (held.length + trace.spans.length > door.spansPerRequest) flush(trace.team, held)
    open.set(trace.team, [...(open.get(trace.team) ?? []), ...trace.spans])
  }
  for (const [team, batch] of open) flush(team, batch)
  return { requests, traceIds }
}

/** @returns how often it was told to come again. */
async function send(pool: Pool, door: Door, { team, body }: Prepared): Promise<number> {
  for (let refused = 0; ; refused++) {
    const response = await pool.request({
      method: 'POST',
      path: door.path,
      headers: { authorization: `Bearer ${team.key}`, 'content-type': door.contentType },
      body,
    })
    const text = await response.body.text()
    if (response.statusCode === 200) return refused
    if (response.statusCode !== 503 || refused > 50)
      throw new Error(`${door.name}: ${response.statusCode} ${text}`)
    await sleep(1_000 * Number(response.headers['retry-after'] ?? 1))
  }
}

function reported(spans: readonly SpanWrite[]): object[] {
  const traces = new Map<string, SpanWrite[]>()
  for (const span of spans) {
    const own = traces.get(span.trace.id)
    if (own === undefined) traces.set(span.trace.id, [span])
    else own.push(span)
  }
  return [...traces.values()].map(own => {
    const { id, name, sessionId, tags, metadata } = own[0]!.trace
    return { traceId: id, name, sessionId, tags, metadata, spans: own.map(reportedSpan) }
  })
}

const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

const reportedSpan = (span: SpanWrite) => ({
  spanId: span.spanId,
  parentSpanId: span.parentSpanId,
  name: span.name,
  kind: span.kind,
  status: span.status,
  startTime: iso(span.startTimeMs),
  endTime: iso(span.endTimeMs),
  model: span.model,
  provider: span.provider,
  usage:
    span.totalTokens === null
      ? null
      : {
          promptTokens: span.promptTokens,
          completionTokens: span.completionTokens,
          totalTokens: span.totalTokens,
        },
  costUsd: span.costNano === null ? null : span.costNano / 1e9,
  promptVersionId: span.promptVersionId,
  errorType: span.errorType,
  errorCode: span.errorCode,
  attributes: span.attributes,
  payload: span.input === null ? null : { input: span.input, output: span.output, variables: span.variables },
})

const kinds: Record<SpanWrite['kind'], string> = {
  llm: 'LLM',
  tool: 'TOOL',
  retrieval: 'RETRIEVER',
  embedding: 'EMBEDDING',
  agent: 'AGENT',
  chain: 'CHAIN',
  other: 'UNKNOWN',
}

/** As an application instrumented by OpenInference sends it. */
function otlp(span: SpanWrite): object {
  const { trace } = span
  const given = {
    'openinference.span.kind': kinds[span.kind],
    'llm.model_name': span.model,
    'llm.provider': span.provider,
    'llm.token_count.prompt': span.promptTokens,
    'llm.token_count.completion': span.completionTokens,
    'llm.token_count.total': span.totalTokens,
    'session.id': trace.sessionId,
    'tag.tags': trace.tags,
    metadata: JSON.stringify(trace.metadata),
    'input.value': span.input === null ? null : JSON.stringify(span.input),
    'output.value': span.output === null ? null : JSON.stringify(span.output),
    ...(span.attributes as object),
  }
  return {
    traceId: trace.id.replaceAll('-', ''),
    spanId: span.spanId,
    ...(span.parentSpanId !== null && { parentSpanId: span.parentSpanId }),
    name: span.parentSpanId === null ? (trace.name ?? span.name) : span.name,
    kind: 1,
    startTimeUnixNano: nanos(span.startTimeMs),
    endTimeUnixNano: nanos(span.endTimeMs ?? span.startTimeMs),
    attributes: keyValues(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))),
    status: { code: { ok: 1, error: 2, unset: 0 }[span.status] },
  }
}
