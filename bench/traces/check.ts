import { connectSql, type Sql } from '../../control-plane/db/sql.js'
import type { Asker } from './questions.js'
import { type BenchTeam, DAY_MS } from './world.js'

/** What was looked for and how often it was found; anything but zero is a fault of the store. */
export interface Findings {
  /** Spans that were answered for and are not stored, or stored twice. */
  lostOrDoubled: number
  /** Rows of `traces` whose totals are not those of their spans. */
  wrongTraces: number
  /** Buckets of analytics whose counts and sums are not those of the spans. */
  wrongBuckets: number
  buckets: number
  /** The largest distance of a percentile of a bucket of 100 spans or more from the exact one, 0.05 for 5 %. */
  percentileError: number
}

/** Every span that an endpoint answered for must be there once. */
export async function countLost(
  databaseUrl: string,
  traceIds: readonly string[],
  sent: number,
): Promise<number> {
  return withSql(databaseUrl, async sql => {
    const [row] = await sql<{ stored: number; counted: number }[]>`
      select
        (select count(*) from spans s join trace_owners o on s.team_id = o.team_id
          and s.trace_received_at = o.received_at and s.trace_id = o.id
          where o.id = any(${traceIds as string[]}::uuid[]))::double precision as stored,
        (select sum(span_count) from traces t join trace_owners o on t.team_id = o.team_id
          and t.received_at = o.received_at and t.id = o.id
          where o.id = any(${traceIds as string[]}::uuid[]))::double precision as counted`
    return Math.abs((row?.stored ?? 0) - sent) + Math.abs((row?.counted ?? 0) - sent)
  })
}

/** A team's rows of `traces` against their spans, all of them. */
export async function countWrongTraces(databaseUrl: string, team: BenchTeam): Promise<number> {
  return withSql(databaseUrl, async sql => {
    const [row] = await sql<{ wrong: number }[]>`
      select count(*)::double precision as wrong from traces t join (
        select trace_received_at, trace_id, count(*) as spans, count(*) filter (where status = 'error') as errors,
          sum(cost_nano) as cost, coalesce(sum(total_tokens), 0) as tokens, min(start_time) as started,
          max(end_time) as ended, array_agg(distinct model collate "C") filter (where model is not null) as models
        from spans where team_id = ${team.id} group by trace_received_at, trace_id
      ) s on s.trace_received_at = t.received_at and s.trace_id = t.id
      where t.team_id = ${team.id} and (t.span_count, t.error_count, t.total_tokens, t.started_at)
        is distinct from (s.spans, s.errors, s.tokens, s.started)
        or t.total_cost_nano is distinct from s.cost or t.ended_at is distinct from s.ended
        or t.models is distinct from coalesce(s.models, '{}')`
    return row?.wrong ?? 0
  })
}

interface Metrics {
  key: string
  requests: number
  errors: number
  promptTokens: number
  totalTokens: number
  costUsd: number
  p50: number | null
  p95: number | null
  p99: number | null
}

interface Bucket extends Omit<Metrics, 'errors' | 'p50' | 'p95' | 'p99'> {
  errorRate: number
  latencyMs: { p50: number | null; p95: number | null; p99: number | null }
}

type Found = Pick<Findings, 'wrongBuckets' | 'buckets' | 'percentileError'>

/** Analytics of whole days against the spans themselves. */
export async function checkAnalytics(
  databaseUrl: string,
  asker: Asker,
  team: BenchTeam,
  nowMs: number,
): Promise<Found | null> {
  const [from, to] = [dayOf(nowMs - 25 * DAY_MS), dayOf(nowMs - 2 * DAY_MS)]
  const found: Found = { wrongBuckets: 0, buckets: 0, percentileError: 0 }
  for (const groupBy of ['day', 'model', 'prompt_version'] as const) {
    const path = `/traces/analytics?group_by=${groupBy}&from=${from}T00:00:00.000Z&to=${to}T23:59:59.999Z`
    const { status, body } = await asker.get(path, team)
    if (status !== 200) return null
    const exact = new Map((await recomputed(databaseUrl, team, groupBy, from, to)).map(row => [row.key, row]))
    const shown = body.buckets as Bucket[]
    found.buckets += exact.size
    found.wrongBuckets += Math.max(0, exact.size - shown.length)
    for (const bucket of shown) compare(bucket, exact.get(bucket.key), found)
  }
  return found
}

function compare(shown: Bucket, exact: Metrics | undefined, found: Found): void {
  const isRight =
    exact !== undefined &&
    shown.requests === exact.requests &&
    Math.abs(shown.errorRate - exact.errors / exact.requests) < 1e-9 &&
    shown.promptTokens === exact.promptTokens &&
    shown.totalTokens === exact.totalTokens &&
    Math.abs(shown.costUsd - exact.costUsd) < 1e-9 * Math.max(1, exact.costUsd)
  if (!isRight) found.wrongBuckets += 1
  if (exact === undefined || exact.requests < 100) return
  for (const share of ['p50', 'p95', 'p99'] as const) {
    const [seen, real] = [shown.latencyMs[share], exact[share]]
    if (seen === null || real === null || real === 0) continue
    found.percentileError = Math.max(found.percentileError, Math.abs(seen - real) / real)
  }
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)

async function recomputed(
  databaseUrl: string,
  team: BenchTeam,
  groupBy: 'day' | 'model' | 'prompt_version',
  from: string,
  to: string,
): Promise<Metrics[]> {
  return withSql(databaseUrl, async sql => {
    const key = {
      day: sql`to_char(start_time at time zone 'UTC', 'YYYY-MM-DD')`,
      model: sql`model`,
      prompt_version: sql`prompt_version_id::text`,
    }[groupBy]
    return sql<Metrics[]>`
      select ${key} as key, count(*)::double precision as requests,
        count(*) filter (where status = 'error')::double precision as errors,
        coalesce(sum(prompt_tokens), 0)::double precision as prompt_tokens,
        coalesce(sum(total_tokens), 0)::double precision as total_tokens,
        coalesce(sum(cost_nano), 0)::double precision / 1e9 as cost_usd,
        percentile_disc(0.5) within group (order by duration_ms) as p50,
        percentile_disc(0.95) within group (order by duration_ms) as p95,
        percentile_disc(0.99) within group (order by duration_ms) as p99
      from spans where team_id = ${team.id}
        and start_time between ${`${from}T00:00:00.000Z`}::timestamptz and ${`${to}T23:59:59.999Z`}::timestamptz
      group by 1 having ${key} is not null`
  })
}

async function withSql<T>(databaseUrl: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = connectSql(databaseUrl, { deadlineMs: 300_000, max: 1, name: 'agh-bench-check' })
  try {
    return await work(sql)
  } finally {
    await sql.end({ timeout: 5 })
  }
}
