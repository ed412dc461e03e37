/** Spans on their whole way: through the proxy's origin into the control plane, and out again. */
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { connectSql } from '../../control-plane/db/sql.js'
import { ingestTraces } from '../../shared/contract/trace-ingestion.js'
import { readTrace } from '../../shared/contract/traces.js'
import type { Engine } from '../proxy/http/edge.js'
import { engines } from '../support/engines.js'
import { exportRequest, newSpanId, otlpSpan, protobuf, uuidOf } from '../support/otlp.js'
import { team } from '../support/seed.js'
import { startSystem } from '../support/system.js'

const MB = 1024 * 1024

async function setUp(t: Test, http: Engine) {
  const system = await startSystem(t, { http })
  const sql = connectSql(system.databaseUrl, { max: 1, name: 'agh-test' })
  const ours = await team({ deps: { sql, now: Date.now } as never })
  await sql.end()
  const send = async (
    body: Uint8Array | ReadableStream<Uint8Array>,
    headers: Record<string, string> = {},
  ) => {
    const response = await fetch(`${system.origin}/api/v1/traces/otlp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${ours.virtualKey.key}`,
        'content-type': 'application/x-protobuf',
        ...headers,
      },
      body,
      duplex: 'half',
    } as RequestInit)
    return {
      status: response.status,
      headers: response.headers,
      bytes: Buffer.from(await response.arrayBuffer()),
    }
  }
  const spanCount = async (traceId: string) => {
    const { body } = await system.call(readTrace, {
      as: ours.viewer.personalKey,
      params: { id: uuidOf(traceId) },
    })
    return body.spans.length
  }
  return { system, ours, send, spanCount }
}

for (const http of engines) {
  test(`${http}: 15 MB, gzip and a body of unknown length pass the proxy untouched; 21 MB do not`, async t => {
    const { system, ours, send, spanCount } = await setUp(t, http)
    const root = otlpSpan()
    const big = Array.from({ length: 150 }, () =>
      otlpSpan({
        traceId: root.traceId,
        parentSpanId: root.spanId,
        attributes: { text: 'x'.repeat(100_000) },
      }),
    )
    const body = protobuf(exportRequest([...big, root]))
    t.ok(body.length > 15_000_000)
    const whole = await send(body)
    t.equal(whole.status, 200)
    t.equal(whole.headers.get('content-type'), 'application/x-protobuf')
    t.equal(whole.bytes.length, 0)
    t.equal(await spanCount(root.traceId), 151)

    const more = (count: number) =>
      protobuf(
        exportRequest(
          Array.from({ length: count }, () => otlpSpan({ traceId: root.traceId, spanId: newSpanId() })),
        ),
      )
    t.equal((await send(gzipSync(more(300)), { 'content-encoding': 'gzip' })).status, 200)
    t.equal(await spanCount(root.traceId), 451)

    const piece = more(210)
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < piece.length; at += 1_000) controller.enqueue(piece.subarray(at, at + 1_000))
        controller.close()
      },
    })
    t.equal((await send(stream)).status, 200)
    t.equal(await spanCount(root.traceId), 661)

    const tooBig = await send(Buffer.alloc(21 * MB))
    t.equal(tooBig.status, 413)
    t.equal(JSON.parse(tooBig.bytes.toString()).error.code, 'PAYLOAD_TOO_LARGE')

    const span = { spanId: 'a', name: 'step', startTime: '2026-11-21T12:00:00Z' }
    const posted = await system.call(ingestTraces, {
      as: ours.virtualKey,
      body: { traces: [{ traceId: uuidOf(root.traceId), spans: [span] }] },
    })
    t.same(posted.body, { accepted: 1, traceIds: [uuidOf(root.traceId)] })
    const refused = await send(Buffer.from('no protobuf at all'))
    t.equal(refused.status, 400)
    t.match(JSON.parse(refused.bytes.toString()).error.message, /^Malformed OTLP request: /)
  })
}
