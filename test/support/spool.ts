import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { wholeRecord } from '../../control-plane/calls/whole-record.js'
import { createMetrics, type ProxyMetrics } from '../../proxy/metrics.js'
import type { Disk } from '../../proxy/spool/disk.js'
import { openSpool, type ShipOutcome, type Spool, type SpoolOptions } from '../../proxy/spool/spool.js'
import { createLogger } from '../../shared/log/logger.js'
import type { CallRecord } from '../../shared/spool/record.js'

const MEGABYTE = 1024 * 1024

/** Takes batches as the control plane does; `answer` decides what becomes of one. */
export interface Sink {
  /** Committed records, in order, duplicates included. */
  readonly records: CallRecord[]
  readonly batches: number[]
  answer(records: CallRecord[]): Promise<ShipOutcome> | ShipOutcome
  ship(body: Buffer): Promise<ShipOutcome>
  ids(): string[]
}

export function createSink(): Sink {
  const records: CallRecord[] = []
  const batches: number[] = []
  return {
    records,
    batches,
    answer: () => ({ kind: 'committed', rejected: 0 }),
    async ship(body) {
      const sent = linesOf(body.toString()).map(wholeRecord) as CallRecord[]
      const outcome = await this.answer(sent)
      if (outcome.kind === 'committed') {
        records.push(...sent)
        batches.push(sent.length)
      }
      return outcome
    },
    ids: () => records.map(record => record.charge.requestId),
  }
}

export const linesOf = (text: string): unknown[] =>
  text
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as unknown)

export const away = (): never => {
  throw new Error('The stand-in control plane is away.')
}

export function temporaryDirectory(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'agh-spool-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

interface OpenOptions extends Partial<Omit<SpoolOptions, 'metrics'>> {
  disk?: Disk
}

/** A spool that the test's end closes, keeping what it could not ship. */
export function testSpool(t: Test, dir: string, sink: Sink, options: OpenOptions = {}) {
  const metrics: ProxyMetrics = createMetrics(false)
  const spool: Spool = openSpool({
    dir,
    maxBytes: 64 * MEGABYTE,
    segmentBytes: 8 * MEGABYTE,
    minFreeBytes: 0,
    ship: body => sink.ship(body),
    metrics: metrics.spool,
    log: createLogger('spool', 'silent'),
    ...options,
  })
  t.teardown(() => spool.close(0))
  const count = async (counter: { get(): Promise<{ values: { value: number }[] }> }) =>
    (await counter.get()).values[0]?.value ?? 0
  return { spool, metrics: metrics.spool, registry: metrics.registry, count }
}

/** Waits for something that happens soon; fails loudly when it does not. */
export async function until(what: string, isSo: () => boolean, limitMs = 5_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`Not within ${limitMs} ms: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}
