import type { CallRecord } from '../../shared/spool/record.js'
import type { ProxyMetrics } from '../metrics.js'
import type { Disk } from './disk.js'
import { MAX_BYTES_PER_UNIT } from './frame.js'
import { recordJson } from './record-json.js'
import { MAX_RECORD_BYTES } from './segment.js'

/** How much of a record is written: all of it, all but its payload, its charge alone. */
export const forms = ['whole', 'no_payload', 'charge'] as const
export type Form = (typeof forms)[number]

/** What gives way when the disk does not: payloads above this share of the bound, spans at the bound, charges never. */
const PAYLOAD_SHARE = 0.8
const FREE_CHECK_MS = 1_000

export interface Pressure {
  /** Index into `forms` of the fullest form that may be written now. */
  level(): number
  /** The disk is nearly full, or just refused a write. */
  readonly full: boolean
  noSpace(): void
  close(): void
}

interface PressureOptions {
  dir: string
  disk: Disk
  maxBytes: number
  minFreeBytes: number
  /** Waiting now. */
  bytes(): number
}

export function createPressure({ dir, disk, maxBytes, minFreeBytes, bytes }: PressureOptions): Pressure {
  let full = false
  let refusals = 0
  const check = () => {
    const before = refusals
    disk.freeBytes(dir).then(
      free => {
        // A write that was refused meanwhile knows better.
        if (before === refusals) full = free <= minFreeBytes
      },
      // A file system that does not say how full it is: the first refused write will.
      () => {},
    )
  }
  const timer = setInterval(check, FREE_CHECK_MS).unref()
  check()
  return {
    level() {
      if (full || bytes() >= maxBytes) return 2
      return bytes() >= maxBytes * PAYLOAD_SHARE ? 1 : 0
    },
    get full() {
      return full
    },
    noSpace() {
      refusals++
      full = true
    },
    close: () => clearInterval(timer),
  }
}

/**
 * The record as JSON in that form; null when the form is no smaller than the one before, too large to ship, or cannot be
 * written: JSON.parse takes a captured prompt that is nested deeper than JSON.stringify can follow.
 */
export function jsonOf(record: CallRecord, form: Form): string | null {
  const { charge, span } = record
  if (form === 'charge') return recordJson({ charge, span: null })
  if (form === 'no_payload' && span === null) return null
  const written = form === 'whole' || span === null ? record : { charge, span: { ...span, payload: null } }
  try {
    return shippable(recordJson(written))
  } catch {
    return null
  }
}

function shippable(json: string): string | null {
  const isShort = json.length * MAX_BYTES_PER_UNIT <= MAX_RECORD_BYTES
  return isShort || Buffer.byteLength(json) <= MAX_RECORD_BYTES ? json : null
}

/** Counts what writing the record in that form left out. */
export function countDropped(record: CallRecord, form: Form, metrics: ProxyMetrics['spool']): void {
  if (form === 'whole' || record.span === null) return
  if (record.span.payload !== null) metrics.droppedPayloads.inc()
  if (form === 'charge') metrics.droppedSpans.inc()
}
