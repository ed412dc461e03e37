import type { TraceFilters } from '../../shared/contract/traces.js'
import { unavailable } from '../../shared/errors/app-error.js'
import { withOwnPlans, withOwnPlansInSnapshot } from '../db/own-plans.js'
import type { Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { countByFacets, countTracesByDay, searchTracesByDay } from './count-queries.js'
import {
  type Counting,
  countDays,
  type DayMemo,
  type DaySlice,
  parted,
  slicesOf,
  sumOf,
} from './day-counts.js'
import {
  facetsOf,
  isAmong,
  judgedTraces,
  metadataPairs,
  questionName,
  rowConditions,
} from './filter-queries.js'
import { hourParts, type Range } from './hour-parts.js'
import {
  listTraceRows,
  listTraceRowsAt,
  listVersionIds,
  type Page,
  type TraceQuestion,
} from './list-queries.js'
import type { StoredTrace } from './queries.js'
import { textSearch } from './search-queries.js'
import { windowBounds } from './window.js'

const DAY_MS = 86_400_000
/** Where a search cuts its window, in days before the newest: a common word fills its count from the first pieces. */
const CUTS = [1, 3, 7, 14]
/** With a text search so many matches are counted and can be paged through: each is read and compared. */
const MOST_MATCHES = 10_000
/** As long as a statement may take. */
const PATIENCE_MS = 1_500

type Query = TraceFilters & Readonly<Record<string, unknown>>
interface TracePage {
  rows: StoredTrace[]
  total: number
}

/** One page of a team's traces, newest first, and how many there are (spec 2, GET /traces). @param memo of the process. */
export async function pageOfTraces(
  { sql, now }: Pick<Deps, 'sql' | 'now'>,
  memo: DayMemo,
  teamId: string,
  query: Query,
  page: Page,
): Promise<TracePage> {
  const nowMs = now()
  const metadata = metadataPairs(query)
  const versionIds = query.prompt_id === undefined ? [] : await listVersionIds(sql, teamId, query.prompt_id)
  const [among = null, ...judged] = judgedTraces(sql, teamId, query)
  const question = {
    teamId,
    conditions: [
      ...rowConditions(sql, teamId, query, metadata, versionIds),
      ...judged.map(keys => isAmong(sql, keys)),
    ],
    search: textSearch(sql, query),
    among,
  }
  const { fromMs, toMs } = windowBounds(query, nowMs)
  const window = { fromMs, toMs: Math.max(fromMs, toMs + 1) }
  const facets = facetsOf(query, metadata)
  if (facets !== null) {
    // Two statements side by side: the page stops reading after its last row, the count cannot.
    const [rows, total] = await Promise.all([
      withOwnPlans(sql, tx => listTraceRows(tx, question, [window], page)),
      withOwnPlans(sql, tx => countByFacets(tx, question, facets, hourParts(fromMs, toMs))),
    ])
    return { rows, total }
  }
  const asked = { memo, name: questionName(teamId, query, { metadata, versionIds }), question, window, nowMs }
  return withOwnPlansInSnapshot(sql, tx => countedPage(tx, asked, page))
}

interface Asked {
  memo: DayMemo
  name: string | null
  question: TraceQuestion
  window: Range
  nowMs: number
}

/**
 * What has been counted tells on which days the page is, and of a text search mostly what is on it. Of a search 10,000
 * stands for that many or more: counted piece by piece from the end of the window, until there is nothing more to know.
 *
 * @throws AppError UNAVAILABLE when it takes too long: a text of one or two letters that hardly any of a large team's
 *   traces holds.
 */
async function countedPage(
  tx: Sql,
  { memo, name, question, window, nowMs }: Asked,
  { limit, offset }: Page,
): Promise<TracePage> {
  const startedAt = performance.now()
  const search = (ranges: readonly Range[], most: number) => {
    if (performance.now() - startedAt <= PATIENCE_MS) return searchTracesByDay(tx, question, ranges, most)
    throw unavailable('The search takes too long. Give a longer text or a shorter window.', 2)
  }
  const { teamId } = question
  const counting: Counting =
    question.search === null
      ? { teamId, name, pieces: [window], count: ranges => countTracesByDay(tx, question, ranges) }
      : { teamId, name, pieces: piecesOf(window, nowMs), count: search, most: MOST_MATCHES }
  const counts = await countDays(tx, memo, counting)
  const total = Math.min(sumOf(counts), counting.most ?? Number.POSITIVE_INFINITY)
  const slices = slicesOf(counts, { limit: Math.min(limit, total - offset), offset })
  return { rows: await listSlices(tx, question, slices, window), total }
}

/** The rows of a page: those whose keys are known by their keys, the others by looking for them on their days. */
async function listSlices(
  tx: Sql,
  question: TraceQuestion,
  slices: readonly DaySlice[],
  window: Range,
): Promise<StoredTrace[]> {
  const { known, sought, ranges } = parted(slices, window)
  const places = known.flatMap(({ day, skip, take }) => day.newest?.slice(skip, skip + take) ?? [])
  const rest = { limit: sought.reduce((sum, { take }) => sum + take, 0), offset: sought[0]?.skip ?? 0 }
  const rows = [
    ...(places.length === 0 ? [] : await listTraceRowsAt(tx, question.teamId, places)),
    ...(rest.limit === 0 ? [] : await listTraceRows(tx, question, ranges, rest)),
  ]
  return rows.sort((a, b) => b.receivedAt.getTime() - a.receivedAt.getTime())
}

/** The window in pieces, the newest first, cut where days begin. */
function piecesOf({ fromMs, toMs }: Range, nowMs: number): Range[] {
  const newest = Math.floor(Math.min(toMs - 1, nowMs) / DAY_MS) * DAY_MS
  const cuts = CUTS.map(days => newest - (days - 1) * DAY_MS).filter(ms => ms > fromMs)
  const starts = [...cuts, fromMs]
  return starts.map((startMs, n) => ({ fromMs: startMs, toMs: n === 0 ? toMs : starts[n - 1]! }))
}
