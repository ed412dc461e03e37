import type { Sql } from '../db/sql.js'
import { receiptWindow } from './filter-queries.js'
import type { HourParts, Range } from './hour-parts.js'
import { type Fragment, type StoredTrace, traceColumns } from './queries.js'
import type { TextSearch } from './search-queries.js'
import type { Dimension } from './trace-facets.js'

/** What a list of traces is asked for. */
export interface TraceQuestion {
  teamId: string
  /** Epoch milliseconds, of receipt, both inclusive. */
  bounds: { fromMs: number; toMs: number }
  /** On a row `t` of `traces`, the text search apart. */
  conditions: readonly Fragment[]
  search: TextSearch | null
  /** Keys (received_at, trace_id) of traces among which those are that are asked for, where few are. */
  among: Fragment | null
}

// Traces of one write share a receipt time; among them the one that started last is the newest.
const newestFirst = (sql: Sql) => sql`t.received_at desc, t.started_at desc, t.id desc`

/**
 * One page of a team's traces, newest first. Reading stops with the page. The page is found by its keys alone, which an
 * index can do without the rows, and only its own rows are read.
 */
export async function listTraceRows(
  sql: Sql,
  question: TraceQuestion,
  page: { limit: number; offset: number },
): Promise<StoredTrace[]> {
  const { search } = question
  const keys = sql`t.team_id, t.received_at, t.started_at, t.id`
  // Sorted before the texts are compared, so that comparing stops with the page too; `offset 0` keeps it in that order.
  const source =
    search === null
      ? candidates(sql, question)
      : sql`(select t.* from ${candidates(sql, question)} order by ${newestFirst(sql)} offset 0) t
          where ${textCondition(search, question)}`
  return sql<StoredTrace[]>`
    select ${traceColumns(sql)} from (
      select ${keys} from ${source} order by ${newestFirst(sql)} limit ${page.limit} offset ${page.offset}
    ) page
    join traces t using (team_id, received_at, started_at, id)
    order by ${newestFirst(sql)}`
}

/** How many there are on all pages. @param most counting stops there. */
export async function countTraces(sql: Sql, question: TraceQuestion, most?: number): Promise<number> {
  const { search } = question
  const limit = most === undefined ? sql`` : sql`limit ${most}`
  const matching =
    search === null
      ? sql`select from ${candidates(sql, question)} ${limit}`
      : sql`select from ${candidates(sql, question)} and ${textCondition(search, question)} ${limit}`
  const [row] = await sql<{ total: number }[]>`
    select count(*)::double precision as total from (${matching}) matching`
  return row?.total ?? 0
}

const matches = (
  sql: Sql,
  { teamId, bounds, conditions }: Pick<TraceQuestion, 'teamId' | 'bounds' | 'conditions'>,
): Fragment =>
  conditions.reduce(
    (all, condition) => sql`${all} and ${condition}`,
    sql`t.team_id = ${teamId} and ${receiptWindow(sql, sql`t.received_at`, bounds)}`,
  )

/** The traces `t` that meet every condition but the text search, and may meet that. */
function candidates(sql: Sql, question: TraceQuestion): Fragment {
  const { teamId, bounds, search, among } = question
  if (among !== null) {
    // One look-up each, in the one partition that has it; `offset 0` keeps PostgreSQL from reading all traces instead.
    return sql`(${among}) found cross join lateral (
        select * from traces t where t.team_id = ${teamId} and t.received_at = found.received_at
          and t.id = found.trace_id offset 0
      ) t where ${matches(sql, question)}`
  }
  if (search === null || search.mayHold === null) return sql`traces t where ${matches(sql, question)}`
  return sql`(
      select distinct g.received_at, g.trace_id from trace_signatures g
      where g.team_id = ${teamId} and ${receiptWindow(sql, sql`g.received_at`, bounds)} and ${search.mayHold}
    ) found
    join traces t on t.received_at = found.received_at and t.id = found.trace_id
    where ${matches(sql, question)}`
}

/** `candidates` meet `mayHold` already, unless they were found in another way. */
const textCondition = (search: TextSearch, { among }: TraceQuestion) =>
  among === null ? search.holds : search.condition

/**
 * The same count from the counts that ingestion keeps, for questions that one of them answers: some hundred rows
 * whatever the number of traces.
 *
 * @param facets signed, to be added up. @param parts of the window.
 */
export async function countByFacets(
  sql: Sql,
  { teamId, conditions }: TraceQuestion,
  facets: readonly { facet: readonly [Dimension, string]; sign: 1 | -1 }[],
  parts: HourParts,
): Promise<number> {
  const counts = facets.map(({ facet: [dimension, value], sign }) => {
    const counted = sql`team_id = ${teamId} and dimension = ${dimension} and value = ${value}`
    const sum = sign === 1 ? sql`sum(traces)` : sql`-sum(traces)`
    const within = (range: Range) => sql`at >= ${new Date(range.fromMs)} and at < ${new Date(range.toMs)}`
    return sql`
      select ${sum} as traces from trace_facets where ${counted} and grain = 'day' and ${within(parts.days)}
      union all
      select ${sum} from trace_facets
      where ${counted} and grain = 'hour' and (${within(parts.hours[0]!)} or ${within(parts.hours[1]!)})
      union all
      select ${sum} from trace_facet_deltas where ${counted} and ${within(parts.whole)}`
  })
  const read = (range: Range) => {
    const bounds = { fromMs: range.fromMs, toMs: range.toMs - 1 }
    return sql`(select count(*) from traces t where ${matches(sql, { teamId, bounds, conditions })})`
  }
  const [row] = await sql<{ total: number }[]>`
    select (coalesce(sum(traces), 0) + ${read(parts.added)} - ${read(parts.removed)})::double precision as total
    from (${counts.reduce((all, count) => sql`${all} union all ${count}`)}) counts`
  return row?.total ?? 0
}

/** The versions of a prompt, also of a deleted one. */
export async function listVersionIds(sql: Sql, teamId: string, promptId: string): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from prompt_versions where team_id = ${teamId} and prompt_id = ${promptId}`
  return rows.map(row => row.id)
}
