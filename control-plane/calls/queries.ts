import type { ChargeRecord } from '../../shared/spool/record.js'
import type { Sql } from '../db/sql.js'
import type { DeadLetter } from './read-batch.js'

/** The teams of a batch that exist, with the keys that they hide. */
export async function findIngestTeams(
  sql: Sql,
  teamIds: readonly string[],
): Promise<{ id: string; redactKeys: string[] }[]> {
  return sql<{ id: string; redactKeys: string[] }[]>`
    select id, redact_keys from teams where id = any(${teamIds as string[]}::uuid[])`
}

/**
 * Stores the charges that are not stored yet. The primary key is what makes a charge count once.
 *
 * @returns those that were new.
 */
export async function insertCharges(
  tx: Sql,
  charges: readonly ChargeRecord[],
): Promise<{ teamId: string; requestId: string }[]> {
  const rows = charges.map(({ tokens, ...charge }) => ({ ...charge, ...tokens }))
  return tx<{ teamId: string; requestId: string }[]>`
    insert into charges (
      team_id, request_id, virtual_key_id, admitted_at, provider, model, upstream_model, prompt_version_id,
      input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_nano, priced, estimated, cached)
    select
      r."teamId", r."requestId", r."virtualKeyId", to_timestamp(r."admittedAtMs" / 1000), r.provider, r.model,
      r."upstreamModel", r."promptVersionId", r.input, r."cacheRead", r."cacheWrite", r.output, r."costNano",
      r.priced, r.estimated, r.cached
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as r(
      "teamId" uuid, "requestId" uuid, "virtualKeyId" uuid, "admittedAtMs" double precision, provider text, model text,
      "upstreamModel" text, "promptVersionId" uuid, input integer, "cacheRead" integer, "cacheWrite" integer,
      output integer, "costNano" bigint, priced boolean, estimated boolean, cached boolean)
    -- The order that keeps parallel batches with the same charges from deadlocking.
    order by r."teamId", r."requestId"
    on conflict do nothing
    returning team_id, request_id`
}

export interface DailySpend {
  teamId: string
  /** The nil UUID for calls made without a virtual key. */
  virtualKeyId: string
  /** YYYY-MM-DD, UTC. */
  day: string
  costNano: number
  requests: number
}

/** Adds to the days' spend. Sorted, so that parallel batches take the rows in one order. */
export async function addDailySpend(tx: Sql, spend: readonly DailySpend[]): Promise<void> {
  await tx`
    insert into spend_by_day as s (team_id, virtual_key_id, day, cost_nano, requests)
    select r."teamId", r."virtualKeyId", r.day, r."costNano", r.requests
    from json_to_recordset(${JSON.stringify(spend)}::text::json) as r(
      "teamId" uuid, "virtualKeyId" uuid, day date, "costNano" bigint, requests bigint)
    order by r."teamId", r.day, r."virtualKeyId"
    on conflict (team_id, day, virtual_key_id) do update set
      cost_nano = s.cost_nano + excluded.cost_nano, requests = s.requests + excluded.requests`
}

export async function insertDeadLetters(tx: Sql, letters: readonly DeadLetter[]): Promise<void> {
  await tx`
    insert into dead_letters (reason, record)
    select r.reason, r.record
    from json_to_recordset(${JSON.stringify(letters)}::text::json) as r(reason text, record text)`
}
