import type { Sql } from '../../control-plane/db/sql.js'
import type { BillEntry } from '../support/fake-provider.js'

/** USD per million tokens that make fractions of nano-dollars: 137.5, 550.5 and 37.5 a token. */
export const FRACTIONAL = {
  inputPerMTok: 0.1375,
  outputPerMTok: 0.5505,
  cachedInputPerMTok: 0.0375,
  cacheWritePerMTok: null,
}

type Pricing = Pick<typeof FRACTIONAL, 'inputPerMTok' | 'outputPerMTok' | 'cachedInputPerMTok'>

/** What an answer costs, from the provider's own bill alone: whole nano-dollars. */
export function priceNano(bill: BillEntry, pricing: Pricing): number {
  const uncached = bill.promptTokens - bill.cachedTokens
  // In tenths of a nano-dollar every price is whole, so that only the last step rounds.
  const [input, cached, output] = [
    pricing.inputPerMTok,
    pricing.cachedInputPerMTok,
    pricing.outputPerMTok,
  ].map(usd => Math.round(usd * 10_000)) as [number, number, number]
  return Math.round((uncached * input + bill.cachedTokens * cached + bill.completionTokens * output) / 10)
}

/** A charge and the span of the same call. Two spans of one call would be two of these. */
export interface Entry {
  requestId: string
  virtualKeyId: string | null
  costNano: number
  estimated: boolean
  admittedAtMs: number
  recordedAtMs: number
  /** SeenCall's; null when the span is missing. */
  token: string | null
  spanCostNano: number | null
  status: string | null
  errorCode: string | null
  ledgerBypassed: boolean
}

export async function readEntries(sql: Sql): Promise<Entry[]> {
  const rows = await sql<Record<keyof Entry, string | boolean | null>[]>`
    select c.request_id, c.virtual_key_id, c.cost_nano, c.estimated,
      extract(epoch from c.admitted_at) * 1000 as admitted_at_ms,
      extract(epoch from c.recorded_at) * 1000 as recorded_at_ms,
      s.attributes -> 'metadata' ->> 'call' as token, s.cost_nano as span_cost_nano, s.status, s.error_code,
      coalesce((s.attributes ->> 'ledgerBypassed')::boolean, false) as ledger_bypassed
    from charges c left join spans s on s.team_id = c.team_id and s.span_id = c.request_id::text`
  return rows.map(
    row =>
      ({
        ...row,
        costNano: Number(row.costNano),
        admittedAtMs: Number(row.admittedAtMs),
        recordedAtMs: Number(row.recordedAtMs),
        spanCostNano: row.spanCostNano === null ? null : Number(row.spanCostNano),
      }) as Entry,
  )
}

export interface Totals {
  charges: number
  chargesNano: number
  spendByDayNano: number
  spendByDayRequests: number
  spans: number
  traces: number
  /** Traces whose rollup says something else than their spans. */
  wrongTraces: number
  spansWithoutTrace: number
  deadLetters: number
}

/** Every sum that has to agree, in one snapshot. */
export async function readTotals(sql: Sql): Promise<Totals> {
  const [row] = await sql<Record<keyof Totals, string>[]>`
    with rollup as (
      select trace_id, count(*) as span_count, count(*) filter (where status = 'error') as error_count,
        count(*) filter (where status = 'ok') as ok_count, sum(cost_nano) as cost_nano,
        coalesce(sum(total_tokens), 0) as total_tokens, min(start_time) as started_at, max(end_time) as ended_at
      from spans group by trace_id
    )
    select
      (select count(*) from charges) as charges,
      (select coalesce(sum(cost_nano), 0) from charges) as charges_nano,
      (select coalesce(sum(cost_nano), 0) from spend_by_day) as spend_by_day_nano,
      (select coalesce(sum(requests), 0) from spend_by_day) as spend_by_day_requests,
      (select count(*) from spans) as spans,
      (select count(*) from traces) as traces,
      (select count(*) from traces t left join rollup r on r.trace_id = t.id
        where (t.span_count, t.error_count, t.ok_count, t.total_tokens, t.started_at, t.ended_at)
            is distinct from (r.span_count, r.error_count, r.ok_count, r.total_tokens, r.started_at, r.ended_at)
          or t.total_cost_nano is distinct from r.cost_nano) as wrong_traces,
      (select count(*) from rollup r left join traces t on t.id = r.trace_id where t.id is null)
        as spans_without_trace,
      (select count(*) from dead_letters) as dead_letters`
  return Object.fromEntries(
    Object.entries(row ?? {}).map(([name, value]) => [name, Number(value)]),
  ) as unknown as Totals
}

export function grouped<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}
