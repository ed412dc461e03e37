import { crc32 } from 'node:zlib'

/**
 * One record on disk: length of the JSON (u32) | CRC-32 of all that follows it (u32) | time of the append (f64, epoch
 * ms) | JSON. Little-endian. The time is there so that the age of what waits is known after a restart too.
 */
export const HEADER_BYTES = 16
const TIME_AT = 8
const NEWLINE = 10
/** UTF-16 units to UTF-8 bytes, at worst. */
const MAX_BYTES_PER_UNIT = 3
const SCRATCH_BYTES = 256 * 1024

/** Makes frames in one reused buffer: what it returns is valid until the next call. */
export function createFrameWriter(): (json: string, nowMs: number) => Buffer {
  const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
  return (json, nowMs) => {
    const fits = HEADER_BYTES + json.length * MAX_BYTES_PER_UNIT <= SCRATCH_BYTES
    const buffer = fits ? scratch : Buffer.allocUnsafeSlow(HEADER_BYTES + Buffer.byteLength(json))
    const length = buffer.write(json, HEADER_BYTES, 'utf8')
    const frame = buffer.subarray(0, HEADER_BYTES + length)
    frame.writeDoubleLE(nowMs, TIME_AT)
    frame.writeUInt32LE(length, 0)
    frame.writeUInt32LE(crc32(frame.subarray(TIME_AT)), 4)
    return frame
  }
}

/**
 * Makes the frames of several records, one behind the other, in one reused buffer: valid until the next call.
 *
 * @returns null when a record has no JSON, or all of them together are too large for the buffer.
 */
export function createTurnWriter(frameOf: (json: string, nowMs: number) => Buffer) {
  const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
  return (records: readonly (string | null)[], nowMs: number): Buffer | null => {
    let end = 0
    for (const json of records) {
      if (json === null) return null
      const frame = frameOf(json, nowMs)
      if (end + frame.length > SCRATCH_BYTES) return null
      end += frame.copy(scratch, end)
    }
    return scratch.subarray(0, end)
  }
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
    const length = bytes.length - at >= HEADER_BYTES ? bytes.readUInt32LE(at) : -1
    const end = at + HEADER_BYTES + length
    const plausible = length <= limits.recordBytes && length !== 0
    if (length === -1 || (plausible && end > bytes.length)) {
      if (last) batch.broken = true
      else if (batch.records === 0) batch.wanted = length === -1 ? HEADER_BYTES : end - at
      break
    }
    if (!plausible || crc32(bytes.subarray(at + TIME_AT, end)) !== bytes.readUInt32LE(at + 4)) {
      batch.broken = true
      break
    }
    batch.lastAtMs = bytes.readDoubleLE(at + TIME_AT)
    bytes.copyWithin(out, at + HEADER_BYTES, end)
    out += length
    bytes[out++] = NEWLINE
    batch.consumed = end
    batch.records++
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
