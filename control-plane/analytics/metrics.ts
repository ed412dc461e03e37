import type { AnalyticsGroup, Metrics } from '../../shared/contract/analytics.js'
import { usdFromNano } from '../../shared/money/nano.js'
import { percentiles } from '../traces/latency.js'
import type { GroupSums } from './queries.js'

/** The metrics of all spans, those whose group key is null included (spec 2, analytics). */
export const totalsOf = (groups: readonly GroupSums[]): Metrics =>
  metricsOf({
    requests: sum(groups, group => group.requests),
    errors: sum(groups, group => group.errors),
    promptTokens: sum(groups, group => group.promptTokens),
    completionTokens: sum(groups, group => group.completionTokens),
    totalTokens: sum(groups, group => group.totalTokens),
    costNano: sum(groups, group => group.costNano),
    latencies: groups.flatMap(group => group.latencies),
  })

/** Days in their order, other groups by most requests first; without the group that has no key. */
export function bucketsOf(
  groups: readonly GroupSums[],
  groupBy: AnalyticsGroup,
): (Metrics & { key: string })[] {
  const buckets = groups.flatMap(({ key, ...sums }) => (key === null ? [] : { key, ...metricsOf(sums) }))
  const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)
  return buckets.sort(groupBy === 'day' ? byKey : (a, b) => b.requests - a.requests || byKey(a, b))
}

function metricsOf(sums: Omit<GroupSums, 'key'>): Metrics {
  const [p50 = null, p95 = null, p99 = null] = percentiles(sums.latencies, [0.5, 0.95, 0.99])
  return {
    requests: sums.requests,
    errorRate: sums.requests === 0 ? 0 : sums.errors / sums.requests,
    promptTokens: sums.promptTokens,
    completionTokens: sums.completionTokens,
    totalTokens: sums.totalTokens,
    costUsd: usdFromNano(sums.costNano),
    latencyMs: { p50, p95, p99 },
  }
}

const sum = (groups: readonly GroupSums[], amount: (group: GroupSums) => number) =>
  groups.reduce((total, group) => total + amount(group), 0)
