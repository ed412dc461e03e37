import type { Sql } from '../db/sql.js'
import type { SpanWrite } from './span-write.js'
import type { TraceDelta } from './trace-delta.js'

/**
 * What ingestion writes, a set at a time: each statement takes its rows as one JSON text, which costs one parameter
 * and one parse whatever the number of rows. Instants travel as epoch milliseconds. The `order by` of each insert is
 * what keeps parallel batches from deadlocking.
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

/** A statement of its own after `claimTraces`: only a new snapshot sees what a parallel transaction just committed. */
export async function findTraceOwners(tx: Sql, ids: readonly string[]): Promise<TraceOwner[]> {
  return tx<TraceOwner[]>`
    select id, team_id, (extract(epoch from received_at) * 1000)::double precision as received_at_ms
    from trace_owners where id = any(${ids as string[]}::uuid[])`
}

export interface PlacedSpan {
  span: SpanWrite
  receivedAtMs: number
  position: number
}

/** Stores the spans that are not stored yet. @returns those. */
export async function insertSpans(
  tx: Sql,
  spans: readonly PlacedSpan[],
): Promise<{ traceId: string; spanId: string }[]> {
  const rows = spans.map(({ span, receivedAtMs, position }) => {
    const { trace, ...columns } = span
    return { ...columns, traceId: trace.id, receivedAtMs, position }
  })
  return tx<{ traceId: string; spanId: string }[]>`
    insert into spans (
      team_id, trace_received_at, trace_id, span_id, parent_span_id, name, kind, status, start_time, end_time,
      duration_ms, model, provider, prompt_tokens, completion_tokens, total_tokens, cost_nano, prompt_version_id,
      error_type, error_code, has_warning, attributes, input, output, variables, position)
    select
      r."teamId", to_timestamp(r."receivedAtMs" / 1000), r."traceId", r."spanId", r."parentSpanId", r.name, r.kind,
      r.status, to_timestamp(r."startTimeMs" / 1000), to_timestamp(r."endTimeMs" / 1000),
      r."endTimeMs" - r."startTimeMs", r.model, r.provider, r."promptTokens", r."completionTokens", r."totalTokens",
      r."costNano", r."promptVersionId", r."errorType", r."errorCode", r."hasWarning", r.attributes, r.input,
      r.output, r.variables, r.position
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as r(
      "teamId" uuid, "receivedAtMs" double precision, "traceId" uuid, "spanId" text, "parentSpanId" text, name text,
      kind text, status text, "startTimeMs" double precision, "endTimeMs" double precision, model text, provider text,
      "promptTokens" bigint, "completionTokens" bigint, "totalTokens" bigint, "costNano" bigint,
      "promptVersionId" uuid, "errorType" text, "errorCode" text, "hasWarning" boolean, attributes jsonb, input jsonb,
      output jsonb, variables jsonb, position bigint)
    order by 1, 2, 3, 4
    on conflict do nothing
    returning trace_id, span_id`
}

/** Adds new spans to their traces' rows, or makes the rows. The same rules as `traceDelta`. */
export async function upsertTraces(tx: Sql, deltas: readonly TraceDelta[]): Promise<void> {
  await tx`
    insert into traces as t (
      team_id, received_at, id, name, name_source, name_at, session_id, session_at, metadata, metadata_at, status,
      started_at, ended_at, duration_ms, span_count, error_count, ok_count, warning_count, total_cost_nano,
      prompt_tokens, completion_tokens, total_tokens, tags, models, providers, error_types, error_codes,
      prompt_version_ids)
    select
      r."teamId", to_timestamp(r."receivedAtMs" / 1000), r.id, r.name, r."nameSource",
      to_timestamp(r."nameAtMs" / 1000), r."sessionId", to_timestamp(r."sessionAtMs" / 1000), r.metadata,
      to_timestamp(r."metadataAtMs" / 1000),
      case when r."errorCount" > 0 then 'error' when r."okCount" > 0 then 'ok' else 'unset' end,
      to_timestamp(r."startedAtMs" / 1000), to_timestamp(r."endedAtMs" / 1000), r."endedAtMs" - r."startedAtMs",
      r."spanCount", r."errorCount", r."okCount", r."warningCount", r."totalCostNano", r."promptTokens",
      r."completionTokens", r."totalTokens", r.tags, r.models, r.providers, r."errorTypes", r."errorCodes",
      r."promptVersionIds"
    from json_to_recordset(${JSON.stringify(deltas)}::text::json) as r(
      "teamId" uuid, "receivedAtMs" double precision, id uuid, name text, "nameSource" text,
      "nameAtMs" double precision, "sessionId" text, "sessionAtMs" double precision, metadata jsonb,
      "metadataAtMs" double precision, "startedAtMs" double precision, "endedAtMs" double precision,
      "spanCount" bigint, "errorCount" bigint, "okCount" bigint, "warningCount" bigint, "totalCostNano" bigint,
      "promptTokens" bigint, "completionTokens" bigint, "totalTokens" bigint, tags text[], models text[],
      providers text[], "errorTypes" text[], "errorCodes" text[], "promptVersionIds" text[])
    order by 1, 2, 3
    on conflict (team_id, received_at, id) do update set
      name = case when trace_name_wins(excluded.name_source, excluded.name_at, t.name_source, t.name_at)
        then excluded.name else t.name end,
      name_source = case when trace_name_wins(excluded.name_source, excluded.name_at, t.name_source, t.name_at)
        then excluded.name_source else t.name_source end,
      name_at = case when trace_name_wins(excluded.name_source, excluded.name_at, t.name_source, t.name_at)
        then excluded.name_at else t.name_at end,
      session_id = case when excluded.session_at >= coalesce(t.session_at, excluded.session_at)
        then excluded.session_id else t.session_id end,
      session_at = greatest(t.session_at, excluded.session_at),
      -- Kept as it is once it has grown to 64 KB: one endless trace must not grow without bound.
      metadata = case
        when excluded.metadata_at is null or octet_length(t.metadata::text) > 65536 then t.metadata
        when excluded.metadata_at >= coalesce(t.metadata_at, excluded.metadata_at) then t.metadata || excluded.metadata
        else excluded.metadata || t.metadata end,
      metadata_at = greatest(t.metadata_at, excluded.metadata_at),
      status = case when t.error_count + excluded.error_count > 0 then 'error'
        when t.ok_count + excluded.ok_count > 0 then 'ok' else 'unset' end,
      started_at = least(t.started_at, excluded.started_at),
      ended_at = greatest(t.ended_at, excluded.ended_at),
      duration_ms = extract(epoch from
        greatest(t.ended_at, excluded.ended_at) - least(t.started_at, excluded.started_at)) * 1000,
      span_count = t.span_count + excluded.span_count,
      error_count = t.error_count + excluded.error_count,
      ok_count = t.ok_count + excluded.ok_count,
      warning_count = t.warning_count + excluded.warning_count,
      total_cost_nano = case when t.total_cost_nano is null then excluded.total_cost_nano
        else t.total_cost_nano + coalesce(excluded.total_cost_nano, 0) end,
      prompt_tokens = t.prompt_tokens + excluded.prompt_tokens,
      completion_tokens = t.completion_tokens + excluded.completion_tokens,
      total_tokens = t.total_tokens + excluded.total_tokens,
      tags = merge_distinct(t.tags, excluded.tags),
      models = merge_distinct(t.models, excluded.models),
      providers = merge_distinct(t.providers, excluded.providers),
      error_types = merge_distinct(t.error_types, excluded.error_types),
      error_codes = merge_distinct(t.error_codes, excluded.error_codes),
      prompt_version_ids = merge_distinct(t.prompt_version_ids, excluded.prompt_version_ids)`
}
