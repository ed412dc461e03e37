import { hash } from 'node:crypto'
import { type TraceFilters, traceFilters } from '../../shared/contract/traces.js'
import { nanoFromUsd } from '../../shared/money/nano.js'
import type { Sql } from '../db/sql.js'
import type { Range } from './hour-parts.js'
import type { Fragment } from './queries.js'
import { textSearch } from './search-queries.js'
import { type Dimension, MAX_FACET_VALUE, metadataTerm, termOf } from './trace-facets.js'

/** `metadata[key]=value` pairs of a query string (spec 2, GET /traces); a repeated key has to hold every value. */
export function metadataPairs(query: Readonly<Record<string, unknown>>): [string, string][] {
  return Object.entries(query).flatMap(([name, value]) => {
    const key = /^metadata\[(.+)\]$/s.exec(name)?.[1]
    if (key === undefined) return []
    const values = Array.isArray(value) ? value : [value]
    return values.map((text): [string, string] => [key, String(text)])
  })
}

/** Parts of a window of the server's receipt. @param clock the column that is compared. */
export function receivedWithin(sql: Sql, clock: Fragment, ranges: readonly Range[]): Fragment {
  const parts = ranges.map(
    ({ fromMs, toMs }) => sql`(${clock} >= ${new Date(fromMs)} and ${clock} < ${new Date(toMs)})`,
  )
  return sql`(${parts.reduce((some, part) => sql`${some} or ${part}`)})`
}

/**
 * The filters of spec 2 as conditions on a row `t` of `traces`, the window apart; also for the feedback feed, whose
 * window is another one. Filters on spans read the distinct values that ingestion keeps on the trace, so each trace
 * matches once.
 */
export function traceConditions(
  sql: Sql,
  teamId: string,
  filters: TraceFilters,
  metadata: readonly [string, string][],
  versionIds: readonly string[],
): Fragment[] {
  const text = textSearch(sql, filters)
  const judged = judgedTraces(sql, teamId, filters).map(keys => isAmong(sql, keys))
  const conditions = [...rowConditions(sql, teamId, filters, metadata, versionIds), ...judged]
  return text === null ? conditions : [...conditions, text.condition]
}

/**
 * The same without what is not in the row: the text search, scores and ratings.
 *
 * @param versionIds of `prompt_id`: with them an index finds their traces.
 */
export function rowConditions(
  sql: Sql,
  teamId: string,
  filters: TraceFilters,
  metadata: readonly [string, string][],
  versionIds: readonly string[],
): Fragment[] {
  const conditions: Fragment[] = []
  const where = <V>(value: V | undefined, condition: (value: V) => Fragment) => {
    if (value !== undefined) conditions.push(condition(value))
  }
  // A status is written out, not bound: only then is the partial index on errors of use to a prepared statement.
  if (filters.status === 'error') conditions.push(sql`t.status = 'error'`)
  else where(filters.status, status => sql`t.status = ${status}`)
  where(filters.session_id, session => sql`t.session_id = ${session}`)
  where(filters.model, model => beside(sql, sql`t.models @> array[${model}]::text[]`))
  where(filters.prompt_version_id, id =>
    beside(sql, sql`t.prompt_version_ids @> array[${id.toLowerCase()}]::text[]`),
  )
  where(
    filters.prompt_id,
    () => sql`${beside(sql, sql`t.prompt_version_ids && ${versionIds as string[]}::text[]`)}
      and t.terms && ${termArray(
        sql,
        versionIds.map(id => termOf(teamId, 'prompt_version', id)),
      )}`,
  )
  where(filters.error_type, type => beside(sql, sql`t.error_types @> array[${type}]::text[]`))
  where(filters.error_code, code => beside(sql, sql`t.error_codes @> array[${code}]::text[]`))
  where(filters.tags, tags => beside(sql, sql`t.tags @> ${tags}::text[]`))
  where(filters.min_latency_ms, least => sql`t.duration_ms >= ${least}`)
  where(filters.min_cost_usd, least => sql`t.total_cost_nano >= ${nanoText(least)}::text::bigint`)
  where(filters.min_tokens, least => sql`t.total_tokens >= ${least}::bigint`)
  where(filters.has_warning, wanted => (wanted ? sql`t.warning_count > 0` : sql`t.warning_count = 0`))
  for (const [key, value] of metadata) conditions.push(beside(sql, holdsPair(sql, key, value)))
  return [...conditions, ...termConditions(sql, teamId, filters, metadata)]
}

/**
 * A condition that stands beside a term which says the same. PostgreSQL would take the two for independent, expect a
 * hundredth where a tenth is, and read them all instead of the first page; of a `case` it expects half.
 */
const beside = (sql: Sql, condition: Fragment): Fragment =>
  sql`case when ${condition} then true else false end`

/** To the nano-dollar: 0.000000003 USD is exactly 3. Kept within bigint. */
const nanoText = (usd: number): string => String(Math.min(Math.max(nanoFromUsd(usd), -9e18), 9e18))

/** What the index on `traces.terms` narrows down; the conditions on the columns themselves stand beside it. */
function termConditions(
  sql: Sql,
  teamId: string,
  filters: TraceFilters,
  metadata: readonly [string, string][],
): Fragment[] {
  const all = [
    ...[filters.model].flatMap(model => (model === undefined ? [] : termOf(teamId, 'model', model))),
    ...(filters.tags ?? []).map(tag => termOf(teamId, 'tag', tag)),
    ...[filters.error_type].flatMap(type => (type === undefined ? [] : termOf(teamId, 'error_type', type))),
    ...[filters.error_code].flatMap(code => (code === undefined ? [] : termOf(teamId, 'error_code', code))),
    ...[filters.prompt_version_id].flatMap(id =>
      id === undefined ? [] : termOf(teamId, 'prompt_version', id.toLowerCase()),
    ),
  ]
  const conditions = all.length === 0 ? [] : [sql`t.terms @> ${termArray(sql, all)}`]
  for (const [key, value] of metadata) {
    // 5.0 is the number 5.
    const texts = typedForms.test(value) ? [value, String(JSON.parse(value))] : [value]
    conditions.push(
      sql`t.terms && ${termArray(
        sql,
        texts.map(text => metadataTerm(teamId, key, text)),
      )}`,
    )
  }
  return conditions
}

const termArray = (sql: Sql, terms: readonly number[]) => sql`${`{${terms.join(',')}}`}::text::bigint[]`

/** Keys (received_at, trace_id) of traces. @param window on `trace_received_at`: of others it may leave out the keys. */
export type TraceKeys = (window: Fragment) => Fragment

/** The traces with a score within its bounds, and those with such a rating (spec 4, section 7); each when it is given. */
export function judgedTraces(sql: Sql, teamId: string, filters: TraceFilters): TraceKeys[] {
  const { min_score, max_score, min_rating, max_rating } = filters
  const between = (column: Fragment, least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY) =>
    sql`${column} >= ${least}::double precision and ${column} <= ${most}::double precision`
  const keys = sql`select distinct trace_received_at as received_at, trace_id`
  const judged: TraceKeys[] = []
  if (min_rating !== undefined || max_rating !== undefined) {
    const condition = between(sql`rating`, min_rating, max_rating)
    judged.push(window => sql`${keys} from feedback where team_id = ${teamId} and ${window} and ${condition}`)
  }
  if (min_score !== undefined || max_score !== undefined) {
    const condition = between(sql`score`, min_score, max_score)
    judged.push(
      window => sql`${keys} from trace_scores where team_id = ${teamId} and ${window} and ${condition}`,
    )
  }
  return judged
}

/** Whether a trace `t` is one of them. */
export const isAmong = (sql: Sql, keys: TraceKeys): Fragment =>
  sql`(t.received_at, t.id) in (select judged.received_at, judged.trace_id from (${keys(sql`true`)}) judged)`

const typedForms = /^(true|false|null|-?(0|[1-9]\d{0,30})(\.\d{1,30})?)$/

/** A query string has no types: `5` finds the number and the text, `true` the boolean and the text. */
function holdsPair(sql: Sql, key: string, value: string): Fragment {
  const asText = sql`t.metadata @> jsonb_build_object(${key}::text, ${value}::text)`
  if (!typedForms.test(value)) return asText
  return sql`(${asText} or t.metadata @> jsonb_build_object(${key}::text, ${value}::text::jsonb))`
}

/** Every filter but the window and the text search; a query has other members than these. */
const narrowing = (Object.keys(traceFilters.shape) as (keyof TraceFilters)[]).filter(
  name => !['from', 'to', 'q', 'q_in'].includes(name),
)

/** Counts of `trace_facets` that add up to how many traces pass; null when they have to be counted one by one. */
export function facetsOf(
  filters: TraceFilters,
  metadata: readonly [string, string][],
): { facet: readonly [Dimension, string]; sign: 1 | -1 }[] | null {
  const given = narrowing.filter(name => filters[name] !== undefined)
  if (metadata.length > 0 || (filters.q ?? '').trim() !== '' || given.length > 1) return null
  const counted = (dimension: Dimension, value: string) =>
    value.length > MAX_FACET_VALUE ? null : [{ facet: [dimension, value] as const, sign: 1 as const }]
  const all = { facet: ['all', ''] as const, sign: 1 as const }
  if (given.length === 0) return [all]
  if (filters.status !== undefined) return counted('status', filters.status)
  if (filters.model !== undefined) return counted('model', filters.model)
  if (filters.error_type !== undefined) return counted('error_type', filters.error_type)
  if (filters.error_code !== undefined) return counted('error_code', filters.error_code)
  if (filters.tags?.length === 1) return counted('tag', filters.tags[0]!)
  const version = filters.prompt_version_id
  if (version !== undefined) return counted('prompt_version', version.toLowerCase())
  if (filters.prompt_id !== undefined) return counted('prompt', filters.prompt_id.toLowerCase())
  if (filters.has_warning === true) return counted('warning', 'true')
  if (filters.has_warning === false) return [all, { facet: ['warning', 'true'], sign: -1 }]
  return null
}

/**
 * A name for what a team asks, the window of receipt apart: the same of two questions means the same answer, as long as no
 * trace changes. Null: an answer may change without that, since writes of scores tell no trace's day.
 *
 * @param asked whatever else the answer depends on.
 */
export function questionName(
  teamId: string,
  filters: TraceFilters,
  asked: { metadata: readonly [string, string][]; versionIds: readonly string[]; [more: string]: unknown },
): string | null {
  if (filters.min_score !== undefined || filters.max_score !== undefined) return null
  const given = [...narrowing, 'q' as const, 'q_in' as const].map(name => filters[name])
  return hash('sha1', JSON.stringify([teamId, given, asked]), 'base64')
}
