import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Disk, syncDirectory } from './disk.js'
import { type Batch, HEADER_BYTES, takeBatch } from './frame.js'

/**
 * An append-only file of records and, beside it, how much of it the control plane has committed. Segments are named
 * uniquely over all processes, so that they can change directories without colliding.
 */
export interface Segment {
  readonly path: string
  readonly fd: number
  /** Whether this process still appends to it. */
  active: boolean
  /** Bytes of whole records. The file may be longer by a torn one. */
  size: number
  /** Bytes that the control plane has committed. */
  acked: number
  /** When the oldest record that is not acknowledged was appended, epoch ms; 0 when there is none. */
  oldestAtMs: number
  /** A write failed half-way and could not be taken back: nothing may follow it. */
  torn: boolean
  /** A batch of it is under way: one at a time. */
  busy: boolean
}

export const SEGMENT_SUFFIX = '.seg'
/** Records above this lose their payload: two batches of this size are the most that shipping keeps in memory. */
export const MAX_RECORD_BYTES = 4 * 1024 * 1024
const BATCH_BYTES = 1024 * 1024
export const BATCH_RECORDS = 500

export const waiting = (segment: Segment): number => segment.size - segment.acked

export function createSegment(disk: Disk, directory: string, name: string): Segment {
  const path = join(directory, name + SEGMENT_SUFFIX)
  const fd = disk.open(path, 'ax+')
  syncDirectory(directory)
  return { path, fd, active: true, size: 0, acked: 0, oldestAtMs: 0, torn: false, busy: false }
}

/** Opens a segment that another process left. Damage is found when it is read. */
export function openLeftSegment(disk: Disk, path: string, nowMs: number): Segment {
  const fd = disk.open(path, 'r')
  const size = disk.size(fd)
  const acked = Math.min(readAcked(path), size)
  const oldestAtMs = acked < size ? nowMs : 0
  return { path, fd, active: false, size, acked, oldestAtMs, torn: false, busy: false }
}

/** Missing or unreadable: nothing is acknowledged, and what was sent before is absorbed when it is sent again. */
function readAcked(path: string): number {
  try {
    const offset = Number(readFileSync(ackPath(path), 'utf8'))
    return Number.isSafeInteger(offset) && offset >= 0 ? offset : 0
  } catch {
    return 0
  }
}

/**
 * Appends one frame, whole or not at all.
 *
 * @throws the disk's error; the segment is as it was before, or torn when even that could not be restored.
 */
export function appendFrame(disk: Disk, segment: Segment, frame: Buffer, nowMs: number): void {
  try {
    let written = disk.write(segment.fd, frame)
    while (written < frame.length) written += disk.write(segment.fd, frame.subarray(written))
  } catch (error) {
    try {
      disk.truncate(segment.fd, segment.size)
    } catch {
      segment.torn = true
    }
    throw error
  }
  if (segment.acked === segment.size) segment.oldestAtMs = nowMs
  segment.size += frame.length
}

/** Reads the next batch behind what is acknowledged: at most 500 records or 1 MB, or one larger record. */
export async function readBatch(disk: Disk, segment: Segment): Promise<Batch> {
  const limits = { records: BATCH_RECORDS, recordBytes: MAX_RECORD_BYTES }
  for (let wanted = BATCH_BYTES; ; ) {
    const end = segment.size
    const length = Math.min(wanted, end - segment.acked)
    const buffer = Buffer.allocUnsafeSlow(length)
    const got = await disk.read(segment.fd, buffer, segment.acked)
    const isLast = got < length || segment.acked + length === end
    const batch = takeBatch(buffer.subarray(0, got), isLast, limits)
    if (batch.wanted === 0) return batch
    wanted = Math.min(batch.wanted, HEADER_BYTES + MAX_RECORD_BYTES)
  }
}

/** Notes that a batch is committed. The note may be lost in a crash: the batch is sent again then and absorbed. */
export async function acknowledge(disk: Disk, segment: Segment, batch: Batch): Promise<void> {
  segment.acked += batch.consumed
  segment.oldestAtMs = segment.acked === segment.size ? 0 : batch.lastAtMs
  await disk.replace(ackPath(segment.path), String(segment.acked))
}

/** Deletes a segment whose records are all committed. */
export function removeSegment(disk: Disk, segment: Segment): void {
  disk.close(segment.fd)
  disk.remove(segment.path)
  try {
    disk.remove(ackPath(segment.path))
  } catch {
    // It was never acknowledged in part.
  }
}

export const ackPath = (path: string): string => join(dirname(path), `${basename(path, SEGMENT_SUFFIX)}.ack`)
