import type { TraceFilters } from '../../shared/contract/traces.js'
import type { Sql } from '../db/sql.js'
import { defaultName, type Fragment, hasSpan } from './queries.js'

const DEFAULT_WINDOW_MS = 30 * 86_400_000

/** `metadata[key]=value` pairs of a query string (spec 2, GET /traces); a repeated key has to hold every value. */
export function metadataPairs(query: Readonly<Record<string, unknown>>): [string, string][] {
  return Object.entries(query).flatMap(([name, value]) => {
    const key = /^metadata\[(.+)\]$/s.exec(name)?.[1]
    if (key === undefined) return []
    const values = Array.isArray(value) ? value : [value]
    return values.map((text): [string, string] => [key, String(text)])
  })
}

/** GET /traces looks at the last 30 days, of the server's receipt, unless told otherwise; both ends are inclusive. */
export function receiptWindow(sql: Sql, filters: TraceFilters, nowMs: number): Fragment[] {
  const fromMs = filters.from ?? (filters.to ?? nowMs) - DEFAULT_WINDOW_MS
  const conditions = [sql`t.received_at >= ${new Date(fromMs)}`]
  if (filters.to !== undefined) conditions.push(sql`t.received_at <= ${new Date(filters.to)}`)
  return conditions
}

/**
 * The filters of spec 2 as conditions on a row `t` of `traces`, the window apart; also for the feedback feed, whose
 * window is another one. Filters on spans read the distinct values that ingestion keeps on the trace, so each trace
 * matches once.
 */
export function traceConditions(
  sql: Sql,
  filters: TraceFilters,
  metadata: readonly [string, string][],
): Fragment[] {
  const conditions: Fragment[] = []
  const where = <V>(value: V | undefined, condition: (value: V) => Fragment) => {
    if (value !== undefined) conditions.push(condition(value))
  }
  // A status is written out, not bound: only then is the partial index on errors of use to a prepared statement.
  if (filters.status === 'error') conditions.push(sql`t.status = 'error'`)
  else where(filters.status, status => sql`t.status = ${status}`)
  where(filters.session_id, session => sql`t.session_id = ${session}`)
  where(filters.model, model => sql`t.models @> array[${model}]::text[]`)
  where(filters.prompt_version_id, id => sql`t.prompt_version_ids @> array[${id.toLowerCase()}]::text[]`)
  where(filters.error_type, type => sql`t.error_types @> array[${type}]::text[]`)
  where(filters.error_code, code => sql`t.error_codes @> array[${code}]::text[]`)
  where(filters.tags, tags => sql`t.tags @> ${tags}::text[]`)
  where(filters.min_latency_ms, least => sql`t.duration_ms >= ${least}`)
  // To the nano-dollar: 0.000000003 USD is exactly 3.
  where(filters.min_cost_usd, least => sql`t.total_cost_nano >= round(${least}::text::numeric * 1000000000)`)
  where(filters.min_tokens, least => sql`t.total_tokens >= ${least}::bigint`)
  where(filters.has_warning, wanted => (wanted ? sql`t.warning_count > 0` : sql`t.warning_count = 0`))
  for (const [key, value] of metadata) conditions.push(holdsPair(sql, key, value))
  if (filters.q !== undefined && filters.q.trim() !== '') {
    conditions.push(holdsText(sql, filters.q.trim(), filters.q_in))
  }
  return conditions
}

/** A query string has no types: `5` finds the number and the text, `true` the boolean and the text. */
function holdsPair(sql: Sql, key: string, value: string): Fragment {
  const asText = sql`t.metadata @> jsonb_build_object(${key}::text, ${value}::text)`
  if (!/^(true|false|null|-?(0|[1-9]\d{0,30})(\.\d{1,30})?)$/.test(value)) return asText
  return sql`(${asText} or t.metadata @> jsonb_build_object(${key}::text, ${value}::text::jsonb))`
}

/** Case-insensitive substring over the names, the attributes and the captured payload (spec 2, `q` and `q_in`). */
function holdsText(sql: Sql, text: string, where: TraceFilters['q_in']): Fragment {
  const plain = likePattern(text)
  // As jsonb prints it: quotes, backslashes and control characters escaped.
  const inJson = likePattern(JSON.stringify(text).slice(1, -1))
  const name = sql`coalesce(t.name, ${defaultName(sql)}) ilike ${plain}`
  const inSpan = {
    name: sql`s.name ilike ${plain}`,
    input: sql`s.input::text ilike ${inJson}`,
    output: sql`s.output::text ilike ${inJson}`,
  }
  if (where === 'input' || where === 'output') return hasSpan(sql, inSpan[where])
  if (where === 'name') return sql`(${name} or ${hasSpan(sql, inSpan.name)})`
  const anywhere = sql`(${inSpan.name} or s.attributes::text ilike ${inJson} or ${inSpan.input} or ${inSpan.output})`
  return sql`(${name} or ${hasSpan(sql, anywhere)})`
}

/** `%`, `_` and `\` in a search are ordinary characters. */
const likePattern = (text: string): string => `%${text.replace(/[\\%_]/g, character => `\\${character}`)}%`
