/**
 * Latency histograms that can be added and subtracted: how many spans fell into each bucket, and how long those took
 * together. Bucket n holds durations whose logarithm to the base 1.05 (of microseconds) rounds down to n - 1, so what
 * shares a bucket differs by at most 5 %; bucket 0 holds what took no time. Exact integers throughout.
 */
const BASE = 1.05

/** A histogram as it is stored: three arrays side by side, buckets ascending. */
export interface Latencies {
  buckets: number[]
  counts: number[]
  /** Microseconds. */
  sums: number[]
}

/** Never negative: a clock that was set back is not a latency. */
export const microseconds = (durationMs: number): number => Math.max(0, Math.round(durationMs * 1000))

/** The same as `latency_bucket` in the migration. */
export const bucketOf = (us: number): number => (us <= 0 ? 0 : 1 + Math.floor(Math.log(us) / Math.log(BASE)))

/** A bucket, its spans and the sum of their durations in microseconds. */
export type Bar = readonly [bucket: number, count: number, sumUs: number]

/** Bars that are written one after the other, as a trace and a session keep them. */
export const barsOf = (flat: readonly number[]): Bar[] =>
  Array.from({ length: flat.length / 3 }, (_, n) => [flat[3 * n]!, flat[3 * n + 1]!, flat[3 * n + 2]!])

/** The reverse: bars added up, by ascending bucket; what adds up to nothing is left out. */
export const flatBars = (bars: readonly Bar[]): number[] =>
  mergeBars([bars]).flatMap(bar => (bar[1] === 0 && bar[2] === 0 ? [] : bar))

/** Adds histograms up. @returns bars by ascending bucket. */
export function mergeBars(histograms: Iterable<readonly Bar[]>): Bar[] {
  const merged = new Map<number, [number, number]>()
  for (const bars of histograms) {
    for (const [bucket, count, sumUs] of bars) {
      const held = merged.get(bucket)
      if (held === undefined) merged.set(bucket, [count, sumUs])
      else {
        held[0] += count
        held[1] += sumUs
      }
    }
  }
  return [...merged]
    .map(([bucket, [count, sumUs]]): Bar => [bucket, count, sumUs])
    .sort((a, b) => a[0] - b[0])
}

/**
 * The duration that a share of the spans took at most, by nearest rank: the mean of the bucket in which that span is,
 * so within 5 % of it, and exact where its bucket holds equal durations.
 *
 * @param bars by ascending bucket. @returns milliseconds; null without a span.
 */
export function percentile(bars: readonly Bar[], share: number): number | null {
  const filled = bars.filter(([, count]) => count > 0)
  const total = filled.reduce((sum, [, count]) => sum + count, 0)
  let rank = Math.max(1, Math.ceil(share * total))
  for (const [, count, sumUs] of filled) {
    rank -= count
    if (rank <= 0) return Math.round(sumUs / count) / 1000
  }
  return null
}
