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

/**
 * A histogram in one array: bucket, its spans and the sum of their durations in microseconds, after each other. A bucket
 * may come more than once, and a bar may be taken off again.
 */
export type FlatBars = readonly number[]

/** No duration that a bigint of microseconds holds is in a higher bucket than 896. */
const BUCKETS = 1_024
/** Spans and microseconds by bucket while a histogram is added up; empty between calls. */
const counts = new Float64Array(BUCKETS)
const sums = new Float64Array(BUCKETS)

/** Adds a histogram up and shows each bucket that holds anything to `see`, in ascending order. */
function addUp(bars: FlatBars, see: (bucket: number, count: number, sumUs: number) => void): void {
  let [lowest, highest] = [BUCKETS, -1]
  for (let i = 0; i < bars.length; i += 3) {
    const bucket = bars[i]!
    counts[bucket] = counts[bucket]! + bars[i + 1]!
    sums[bucket] = sums[bucket]! + bars[i + 2]!
    if (bucket < lowest) lowest = bucket
    if (bucket > highest) highest = bucket
  }
  for (let bucket = lowest; bucket <= highest; bucket++) {
    if (counts[bucket] !== 0 || sums[bucket] !== 0) see(bucket, counts[bucket]!, sums[bucket]!)
    counts[bucket] = 0
    sums[bucket] = 0
  }
}

/** The same histogram, each bucket once, ascending; what adds up to nothing is left out. */
export function addedUp(bars: FlatBars): number[] {
  const merged: number[] = []
  addUp(bars, (...bar) => merged.push(...bar))
  return merged
}

/**
 * The durations that some shares of the spans took at most, by nearest rank: each the mean of the bucket in which that
 * span is, so within 5 % of it, and exact where its bucket holds equal durations.
 *
 * @returns milliseconds; null without a span.
 */
export function percentiles(bars: FlatBars, shares: readonly number[]): (number | null)[] {
  const filled: { means: number[]; spansUpTo: number[] } = { means: [], spansUpTo: [] }
  let total = 0
  addUp(bars, (_, count, sumUs) => {
    if (count <= 0) return
    total += count
    filled.means.push(sumUs / count)
    filled.spansUpTo.push(total)
  })
  return shares.map(share => {
    const rank = Math.max(1, Math.ceil(share * total))
    const mean = filled.means[filled.spansUpTo.findIndex(spans => spans >= rank)]
    return mean === undefined ? null : Math.round(mean) / 1000
  })
}
