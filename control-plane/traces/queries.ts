import type postgres from 'postgres'
import type { Sql } from '../db/sql.js'

/** A piece of SQL with its values bound. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>

/** A row of `traces` as the API shows it, times still Dates. `bigint` columns fit a double: they count and add nano-dollars. */
export interface StoredTrace {
  id: string
  receivedAt: Date
  name: string
  sessionId: string | null
  status: 'ok' | 'error' | 'unset'
  startedAt: Date
  endedAt: Date | null
  durationMs: number | null
  spanCount: number
  warningCount: number
  totalCostNano: number | null
  totalTokens: number
  tags: string[]
  /** JSON text, parsed by whoever shows it. */
  metadata: string
}

/** What a trace is called that nobody has named: `Trace <ISO start time>` (spec 4, section 7). */
export const defaultName = (sql: Sql): Fragment =>
  sql`'Trace ' || to_char(t.started_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** Whether a trace `t` has a span `s` that meets a condition. */
export const hasSpan = (sql: Sql, condition: Fragment): Fragment => sql`exists (
  select from spans s where s.team_id = t.team_id and s.trace_received_at = t.received_at and s.trace_id = t.id
  and ${condition})`

/** Of a row `t` of `traces`. */
export const traceColumns = (sql: Sql): Fragment => sql`
  t.id, t.received_at, coalesce(t.name, ${defaultName(sql)}) as name, t.session_id, t.status, t.started_at, t.ended_at,
  t.duration_ms, t.span_count::double precision, t.warning_count::double precision,
  t.total_cost_nano::double precision, t.total_tokens::double precision, t.tags, t.metadata::text`

/** Null: no such trace, or another team's. */
export async function findTrace(sql: Sql, teamId: string, traceId: string): Promise<StoredTrace | null> {
  const [row] = await sql<StoredTrace[]>`
    select ${traceColumns(sql)} from trace_owners o
    join traces t on t.team_id = o.team_id and t.received_at = o.received_at and t.id = o.id
    where o.id = ${traceId} and o.team_id = ${teamId}`
  return row ?? null
}

export interface StoredSpan {
  spanId: string
  parentSpanId: string | null
  name: string
  kind: 'llm' | 'tool' | 'retrieval' | 'embedding' | 'agent' | 'chain' | 'other'
  status: 'ok' | 'error' | 'unset'
  startTime: Date
  endTime: Date | null
  durationMs: number | null
  model: string | null
  provider: string | null
  promptTokens: number | null
  completionTokens: number | null
  totalTokens: number | null
  costNano: number | null
  promptVersionId: string | null
  errorType: string | null
  errorCode: string | null
  /** These four: JSON text. */
  attributes: string
  input: string | null
  output: string | null
  variables: string | null
}

/** A trace's spans by start time; ties in order of arrival. */
export async function listSpans(sql: Sql, teamId: string, trace: StoredTrace): Promise<StoredSpan[]> {
  return sql<StoredSpan[]>`
    select span_id, parent_span_id, name, kind, status, start_time, end_time, duration_ms, model, provider,
      prompt_tokens::double precision, completion_tokens::double precision, total_tokens::double precision,
      cost_nano::double precision, prompt_version_id, error_type, error_code,
      attributes::text, input::text, output::text, variables::text
    from spans
    where team_id = ${teamId} and trace_received_at = ${trace.receivedAt} and trace_id = ${trace.id}
    order by start_time, position`
}

/** Null: nobody holds the id. */
export async function findTraceOwner(sql: Sql, traceId: string): Promise<string | null> {
  const [row] = await sql<{ teamId: string }[]>`select team_id from trace_owners where id = ${traceId}`
  return row?.teamId ?? null
}
