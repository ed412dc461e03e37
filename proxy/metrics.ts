import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/**
 * The proxy's own figures. Children are bound here, once: a count costs 0.04 µs and an observation 0.19 µs, so both
 * may stand on the hot path. Labels are few and bounded: never a team, a key or a model.
 */
export type ProxyMetrics = ReturnType<typeof createMetrics>

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]

/** @param defaults whether to add the process's own figures (CPU, memory, event loop); one set per process. */
export function createMetrics(defaults = true) {
  const registry = new Registry()
  if (defaults) collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
  const counter = (name: string, help: string) => new Counter({ name, help, registers: [registry] })
  const labelled = (name: string, help: string, label: string) =>
    new Counter({ name, help, labelNames: [label], registers: [registry] })
  const callSeconds = new Histogram({
    name: 'agh_proxy_call_seconds',
    help: 'Completions, from the request to the last byte.',
    labelNames: ['outcome'],
    buckets: SECONDS,
    registers: [registry],
  })
  const directory = labelled(
    'agh_proxy_directory_total',
    'Directory look-ups by where the answer came from.',
    'source',
  )
  const cache = labelled('agh_proxy_cache_total', 'Response cache look-ups by result.', 'result')
  const dropped = labelled(
    'agh_spool_dropped_total',
    'Parts of records left out under disk pressure.',
    'kind',
  )

  return {
    registry,
    callSeconds: {
      ok: callSeconds.labels('ok'),
      /** Refused before the provider: 4xx of ours, 503. */
      refused: callSeconds.labels('refused'),
      /** The provider failed, or the stream broke. */
      failed: callSeconds.labels('failed'),
      /** The client went away. */
      aborted: callSeconds.labels('aborted'),
    },
    errors: counter('agh_proxy_errors_total', 'Exceptions that were answered as INTERNAL_ERROR.'),
    forwarded: counter('agh_proxy_forwarded_total', 'Requests passed on to the control plane.'),
    ledgerBypassed: counter(
      'agh_proxy_ledger_bypassed_total',
      'Calls let through unchecked under LEDGER_DOWN=open.',
    ),
    unrecordedCalls: counter(
      'agh_proxy_unrecorded_calls_total',
      'Calls that could not be written to the spool.',
    ),
    unsettledCalls: counter(
      'agh_proxy_unsettled_calls_total',
      'Holds that were left to expire or be reconciled.',
    ),
    cacheHits: cache.labels('hit'),
    cacheMisses: cache.labels('miss'),
    directoryHits: directory.labels('memory'),
    directoryLoads: directory.labels('control_plane'),
    /** The control plane was away and what was in memory served. */
    directoryStale: directory.labels('memory_unverified'),
    directoryFailures: directory.labels('failed'),
    spool: {
      droppedPayloads: dropped.labels('payload'),
      droppedSpans: dropped.labels('span'),
      quarantined: counter(
        'agh_spool_quarantined_total',
        'Records that the control plane refused, kept in dead files.',
      ),
      rejected: counter('agh_spool_rejected_total', 'Records that the control plane took as unreadable.'),
      corrupt: counter('agh_spool_corrupt_total', 'Segments cut at a record that was torn or altered.'),
      adopted: counter('agh_spool_adopted_total', 'Segments taken over from a process that died.'),
      shipped: counter('agh_spool_shipped_total', 'Records that the control plane has committed.'),
      retries: counter('agh_spool_retries_total', 'Batches that have to be sent again.'),
      ioErrors: counter('agh_spool_io_errors_total', 'Failed writes and syncs of the spool.'),
    },
    /** A figure that is read when somebody scrapes. */
    watch(name: string, help: string, read: () => number): void {
      const gauge: Gauge = new Gauge({ name, help, registers: [registry], collect: () => gauge.set(read()) })
    },
  }
}
