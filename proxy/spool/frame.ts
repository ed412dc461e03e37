import { crc32 } from 'node:zlib'

/**
 * One write on disk: length of the JSON (24 bits), number of its records less one (8 bits) | CRC-32 of all that follows
 * it (u32) | time of the append (f64, epoch ms) | JSON of the records, a newline between two. Little-endian. The time is
 * there so that the age of what waits is known after a restart too.
 *
 * The records of a turn share a frame: a frame each costs 5 thousand instructions a call more, half of them when it is
 * read again. Spools of earlier versions have a frame each; it reads as one of one record.
 */
export const HEADER_BYTES = 16
const LENGTH_BITS = 24
const LENGTH_MASK = 2 ** LENGTH_BITS - 1
const MAX_FRAME_RECORDS = 256
const CRC_AT = 4
const TIME_AT = 8
const NEWLINE = 10
/** UTF-16 units to UTF-8 bytes, at worst. */
export const MAX_BYTES_PER_UNIT = 3
const SCRATCH_BYTES = 256 * 1024

/** Makes the frames of a spool in one reused buffer: what is returned is valid until the next call. */
export interface FrameWriter {
  one(json: string, nowMs: number): Buffer
  /**
   * Of several.
   *
   * @returns null when a record has no JSON, or all of them together are too large for the buffer.
   */
  turn(records: readonly (string | null)[], nowMs: number): Buffer | null
}

export function createFrameWriter(): FrameWriter {
  const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
  return {
    one(json, nowMs) {
      const buffer = mostBytes(json) <= SCRATCH_BYTES ? scratch : Buffer.allocUnsafeSlow(bytesOf(json))
      return buffer.subarray(0, writeFrame(buffer, 0, json, 1, nowMs))
    },
    turn(records, nowMs) {
      if (records.includes(null)) return null
      let end = 0
      for (let first = 0; first < records.length; first += MAX_FRAME_RECORDS) {
        const together = records.slice(first, first + MAX_FRAME_RECORDS)
        const json = together.join('\n')
        if (end + mostBytes(json) > SCRATCH_BYTES) return null
        end = writeFrame(scratch, end, json, together.length, nowMs)
      }
      return scratch.subarray(0, end)
    },
  }
}

const mostBytes = (json: string) => HEADER_BYTES + json.length * MAX_BYTES_PER_UNIT
const bytesOf = (json: string) => HEADER_BYTES + Buffer.byteLength(json)

/** @returns the offset behind the frame that begins at `at`, for which there must be room. */
function writeFrame(into: Buffer, at: number, json: string, records: number, nowMs: number): number {
  const length = into.write(json, at + HEADER_BYTES)
  const end = at + HEADER_BYTES + length
  into.writeDoubleLE(nowMs, at + TIME_AT)
  into.writeUInt32LE((length | ((records - 1) << LENGTH_BITS)) >>> 0, at)
  into.writeUInt32LE(crc32(into.subarray(at + TIME_AT, end)), at + CRC_AT)
  return end
}

export interface Batch {
  /** Newline-delimited JSON, one record a line. */
  body: Buffer
  records: number
  /** Bytes of the segment that these records take. */
  consumed: number
  /** When the last of them was appended, epoch ms; 0 when there is none. */
  lastAtMs: number
  /** The next frame is torn or altered: nothing behind it can be trusted. */
  broken: boolean
  /** The first frame is larger than what was read: read this many bytes. 0 otherwise. */
  wanted: number
}

export interface BatchLimits {
  records: number
  /** No frame is longer: a length above it is damage, not a large record. */
  recordBytes: number
}

/**
 * Reads frames from the start of `bytes` and turns them, in place, into newline-delimited JSON: a line is shorter than
 * its frame, so the output never overtakes the input and the batch needs no second buffer.
 *
 * @param last whether the segment ends where `bytes` end: an incomplete frame there is torn, elsewhere just not read.
 */
export function takeBatch(bytes: Buffer, last: boolean, limits: BatchLimits): Batch {
  const batch: Batch = { body: bytes, records: 0, consumed: 0, lastAtMs: 0, broken: false, wanted: 0 }
  let out = 0
  while (batch.records < limits.records && batch.consumed < bytes.length) {
    const at = batch.consumed
    const head = bytes.length - at >= HEADER_BYTES ? bytes.readUInt32LE(at) : null
    const length = head === null ? -1 : head & LENGTH_MASK
    const records = head === null ? 0 : (head >>> LENGTH_BITS) + 1
    if (batch.records > 0 && batch.records + records > limits.records) break
    const end = at + HEADER_BYTES + length
    const plausible = length <= limits.recordBytes && length !== 0
    if (length === -1 || (plausible && end > bytes.length)) {
      if (last) batch.broken = true
      else if (batch.records === 0) batch.wanted = length === -1 ? HEADER_BYTES : end - at
      break
    }
    if (!plausible || crc32(bytes.subarray(at + TIME_AT, end)) !== bytes.readUInt32LE(at + CRC_AT)) {
      batch.broken = true
      break
    }
    batch.lastAtMs = bytes.readDoubleLE(at + TIME_AT)
    bytes.copyWithin(out, at + HEADER_BYTES, end)
    out += length
    bytes[out++] = NEWLINE
    batch.consumed = end
    batch.records += records
  }
  batch.body = bytes.subarray(0, out)
  return batch
}

/** The lines of a batch, without their newlines. JSON.stringify never writes a raw newline. */
export function linesOf(body: Buffer): Buffer[] {
  const lines: Buffer[] = []
  for (let start = 0; start < body.length; ) {
    const end = body.indexOf(NEWLINE, start)
    lines.push(body.subarray(start, end))
    start = end + 1
  }
  return lines
}
