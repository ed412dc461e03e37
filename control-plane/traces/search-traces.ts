import { unavailable } from '../../shared/errors/app-error.js'
import type { Sql } from '../db/sql.js'
import { countTraces, listTraceRows, type TraceQuestion } from './list-queries.js'
import type { StoredTrace } from './queries.js'

const DAY_MS = 86_400_000
/** Where a window is cut, in days before its end: a common word fills its page and its count from the first pieces. */
const CUTS = [1, 3, 7, 14]
/** With a text search so many matches are counted and can be paged through: each is read and compared. */
const MOST_MATCHES = 10_000
/** As long as a statement may take. */
const PATIENCE_MS = 1_500

/**
 * One page of the traces that hold a text, newest first, and how many do; 10,000 stands for that many or more. Searched
 * piece by piece from the end of the window, until there is nothing more to know.
 *
 * @throws AppError UNAVAILABLE when it takes too long: a text of one or two letters that hardly any of a large team's
 *   traces holds.
 */
export async function searchTraces(
  sql: Sql,
  question: TraceQuestion,
  page: { limit: number; offset: number },
  nowMs: number,
): Promise<{ rows: StoredTrace[]; total: number }> {
  const startedAt = performance.now()
  const wanted = Math.min(page.offset + page.limit, MOST_MATCHES)
  const rows: StoredTrace[] = []
  let total = 0
  for (const bounds of piecesOf(question.bounds, nowMs)) {
    if (performance.now() - startedAt > PATIENCE_MS) {
      throw unavailable('The search takes too long. Give a longer text or a shorter window.', 2)
    }
    const piece = { ...question, bounds }
    const missing = wanted - rows.length
    const found = missing === 0 ? [] : await listTraceRows(sql, piece, { limit: missing, offset: 0 })
    rows.push(...found)
    const isWhole = found.length < missing
    total += isWhole ? found.length : await countTraces(sql, piece, MOST_MATCHES - total)
    if (total >= MOST_MATCHES) break
  }
  return { rows: rows.slice(page.offset, wanted), total }
}

/** The window in pieces, the newest first. */
function piecesOf(
  { fromMs, toMs }: TraceQuestion['bounds'],
  nowMs: number,
): { fromMs: number; toMs: number }[] {
  const endMs = Math.min(toMs, nowMs)
  const starts = [...CUTS.map(days => endMs - days * DAY_MS).filter(ms => ms > fromMs), fromMs]
  return starts.map((startMs, n) => ({ fromMs: startMs, toMs: n === 0 ? toMs : starts[n - 1]! - 1 }))
}
