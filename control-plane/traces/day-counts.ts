import { createRecentMap, type RecentMap } from '../../shared/memory/recent-map.js'
import type { Sql } from '../db/sql.js'
import { type DayVersion, listDayVersions } from './change-queries.js'
import type { Range } from './hour-parts.js'

const DAY_MS = 86_400_000
/** Days of questions, or twice as many keys: some 4 MB. */
const MOST_REMEMBERED = 20_000
/** A statement with more of them takes longer to plan than what they leave out takes to read. */
const MOST_RANGES = 30

/** Where a trace is stored in its team's. */
export interface TracePlace {
  receivedAtMs: number
  id: string
}

/** How many match of those whose trace was received on a UTC day. */
export interface DayCount {
  dayMs: number
  count: number
  /** The newest of them, newest first, where they were dear to find; as many as a page mostly has. */
  newest?: readonly TracePlace[] | undefined
}

/** What was counted of a whole day when that had a version. */
interface Remembered extends Omit<DayCount, 'dayMs'> {
  version: string
  /** Whether it is all of them; otherwise there are as many at least. */
  isWhole: boolean
}
export type DayMemo = RecentMap<Remembered>

/** Of one process; another one remembers for itself. */
export const createDayMemo = (): DayMemo =>
  createRecentMap<Remembered>(MOST_REMEMBERED, ({ newest = [] }) => 1 + newest.length / 2)

export interface Counting {
  teamId: string
  /** What is counted, see `questionName`. Null: nothing tells when that changes, so it is counted each time. */
  name: string | null
  /** Which days: the parts of a window, the newest first, cut where days begin. */
  pieces: readonly Range[]
  /** Of some ranges, newest day first, days without any left out; it stops when there are `most`. */
  count(ranges: readonly Range[], most: number): Promise<DayCount[]>
  /** More of them nobody wants to know of. Default: all. */
  most?: number
}

/**
 * Counts what matches, by day, newest first, days without any left out; stops when there are `most`. A day is counted
 * once: a trace's day is that of its receipt, so days of the past hardly ever change, and each has a version that tells
 * (see `CHANGE`). Read is what changed since, and the parts of days at the window's ends.
 *
 * @param tx a snapshot: a version and what is remembered with it must be of the same moment.
 */
export async function countDays(
  tx: Sql,
  memo: DayMemo,
  { teamId, name, pieces, count, most = Number.POSITIVE_INFINITY }: Counting,
): Promise<DayCount[]> {
  const window = { fromMs: pieces.at(-1)!.fromMs, toMs: pieces[0]!.toMs }
  const versions = name === null ? null : await listDayVersions(tx, teamId, wholeDays(window))
  const counts: DayCount[] = []
  let missing = most
  for (const piece of pieces) {
    const days = versions?.filter(({ dayMs }) => dayMs >= piece.fromMs && dayMs < piece.toMs) ?? []
    const { known, unknown } =
      name === null ? { known: [], unknown: [piece] } : recall(memo, name, piece, days, missing)
    const counted = unknown.length === 0 ? [] : await count(unknown, missing)
    if (name !== null) {
      const read = days.filter(day => isWithin(unknown, day))
      remember(memo, name, read, counted, sumOf(counted) < missing)
    }
    const found = [...known, ...counted].filter(day => day.count > 0).sort((a, b) => b.dayMs - a.dayMs)
    counts.push(...found)
    missing -= sumOf(found)
    if (missing <= 0) break
  }
  return counts
}

export const sumOf = (counts: readonly DayCount[]) => counts.reduce((sum, { count }) => sum + count, 0)

/** What a page shows of a day. */
export interface DaySlice {
  day: DayCount
  skip: number
  take: number
}

/** On which days the rows of a page are, given what matches by day. Only of the first may there be rows to skip. */
export function slicesOf(
  counts: readonly DayCount[],
  { limit, offset }: { limit: number; offset: number },
): DaySlice[] {
  const slices: DaySlice[] = []
  let before = 0
  for (const day of counts) {
    const skip = Math.max(0, offset - before)
    const take = Math.min(day.count, offset + limit - before) - skip
    if (take > 0) slices.push({ day, skip, take })
    before += day.count
  }
  return slices
}

/**
 * Slices whose rows are known by their keys, and those that have to be looked for, with the ranges where. One range around
 * many days has some in it that need not be looked for: they are then, to be in their places among the others.
 */
export function parted(
  slices: readonly DaySlice[],
  window: Range,
): { known: DaySlice[]; sought: DaySlice[]; ranges: Range[] } {
  const lacking = slices.filter(({ day, skip, take }) => (day.newest ?? []).length < skip + take)
  const ranges = fewRanges(
    rangesOf(
      lacking.map(slice => slice.day),
      window,
    ),
  )
  const isSought = (slice: DaySlice) => lacking.includes(slice) || isWithin(ranges, slice.day)
  return { known: slices.filter(slice => !isSought(slice)), sought: slices.filter(isSought), ranges }
}

/** The parts of a window that lie in some days. */
export const rangesOf = (days: readonly { dayMs: number }[], window: Range): Range[] =>
  days.map(({ dayMs }) => ({
    fromMs: Math.max(dayMs, window.fromMs),
    toMs: Math.min(dayMs + DAY_MS, window.toMs),
  }))

/** The same ranges, neighbours joined; one around them all where they are many. */
export function fewRanges(ranges: readonly Range[]): Range[] {
  if (ranges.length === 0) return []
  const joined: Range[] = []
  for (const range of [...ranges].sort((a, b) => a.fromMs - b.fromMs)) {
    const last = joined.at(-1)
    if (last?.toMs === range.fromMs) last.toMs = range.toMs
    else joined.push({ ...range })
  }
  if (joined.length <= MOST_RANGES) return joined
  return [{ fromMs: joined[0]!.fromMs, toMs: joined.at(-1)!.toMs }]
}

/** The days that lie in a window as a whole; none lies in a window within one day. */
const wholeDays = ({ fromMs, toMs }: Range): Range => ({
  fromMs: Math.ceil(fromMs / DAY_MS) * DAY_MS,
  toMs: Math.floor(toMs / DAY_MS) * DAY_MS,
})

const isWithin = (ranges: readonly Range[], { dayMs }: { dayMs: number }) =>
  ranges.some(({ fromMs, toMs }) => dayMs >= fromMs && dayMs < toMs)

const keyOf = (name: string, dayMs: number) => `${name} ${dayMs}`

/**
 * What is known of a piece, and what is left to count: no more of it than has all that are missing.
 *
 * @param days of the piece, newest first; on others no trace was received.
 */
function recall(memo: DayMemo, name: string, piece: Range, days: readonly DayVersion[], missing: number) {
  const whole = wholeDays(piece)
  if (whole.fromMs > whole.toMs) return { known: [], unknown: [piece] }
  const known: DayCount[] = []
  const unknown: Range[] = []
  if (whole.toMs < piece.toMs) unknown.push({ fromMs: whole.toMs, toMs: piece.toMs })
  let left = missing
  for (const { dayMs, version } of days) {
    if (left <= 0) break
    const held = memo.get(keyOf(name, dayMs))
    if (held?.version === version && (held.isWhole || held.count >= left)) {
      known.push({ dayMs, count: held.count, newest: held.newest })
      left -= held.count
    } else unknown.push({ fromMs: dayMs, toMs: dayMs + DAY_MS })
  }
  if (left > 0 && piece.fromMs < whole.fromMs) unknown.push({ fromMs: piece.fromMs, toMs: whole.fromMs })
  const few = fewRanges(unknown)
  // One range around many has known days in it too.
  return { known: known.filter(day => !isWithin(few, day)), unknown: few }
}

/** @param hasAll otherwise the oldest day that was counted may have more, and older ones were not read. */
function remember(
  memo: DayMemo,
  name: string,
  days: readonly DayVersion[],
  counted: readonly DayCount[],
  hasAll: boolean,
): void {
  const counts = new Map(counted.map(({ dayMs, ...day }) => [dayMs, day]))
  const oldest = hasAll ? Number.NEGATIVE_INFINITY : counted.at(-1)!.dayMs
  for (const { dayMs, version } of days) {
    if (dayMs < oldest) continue
    memo.set(keyOf(name, dayMs), {
      version,
      isWhole: dayMs !== oldest,
      ...(counts.get(dayMs) ?? { count: 0 }),
    })
  }
}
