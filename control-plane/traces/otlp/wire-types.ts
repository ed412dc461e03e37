import { malformed } from './malformed.js'

/**
 * An id as lower-case hex: bytes from protobuf; from JSON hex in either case, as OTLP says, or the base64 that protobuf's
 * generic JSON printers write (24 and 12 characters, so the two are never confused).
 *
 * @returns null when it is absent, empty or all zeros, which OpenTelemetry calls invalid.
 */
export function hexId(value: unknown, bytes: 8 | 16, name: string): string | null {
  if (value === undefined || value === null || value === '') return null
  const hex = value instanceof Uint8Array ? hexOfBytes(value) : hexOfText(value, bytes)
  if (hex === '') return null
  if (hex === null || hex.length !== 2 * bytes) throw malformed(`${name} is not an id of ${bytes} bytes`)
  return zeros.test(hex) ? null : hex
}

const zeros = /^0+$/

const hexOfBytes = (value: Uint8Array) =>
  Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')

function hexOfText(value: unknown, bytes: number): string | null {
  if (typeof value !== 'string') return null
  if (value.length === 2 * bytes && /^[0-9a-f]+$/i.test(value)) return value.toLowerCase()
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(value)) return null
  const decoded = Buffer.from(value, 'base64')
  return decoded.length === bytes ? decoded.toString('hex') : null
}

/** What protobufjs makes of a 64-bit integer: two halves, each with a sign. */
interface Long {
  low: number
  high: number
}

export const isLong = (value: unknown): value is Long =>
  typeof value === 'object' && value !== null && 'low' in value && 'high' in value

/** The latest millisecond that four digits of a year can say; PostgreSQL takes it. */
const LATEST_MS = 253_402_300_799_999

/**
 * Unix nanoseconds as whole milliseconds: a Long from protobuf, a decimal text or a number from JSON.
 *
 * @returns null when it is absent or 0, which is how OTLP says that there is none.
 */
export function unixMs(value: unknown, name: string): number | null {
  if (value === undefined || value === null) return null
  const ms = Math.min(LATEST_MS, wholeMs(value, name))
  return ms === 0 ? null : ms
}

function wholeMs(value: unknown, name: string): number {
  if (isLong(value)) {
    // 2^32 ns are 4294 ms and 967296 ns; every product here stays below 2^53, so this is exact.
    const [high, low] = [value.high >>> 0, value.low >>> 0]
    return high * 4294 + Math.floor((high * 967_296 + low) / 1_000_000)
  }
  if (typeof value === 'number' && value >= 0 && Number.isFinite(value)) {
    // A number of today's size is exact to 256 ns: it may lie just below the millisecond that was meant.
    return Math.floor(Math.round(value / 1000) / 1000)
  }
  if (typeof value === 'string' && /^\d{1,20}$/.test(value)) return Number(BigInt(value) / 1_000_000n)
  throw malformed(`${name} is not a time in nanoseconds`)
}
