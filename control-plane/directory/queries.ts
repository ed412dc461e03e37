import type { ProviderKind } from '../../shared/contract/common.js'
import type { ConnectionConfig } from '../../shared/contract/connections.js'
import type { BudgetRecord, CredentialRecord, ModelRecord } from '../../shared/directory/records.js'
import type { Sql } from '../db/sql.js'

/** What names a credential or a team; exactly one of the three is set. */
export type Subject =
  | { kind: 'key'; hash: string }
  | { kind: 'session'; hash: string }
  | { kind: 'team'; teamId: string }

export interface StoredConnection {
  id: string
  provider: ProviderKind
  config: ConnectionConfig
  sealedKey: string
}

export interface StoredTeam {
  capturePayloads: boolean
  redactKeys: string[]
  connections: StoredConnection[]
  models: ModelRecord[]
  budgets: BudgetRecord[]
}

export interface Snapshot {
  teamId: string
  epoch: number
  credential: CredentialRecord | null
  /** Null when the epoch is the known one. */
  team: StoredTeam | null
}

/** The team's record that a proxy holds. */
export interface KnownTeam {
  /** null: the credential's own. */
  teamId: string | null
  epoch: number
}

/**
 * A live credential, its team's epoch and, unless it is the known one, the team's whole configuration: one
 * statement and so one snapshot. Read apart, a credential of epoch 7 could be cached as one of epoch 8.
 *
 * A credential is found by its hash through a unique index, so nothing is compared byte by byte.
 *
 * @returns null: no live credential, or no such team.
 */
export async function readSnapshot(
  sql: Sql,
  subject: Subject,
  known: KnownTeam | null,
  now: Date,
): Promise<Snapshot | null> {
  const [row] = await sql<{ snapshot: Snapshot }[]>`
    with credential as (${credential(sql, subject, now)})
    select json_build_object(
      'teamId', t.id,
      'epoch', t.epoch,
      'credential', (select row_to_json(c) from credential c),
      'team', case when ${isKnown(sql, known)} then null else json_build_object(
        'capturePayloads', t.capture_payloads,
        'redactKeys', t.redact_keys,
        'connections', ${connections(sql)},
        'models', ${models(sql)},
        'budgets', ${budgets(sql)}) end) as snapshot
    from teams t
    where t.id = ${subject.kind === 'team' ? subject.teamId : sql`(select c."teamId" from credential c)`}`
  return row?.snapshot ?? null
}

const isKnown = (sql: Sql, known: KnownTeam | null) =>
  known === null
    ? sql`false`
    : sql`t.epoch = ${known.epoch}::bigint and t.id::text = coalesce(${known.teamId}::text, t.id::text)`

/** A CredentialRecord per row, its columns named as its fields. */
function credential(sql: Sql, subject: Subject, now: Date) {
  if (subject.kind === 'team') return sql`select 1 where false`
  const unlimited = sql`null::text[] as "allowedModels", null::text[] as "allowedProviders", null::int as "maxRpm",
    null::int as "maxTpm", null::int as "cacheTtlSeconds"`
  if (subject.kind === 'session') {
    return sql`
      select s.id, s.team_id as "teamId", 'session' as kind, s.user_id as "userId", m.role, ${unlimited}
      from sessions s join members m on m.team_id = s.team_id and m.user_id = s.user_id
      where s.token_hash = ${subject.hash} and s.expires_at > ${now}`
  }
  return sql`
    select k.id, k.team_id as "teamId", case when k.user_id is null then 'team_api_key' else 'api_key' end as kind,
      k.user_id as "userId", m.role, ${unlimited}
    from api_keys k left join members m on m.team_id = k.team_id and m.user_id = k.user_id
    where k.key_hash = ${subject.hash} and k.revoked_at is null and (k.user_id is null or m.role is not null)
    union all
    select v.id, v.team_id, 'virtual_key', null, null, v.allowed_models, v.allowed_providers, v.max_rpm, v.max_tpm,
      v.cache_ttl_seconds
    from virtual_keys v where v.key_hash = ${subject.hash} and v.revoked_at is null`
}

const connections = (sql: Sql) => sql`
  (select coalesce(json_agg(json_build_object(
      'id', c.id, 'provider', c.provider, 'config', c.config, 'sealedKey', c.sealed_key)), '[]')
    from connections c where c.team_id = t.id)`

const models = (sql: Sql) => sql`
  (select coalesce(json_agg(json_build_object(
      'id', m.id, 'publicName', m.public_name, 'connectionId', m.connection_id, 'upstreamModel', m.upstream_model,
      'pricing', case when m.input_per_mtok is null or m.output_per_mtok is null then null else json_build_object(
        'inputPerMTok', m.input_per_mtok, 'outputPerMTok', m.output_per_mtok,
        'cachedInputPerMTok', m.cached_input_per_mtok, 'cacheWritePerMTok', m.cache_write_per_mtok) end,
      'maxOutputTokens', m.max_output_tokens, 'contextWindow', m.context_window,
      'createdAtMs', (extract(epoch from m.created_at) * 1000)::bigint,
      'updatedAtMs', (extract(epoch from m.updated_at) * 1000)::bigint)
      order by m.created_at desc, m.id desc), '[]')
    from models m where m.team_id = t.id)`

/** Nano-dollars are computed in numeric, so that a cap is exact: 9,000,000 USD is 9e15, below 2^53. */
const budgets = (sql: Sql) => sql`
  (select coalesce(json_agg(json_build_object(
      'id', b.id, 'virtualKeyId', b.virtual_key_id, 'period', b.period,
      'capNano', (b.limit_usd * 1000000000)::bigint)
      order by b.virtual_key_id is not null, b.id), '[]')
    from budgets b where b.team_id = t.id)`
