import type { Logger } from '../../shared/log/logger.js'
import type { ProxyMetrics } from '../metrics.js'
import type { Disk } from './disk.js'
import { type Batch, linesOf } from './frame.js'
import { acknowledge, BATCH_RECORDS, readBatch, type Segment, waiting } from './segment.js'

/**
 * Sends what waits on disk to the control plane: one batch in flight per segment, acknowledged only after the control
 * plane has committed it. At least once here and a primary key there make it once.
 *
 * Failure stance: it never gives up on a batch. What cannot be sent now is sent later; only a record that the control
 * plane refuses by itself is set aside, so that it does not hold up the others.
 */
export interface Shipper {
  /** Records of so many bytes were appended. On the hot path: a few comparisons and, once a batch, a timer. */
  appended(bytes: number, records: number): void
  /** Segments were adopted. */
  wake(): void
  /** While on: no pause to collect records into batches, and back-offs of 100 ms at most. */
  hurry(on: boolean): void
  /** Stops after the batches in flight, which are aborted. */
  close(): Promise<void>
}

/** Sends newline-delimited JSON. Rejects for what is worth trying again: all but the control plane's own refusal. */
export type Ship = (body: Buffer, signal: AbortSignal) => Promise<ShipOutcome>
export type ShipOutcome = { kind: 'committed'; rejected: number } | { kind: 'refused'; status: number }

interface ShipperOptions {
  ship: Ship
  disk: Disk
  /** Oldest first. */
  segments(): readonly Segment[]
  /** So many bytes of the segment are committed. */
  onCommitted(segment: Segment, bytes: number): void
  /** The segment is damaged behind what is acknowledged. */
  onBroken(segment: Segment): void
  /** Keeps one record that the control plane will not take. */
  quarantine(line: Buffer, status: number): void
  metrics: ProxyMetrics['spool']
  log: Logger
}

/** Records are collected this long, unless a batch fills up earlier. */
const COLLECT_MS = 200
const FULL_BATCH_BYTES = 1024 * 1024
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 30_000

export function createShipper(options: ShipperOptions): Shipper {
  const { disk, metrics, log } = options
  const stop = new AbortController()
  const pauses = new Set<() => void>()
  const running = new Set<Promise<void>>()
  let failures = 0
  let timer: NodeJS.Timeout | null = null
  let lastActiveMs = 0
  let activeBusy = false
  let hurried = false
  /** Appended since the last look. */
  let fresh = { records: 0, bytes: 0, full: false }

  /** Two lanes: what is fresh does not queue behind a long backlog. */
  function pump(): void {
    timer = null
    fresh = { records: 0, bytes: 0, full: false }
    const ready = options.segments().filter(segment => waiting(segment) > 0)
    for (const wanted of [true, false]) {
      const lane = ready.filter(segment => segment.active === wanted)
      const next = lane[0]
      if (next !== undefined && !lane.some(segment => segment.busy)) start(next)
    }
  }

  function start(segment: Segment): void {
    segment.busy = true
    const isActive = segment.active
    if (isActive) {
      activeBusy = true
      lastActiveMs = performance.now()
    }
    const run = shipOne(segment)
      .catch((error: unknown) => {
        if (stop.signal.aborted) return
        metrics.ioErrors.inc()
        log.error({ err: error, segment: segment.path }, 'spool: a segment cannot be read or acknowledged')
        return pause(retryDelay(failures++))
      })
      .finally(() => {
        segment.busy = false
        if (isActive) activeBusy = false
        running.delete(run)
        if (!stop.signal.aborted) wake()
      })
    running.add(run)
  }

  async function shipOne(segment: Segment): Promise<void> {
    const batch = await readBatch(disk, segment)
    if (batch.records > 0) {
      await deliver(batch)
      // Noted in memory first: what is committed is not sent again by this process even if the disk takes no note.
      await acknowledge(disk, segment, batch).catch((error: unknown) => {
        metrics.ioErrors.inc()
        log.warn({ err: error }, 'spool: an acknowledgement could not be written')
      })
      options.onCommitted(segment, batch.consumed)
    }
    if (batch.broken && !stop.signal.aborted) options.onBroken(segment)
  }

  /** Resolves when every record of the batch is committed or set aside. Rejects only when stopped. */
  async function deliver({ body, records }: Batch): Promise<void> {
    const outcome = await sendUntilAnswered(body, records)
    if (outcome.kind === 'committed') return
    // One record spoils the batch: halve it until that one is alone.
    const queue = [linesOf(body)]
    let known: number | null = outcome.status
    for (let lines = queue.pop(); lines !== undefined; lines = queue.pop()) {
      const answer: ShipOutcome =
        known === null
          ? await sendUntilAnswered(joined(lines), lines.length)
          : { kind: 'refused', status: known }
      known = null
      if (answer.kind === 'committed') continue
      const [first] = lines
      if (lines.length === 1 && first !== undefined) options.quarantine(first, answer.status)
      else queue.push(lines.slice(lines.length >> 1), lines.slice(0, lines.length >> 1))
    }
  }

  async function sendUntilAnswered(body: Buffer, records: number): Promise<ShipOutcome> {
    for (;;) {
      try {
        const outcome = await options.ship(body, stop.signal)
        if (failures > 0) log.info({ failures }, 'spool: the control plane takes records again')
        failures = 0
        if (outcome.kind === 'committed') count(records, outcome.rejected)
        return outcome
      } catch (error) {
        stop.signal.throwIfAborted()
        metrics.retries.inc()
        if (failures === 0)
          log.warn({ err: error }, 'spool: the control plane takes no records; they wait on disk')
        await pause(retryDelay(failures++))
      }
    }
  }

  function count(records: number, rejected: number): void {
    metrics.shipped.inc(records)
    if (rejected === 0) return
    metrics.rejected.inc(rejected)
    log.error(
      { rejected },
      'spool: the control plane could not read records; they are in its dead-letter table',
    )
  }

  async function pause(ms: number): Promise<void> {
    await new Promise<void>(resolve => {
      const done = () => {
        clearTimeout(pausing)
        pauses.delete(done)
        resolve()
      }
      const pausing = setTimeout(done, hurried ? Math.min(ms, FIRST_RETRY_MS) : ms).unref()
      pauses.add(done)
    })
    stop.signal.throwIfAborted()
  }

  function schedule(waitMs: number): void {
    if (timer !== null) clearTimeout(timer)
    timer = setTimeout(pump, waitMs).unref()
  }

  function wake(): void {
    const isUrgent = options
      .segments()
      .some(segment => !segment.busy && waiting(segment) >= (segment.active ? FULL_BATCH_BYTES : 1))
    schedule(isUrgent ? 0 : collecting())
  }

  const collecting = () => (hurried ? 0 : Math.max(0, lastActiveMs + COLLECT_MS - performance.now()))

  return {
    appended(bytes, records) {
      if (activeBusy || fresh.full) return
      fresh.records += records
      fresh.bytes += bytes
      fresh.full = fresh.records >= BATCH_RECORDS || fresh.bytes >= FULL_BATCH_BYTES
      if (fresh.full) schedule(0)
      else if (timer === null) schedule(collecting())
    },
    wake,
    hurry(on) {
      hurried = on
      if (!on) return
      for (const done of [...pauses]) done()
      schedule(0)
    },
    async close() {
      stop.abort()
      if (timer !== null) clearTimeout(timer)
      for (const done of [...pauses]) done()
      await Promise.allSettled([...running])
    },
  }
}

/** 100 ms, doubling to 30 s, with half of it left to chance so that many proxies do not come back at once. */
export const retryDelay = (failures: number): number =>
  Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures, 20)) * (0.5 + Math.random() / 2)

const joined = (lines: readonly Buffer[]): Buffer => Buffer.concat(lines.flatMap(line => [line, NEWLINE]))
const NEWLINE = Buffer.from('\n')
