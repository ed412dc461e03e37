/** Budget periods (spec 3, budgets; spec 4, section 5): days, weeks (from Monday) and months start at 00:00 UTC. */
export const periods = ['day', 'week', 'month', 'total'] as const
export type Period = (typeof periods)[number]

const DAY_MS = 86_400_000
/** 1970-01-01 was a Thursday; Monday-based weeks are offset by three days. */
const WEEK_SHIFT_DAYS = 3

/**
 * The period that an instant falls into, as a short key: `d<days since 1970>`, `w<Monday-weeks since 1970>`,
 * `m<months since 1970>`, `a` for total. The ledger's scripts compute the same key from the store's own clock.
 */
export function periodKey(period: Period, atMs: number): string {
  const days = Math.floor(atMs / DAY_MS)
  switch (period) {
    case 'day':
      return `d${days}`
    case 'week':
      return `w${Math.floor((days + WEEK_SHIFT_DAYS) / 7)}`
    case 'month': {
      const date = new Date(atMs)
      return `m${(date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()}`
    }
    case 'total':
      return 'a'
  }
}

/** Start of the period that holds `atMs`; null for `total`, which starts with the budget. */
export function periodStartMs(period: Period, atMs: number): number | null {
  const days = Math.floor(atMs / DAY_MS)
  switch (period) {
    case 'day':
      return days * DAY_MS
    case 'week':
      return (Math.floor((days + WEEK_SHIFT_DAYS) / 7) * 7 - WEEK_SHIFT_DAYS) * DAY_MS
    case 'month': {
      const date = new Date(atMs)
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
    }
    case 'total':
      return null
  }
}

/** `resetsAt`: the start of the next period; null for `total`. */
export function periodEndMs(period: Period, atMs: number): number | null {
  const startMs = periodStartMs(period, atMs)
  if (startMs === null) return null
  if (period === 'day') return startMs + DAY_MS
  if (period === 'week') return startMs + 7 * DAY_MS
  const start = new Date(startMs)
  return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1)
}
