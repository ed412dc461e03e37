/**
 * Trace ingestion by violence: exporters that behave as OTLP says (keep a batch until it is answered, send it again
 * after 503 or a broken connection) send through the proxy while the control plane and PostgreSQL are killed with
 * SIGKILL. Afterwards every span is stored, and stored once, and the sums on each trace are those of its spans.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { connectSql, type Sql } from '../../control-plane/db/sql.js'
import { VIRTUAL_KEY_PREFIX } from '../../shared/secrets/token.js'
import {
  exportRequest,
  nanos,
  newSpanId,
  newTraceId,
  otlpSpan,
  protobuf,
  START_MS,
  uuidOf,
} from '../support/otlp.js'
import { team } from '../support/seed.js'
import { type System, startSystem } from '../support/system.js'
import { mortalPostgres } from './mortal-postgres.js'
import { chance } from './random.js'

const EXPORTERS = 6
const ROUNDS = 6
const DOWN_MS = 300
/** Spans of a batch: three chunks, so that a kill may come between two of them. */
const BATCH = 500

type OtlpSpan = ReturnType<typeof otlpSpan>

interface Exported {
  spans: OtlpSpan[]
  /** How many times a batch had to be sent again. */
  again: number
  statuses: Map<number, number>
}

test('control plane and PostgreSQL killed in mid-batch: no span is lost, none is doubled', async t => {
  const luck = chance()
  t.comment(`TEST_SEED=${luck.seed}`)
  const postgres = await mortalPostgres(t)
  const system = await startSystem(t, { databaseUrl: postgres.url })
  const sql = connectSql(postgres.url, { deadlineMs: 20_000, max: 2, name: 'agh-test' })
  t.teardown(() => sql.end({ timeout: 1 }))
  const ours = await team({ deps: { sql, now: Date.now } as never })
  const key = ours.virtualKey.key ?? ''
  t.ok(key.startsWith(VIRTUAL_KEY_PREFIX))
  let isOver = false
  const exporters = Array.from({ length: EXPORTERS }, (_, i) => runExporter(system, key, i, () => isOver))
  for (let round = 0; round < ROUNDS; round++) {
    await sleep(luck.between(200, 900))
    const victim = round % 2 === 0 ? system.controlPlane : postgres
    if ('kill' in victim) await victim.kill()
    else await victim.end('SIGKILL')
    await sleep(DOWN_MS)
    await victim.start()
  }
  await sleep(500)
  isOver = true
  const exported = await Promise.all(exporters)
  const again = exported.reduce((total, each) => total + each.again, 0)
  const sent = exported.flatMap(each => each.spans)
  t.comment(`${sent.length} spans, ${again} batches sent again`)
  t.ok(again > 0, 'the kills were felt')
  for (const { statuses } of exported) {
    t.same(
      [...statuses.keys()].filter(status => status !== 200 && status !== 503),
      [],
      'nothing but 200 and 503',
    )
  }
  await checkBooks(t, sql, ours.teamId, sent)
})

/** Sends batch after batch, each until it is answered with 200. */
async function runExporter(
  system: System,
  key: string,
  number: number,
  isOver: () => boolean,
): Promise<Exported> {
  const exported: Exported = { spans: [], again: 0, statuses: new Map() }
  const luck = chance(number)
  while (!isOver()) {
    const spans = batch(luck.between(1, BATCH))
    exported.spans.push(...spans)
    const body = gzipSync(protobuf(exportRequest(spans)))
    for (;;) {
      const status = await post(system, key, body)
      exported.statuses.set(status, (exported.statuses.get(status) ?? 0) + 1)
      if (status === 200) break
      exported.again++
      await sleep(50)
    }
  }
  return exported
}

/** 503 also for a connection that was refused or broken: the exporter does the same for both. */
async function post(system: System, key: string, body: Buffer): Promise<number> {
  try {
    const response = await fetch(`${system.origin}/api/v1/traces/otlp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/x-protobuf',
        'content-encoding': 'gzip',
      },
      body: new Uint8Array(body),
      signal: AbortSignal.timeout(15_000),
    })
    await response.arrayBuffer()
    return response.status
  } catch {
    return 503
  }
}

/** Traces of up to ten spans, some of which reach over the chunks of the request. */
function batch(count: number): OtlpSpan[] {
  const traceIds = Array.from({ length: Math.ceil(count / 10) }, newTraceId)
  return Array.from({ length: count }, (_, i) =>
    otlpSpan({
      traceId: traceIds[i % traceIds.length]!,
      spanId: newSpanId(),
      startTimeUnixNano: nanos(START_MS + i),
      attributes: { 'llm.token_count.prompt': i, 'llm.cost.total': (i + 1) / 1000 },
    }),
  )
}

async function checkBooks(t: Test, sql: Sql, teamId: string, sent: readonly OtlpSpan[]): Promise<void> {
  const rows = await sql<{ key: string }[]>`
    select trace_id || ' ' || span_id as key from spans where team_id = ${teamId}`
  const stored = new Set(rows.map(row => row.key))
  const wanted = sent.map(span => `${uuidOf(span.traceId)} ${span.spanId}`)
  t.equal(rows.length, stored.size, 'none is doubled')
  t.same(
    wanted.filter(key => !stored.has(key)),
    [],
    'none is lost',
  )
  t.equal(stored.size, wanted.length)
  const wrong = await sql`
    select t.id from traces t
    left join lateral (
      select count(*) as spans, sum(total_tokens) as tokens, sum(cost_nano) as nano
      from spans s where s.team_id = t.team_id and s.trace_received_at = t.received_at and s.trace_id = t.id) s on true
    where t.team_id = ${teamId} and (t.span_count, t.total_tokens, t.total_cost_nano)
      is distinct from (s.spans, s.tokens, s.nano)`
  t.same([...wrong], [], 'the sums on each trace are those of its spans')
}
