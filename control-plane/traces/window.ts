/** Lists, sessions, analytics and summaries look at the last 30 days unless told otherwise (spec 2, limits). */
const DEFAULT_WINDOW_MS = 30 * 86_400_000

/** Where a window without `from` starts: 30 days before its end, and before now when it ends in the future. */
export const defaultFromMs = (toMs: number, nowMs: number): number =>
  Math.min(toMs, nowMs) - DEFAULT_WINDOW_MS

/** What PostgreSQL reads of the dates that JavaScript writes: the years 1 to 9998, and room for a time zone. */
const FIRST_MS = Date.parse('0001-01-01T00:00:00.000Z')
const LAST_MS = Date.parse('9998-12-31T23:59:59.999Z')
const readable = (ms: number) => Math.min(Math.max(ms, FIRST_MS), LAST_MS)

/** Epoch milliseconds, the end left out. */
export const ALL_TIME = { fromMs: FIRST_MS, toMs: LAST_MS + 1 }

interface Asked {
  from?: number | undefined
  to?: number | undefined
}

/** A window as two instants, both inclusive; open to the end without `to`. */
export const windowBounds = (asked: Asked, nowMs: number) => ({
  fromMs: readable(asked.from ?? defaultFromMs(asked.to ?? nowMs, nowMs)),
  toMs: readable(asked.to ?? LAST_MS),
})
