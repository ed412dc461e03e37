import type { Sql } from '../db/sql.js'
import type { TracePlace } from './day-counts.js'
import { receivedWithin, type TraceKeys } from './filter-queries.js'
import type { Range } from './hour-parts.js'
import { type Fragment, type StoredTrace, traceColumns } from './queries.js'
import type { TextSearch } from './search-queries.js'

/** What a list of traces is asked for. */
export interface TraceQuestion {
  teamId: string
  /** On a row `t` of `traces`, the window and the text search apart. */
  conditions: readonly Fragment[]
  search: TextSearch | null
  /** Traces among which those are that are asked for, where few are. */
  among: TraceKeys | null
}

export interface Page {
  limit: number
  offset: number
}

/**
 * One page of a team's traces that were received within some ranges, newest first. Reading stops with the page. The page
 * is found by its keys alone, which an index can do without the rows, and only its own rows are read.
 */
export async function listTraceRows(
  sql: Sql,
  question: TraceQuestion,
  ranges: readonly Range[],
  page: Page,
): Promise<StoredTrace[]> {
  const keys = sql`t.team_id, t.received_at, t.started_at, t.id`
  const latest = latestFirst(sql)
  const { source, receivedAt } = matchingTraces(sql, question, ranges, sql`, ${latest}`)
  return sql<StoredTrace[]>`
    select ${traceColumns(sql)} from (
      select ${keys} from ${source} order by ${receivedAt} desc, ${latest} limit ${page.limit} offset ${page.offset}
    ) page
    join traces t using (team_id, received_at, started_at, id)
    order by t.received_at desc, ${latest}`
}

/** Traces of one write share a receipt time; among them the one that started last is the newest. */
export const latestFirst = (sql: Sql): Fragment => sql`t.started_at desc, t.id desc`

/** Traces of a team by their keys, newest first. */
export async function listTraceRowsAt(
  sql: Sql,
  teamId: string,
  places: readonly TracePlace[],
): Promise<StoredTrace[]> {
  return sql<StoredTrace[]>`
    select ${traceColumns(sql)}
    from json_to_recordset(${JSON.stringify(places)}::text::json) as r("receivedAtMs" double precision, id uuid)
    cross join lateral (
      select * from traces t
      where t.team_id = ${teamId} and t.received_at = to_timestamp(r."receivedAtMs" / 1000) and t.id = r.id offset 0
    ) t
    order by t.received_at desc, ${latestFirst(sql)}`
}

interface Traces {
  /** Rows `t`. */
  source: Fragment
  /** Their receipt, in the column that they come in the order of, where they come in one. */
  receivedAt: Fragment
}

/**
 * The traces that meet every condition. Before texts are compared they are brought in order, so that whoever stops early
 * stops comparing too; `offset 0` keeps them in it.
 *
 * @param latest their order among those of one receipt.
 */
export function matchingTraces(
  sql: Sql,
  question: TraceQuestion,
  ranges: readonly Range[],
  latest = sql``,
): Traces {
  const { search, among } = question
  const { source, receivedAt } = candidates(sql, question, ranges)
  if (search === null) return { source, receivedAt }
  // Candidates meet `mayHold` already, unless they were found in another way.
  const condition = among === null ? search.holds : search.condition
  const ordered = sql`(
      select t.*, ${receivedAt} as place from ${source} order by ${receivedAt} desc${latest} offset 0
    ) t where ${condition}`
  return { source: ordered, receivedAt: sql`t.place` }
}

/** What a row `t` of `traces` has to meet, the text search apart. */
export const rowMatches = (
  sql: Sql,
  { teamId, conditions }: Pick<TraceQuestion, 'teamId' | 'conditions'>,
  ranges: readonly Range[],
): Fragment =>
  conditions.reduce(
    (all, condition) => sql`${all} and ${condition}`,
    sql`t.team_id = ${teamId} and ${receivedWithin(sql, sql`t.received_at`, ranges)}`,
  )

/** The traces that meet every condition but the text search, and may meet that. */
function candidates(sql: Sql, question: TraceQuestion, ranges: readonly Range[]): Traces {
  const { teamId, search, among } = question
  const matches = rowMatches(sql, question, ranges)
  const within = (clock: Fragment) => receivedWithin(sql, clock, ranges)
  const mayHold = search?.mayHold ?? null
  if (among === null && mayHold === null) {
    return { source: sql`traces t where ${matches}`, receivedAt: sql`t.received_at` }
  }
  const keys =
    among !== null
      ? among(within(sql`trace_received_at`))
      : sql`select distinct g.received_at, g.trace_id from trace_signatures g
          where g.team_id = ${teamId} and ${within(sql`g.received_at`)} and ${mayHold}`
  // One look-up each, in the one partition that has it; `offset 0` keeps PostgreSQL from reading all traces instead.
  const source = sql`(${keys} order by received_at desc, trace_id desc) found cross join lateral (
      select * from traces t where t.received_at = found.received_at and t.id = found.trace_id and ${matches} offset 0
    ) t where true`
  return { source, receivedAt: sql`found.received_at` }
}

/** The versions of a prompt, also of a deleted one. */
export async function listVersionIds(sql: Sql, teamId: string, promptId: string): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from prompt_versions where team_id = ${teamId} and prompt_id = ${promptId} order by id`
  return rows.map(row => row.id)
}
