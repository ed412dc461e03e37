import type { Sql } from '../db/sql.js'
import type { Fragment } from './queries.js'
import type { RolledSpan } from './span-rollup.js'
import type { SpanWrite } from './span-write.js'

/**
 * What ingestion writes, a set at a time: each statement takes its rows as one JSON text, which costs one parameter
 * and one parse whatever the number of rows. Instants travel as epoch milliseconds. The `order by` of the claims and
 * locks is what keeps parallel batches from deadlocking: whoever writes a trace's rows holds it.
 */

export interface TraceOwner {
  id: string
  teamId: string
  receivedAtMs: number
}

/** Claims trace ids that nobody holds. @returns those that were free. */
export async function claimTraces(tx: Sql, claims: readonly TraceOwner[]): Promise<ReadonlySet<string>> {
  const rows = await tx<{ id: string }[]>`
    insert into trace_owners (id, team_id, received_at)
    select r.id, r."teamId", to_timestamp(r."receivedAtMs" / 1000)
    from json_to_recordset(${JSON.stringify(claims)}::text::json)
      as r(id uuid, "teamId" uuid, "receivedAtMs" double precision)
    order by r.id
    on conflict do nothing
    returning id`
  return new Set(rows.map(row => row.id))
}

/**
 * Locks trace ids until the end of the transaction. A statement of its own after `claimTraces`: only a new snapshot
 * sees what a parallel transaction just committed.
 */
export async function lockTraceOwners(tx: Sql, ids: readonly string[]): Promise<TraceOwner[]> {
  return tx<TraceOwner[]>`
    select id, team_id, (extract(epoch from received_at) * 1000)::double precision as received_at_ms
    from trace_owners where id = any(${ids as string[]}::uuid[]) order by id for update`
}

/** A span and the key that it is stored under. */
export interface PlacedSpan {
  span: SpanWrite
  receivedAtMs: number
  position: number
  json: SpanJson
}

/** The JSON texts of a span's own JSON, printed once: they are both stored and read for the search. null: it has none. */
export type SpanJson = Readonly<Record<JsonField, string | null>>
type JsonField = 'attributes' | 'input' | 'output' | 'variables'

export interface SpanKey {
  traceId: string
  spanId: string
}

/** Of a span's row all but its key and its place: column, its value in a record of `spanRecords`. */
const spanFields: readonly [column: string, value: string][] = [
  ['parent_span_id', 'r."parentSpanId"'],
  ['name', 'r.name'],
  ['kind', 'r.kind'],
  ['status', 'r.status'],
  ['start_time', 'to_timestamp(r."startTimeMs" / 1000)::timestamptz(3)'],
  ['end_time', 'to_timestamp(r."endTimeMs" / 1000)::timestamptz(3)'],
  ['duration_ms', 'r."endTimeMs" - r."startTimeMs"'],
  ['model', 'r.model'],
  ['provider', 'r.provider'],
  ['prompt_tokens', 'r."promptTokens"'],
  ['completion_tokens', 'r."completionTokens"'],
  ['total_tokens', 'r."totalTokens"'],
  ['cost_nano', 'r."costNano"'],
  ['prompt_version_id', 'r."promptVersionId"'],
  ['error_type', 'r."errorType"'],
  ['error_code', 'r."errorCode"'],
  ['has_warning', 'r."hasWarning"'],
  ['attributes', 'r.attributes::jsonb'],
  ['input', 'r.input::jsonb'],
  ['output', 'r.output::jsonb'],
  ['variables', 'r.variables::jsonb'],
]
const columnList = spanFields.map(([column]) => column).join(', ')
const storedList = spanFields.map(([column]) => `s.${column}`).join(', ')
const valueList = spanFields.map(([, value]) => value).join(', ')

/**
 * The spans as records `r`. Their own JSON comes beside the records: inside of them PostgreSQL would read it twice, 24
 * instead of 18 µs a span.
 */
function spanRecords(tx: Sql, spans: readonly PlacedSpan[]): Fragment {
  const texts = (field: JsonField) =>
    tx`string_to_array(${spans.map(({ json }) => json[field] ?? '').join(SEPARATOR)}::text, ${SEPARATOR}::text, '')`
  return tx`rows from (
    unnest(${texts('attributes')}, ${texts('input')}, ${texts('output')}, ${texts('variables')}),
    json_to_recordset(${`[${spans.map(recordOf).join(',')}]`}::text::json) as (
      "teamId" uuid, "receivedAtMs" double precision, "traceId" uuid, "spanId" text, "parentSpanId" text, name text,
      kind text, status text, "startTimeMs" double precision, "endTimeMs" double precision, model text, provider text,
      "promptTokens" bigint, "completionTokens" bigint, "totalTokens" bigint, "costNano" bigint,
      "promptVersionId" uuid, "errorType" text, "errorCode" text, "hasWarning" boolean, position bigint)
    ) as r(attributes, input, output, variables)`
}

/** JSON text holds no control character but in an escape. */
const SEPARATOR = '\u001e'

/** What is null is left out: a tenth of the text that is made here, sent, and parsed there. */
function recordOf({ span, receivedAtMs, position }: PlacedSpan): string {
  return JSON.stringify({
    teamId: span.teamId,
    receivedAtMs,
    traceId: span.trace.id,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId ?? undefined,
    name: span.name,
    kind: span.kind,
    status: span.status,
    startTimeMs: span.startTimeMs,
    endTimeMs: span.endTimeMs ?? undefined,
    model: span.model ?? undefined,
    provider: span.provider ?? undefined,
    promptTokens: span.promptTokens ?? undefined,
    completionTokens: span.completionTokens ?? undefined,
    totalTokens: span.totalTokens ?? undefined,
    costNano: span.costNano ?? undefined,
    promptVersionId: span.promptVersionId ?? undefined,
    errorType: span.errorType ?? undefined,
    errorCode: span.errorCode ?? undefined,
    hasWarning: span.hasWarning,
    position,
  })
}

const isThatSpan = (tx: Sql): Fragment => tx`
  s.team_id = r."teamId" and s.trace_received_at = to_timestamp(r."receivedAtMs" / 1000)
  and s.trace_id = r."traceId" and s.span_id = r."spanId"`

const insertion = (tx: Sql, spans: readonly PlacedSpan[]): Fragment => tx`
  insert into spans (team_id, trace_received_at, trace_id, span_id, position, ${tx.unsafe(columnList)})
  select r."teamId", to_timestamp(r."receivedAtMs" / 1000), r."traceId", r."spanId", r.position,
    ${tx.unsafe(valueList)}
  from ${spanRecords(tx, spans)}`

/** Stores spans of which the caller, who holds their traces, knows that none is stored: 3 µs a span less. */
export async function insertSpans(tx: Sql, spans: readonly PlacedSpan[]): Promise<void> {
  await tx`${insertion(tx, spans)}`
}

/** Stores the spans that are not stored yet. The caller holds their traces. @returns those. */
export async function insertMissingSpans(tx: Sql, spans: readonly PlacedSpan[]): Promise<SpanKey[]> {
  return tx<SpanKey[]>`${insertion(tx, spans)} on conflict do nothing returning trace_id, span_id`
}

export interface HeldSpan extends RolledSpan {
  traceId: string
  spanId: string
}

/** Which of these spans are stored already, and what the sums know of them. The caller holds their traces. */
export async function listHeldSpans(tx: Sql, spans: readonly PlacedSpan[]): Promise<HeldSpan[]> {
  const keys = spans.map(({ span, receivedAtMs }) => ({
    teamId: span.teamId,
    receivedAtMs,
    traceId: span.trace.id,
    spanId: span.spanId,
  }))
  // One by one from the index. A join reads the whole of a new week, of which PostgreSQL has no statistics yet, for each
  // write: 30 µs a span at 50,000 spans, and growing.
  return tx<HeldSpan[]>`
    select ${rolledColumns(tx)}
    from json_to_recordset(${JSON.stringify(keys)}::text::json)
      as r("teamId" uuid, "receivedAtMs" double precision, "traceId" uuid, "spanId" text)
    cross join lateral (select * from spans s where ${isThatSpan(tx)} offset 0) s`
}

/** Of a row `s` of `spans`, what the sums are made of. */
export const rolledColumns = (sql: Sql): Fragment => sql`
  s.team_id, s.trace_id, s.span_id, s.kind, s.status, s.model, s.prompt_version_id,
  (extract(epoch from s.start_time) * 1000)::double precision as start_time_ms, s.duration_ms,
  s.prompt_tokens::double precision, s.completion_tokens::double precision, s.total_tokens::double precision,
  s.cost_nano::double precision`

/** Overwrites stored spans, all but their place. @returns those that were not the same already. */
export async function updateSpans(tx: Sql, spans: readonly PlacedSpan[]): Promise<SpanKey[]> {
  return tx<SpanKey[]>`
    update spans s set (${tx.unsafe(columnList)}) = row(${tx.unsafe(valueList)})
    from ${spanRecords(tx, spans)}
    where ${isThatSpan(tx)} and (${tx.unsafe(storedList)}) is distinct from (${tx.unsafe(valueList)})
    returning s.trace_id, s.span_id`
}
