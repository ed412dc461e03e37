const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Epoch milliseconds, the end left out. */
export interface Range {
  fromMs: number
  toMs: number
}

/**
 * A window as what the rollups hold of it: whole days, whole hours around them, and the parts of an hour at its ends,
 * which are read from the rows themselves. The last hour is taken whole and what lies behind the window is taken off
 * again: of a window that ends now that is nothing.
 */
export interface HourParts {
  days: Range
  hours: Range[]
  /** All of the above. */
  whole: Range
  added: Range
  removed: Range
}

/** @param toMs inclusive, as every window of the API. */
export function hourParts(fromMs: number, toMs: number): HourParts {
  const endMs = Math.max(fromMs, toMs + 1)
  const first = Math.ceil(fromMs / HOUR_MS) * HOUR_MS
  const last = Math.max(first, Math.ceil(endMs / HOUR_MS) * HOUR_MS)
  const firstDay = Math.ceil(first / DAY_MS) * DAY_MS
  const lastDay = Math.floor(last / DAY_MS) * DAY_MS
  const days = firstDay < lastDay ? { fromMs: firstDay, toMs: lastDay } : { fromMs: last, toMs: last }
  return {
    days,
    hours: [
      { fromMs: first, toMs: days.fromMs },
      { fromMs: days.toMs, toMs: last },
    ],
    whole: { fromMs: first, toMs: last },
    added: { fromMs, toMs: first },
    removed: { fromMs: endMs, toMs: last },
  }
}
