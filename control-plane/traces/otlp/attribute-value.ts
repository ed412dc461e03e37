import { cleanText } from '../payload.js'
import { malformed } from './malformed.js'
import { isLong } from './wire-types.js'

/** Plain JSON values under the attributes' own names. No prototype: names come from outside. */
export type Attributes = Record<string, unknown>

/**
 * An empty one. A constructor with an empty prototype, because V8 keeps what `Object.create(null)` makes as a hash table:
 * with two of those a span took 3.7 KB and 3 µs more to fill, walk and print.
 */
export const newAttributes = (): Attributes => new Bare()
const Bare = function Bare() {} as unknown as new () => Attributes
Bare.prototype = Object.create(null)

/** Counts an upper bound of the JSON text of what was read, in UTF-16 units. */
export interface Meter {
  units: number
}

/** Anything of a decoded request: a protobuf message or the JSON that stands for one. */
export type Raw = Readonly<Record<string, unknown>>

/** A value of more levels becomes a text that says so; stored JSON is cut at the same depth (payload.ts). */
const MAX_DEPTH = 64
const TOO_DEEP = '[NESTED TOO DEEPLY]'
/** Quotes, commas, a number of any form. */
const SCALAR_UNITS = 32

/**
 * A list of KeyValue as an object; of two values of one key the later stays. A `__proto__` key is dropped, as from every
 * JSON body.
 */
export function attributesOf(list: unknown, meter: Meter, depth = 0): Attributes {
  const attributes = newAttributes()
  for (const member of rawList(list, 'attributes')) {
    const { key, value } = member
    if (typeof key !== 'string') throw malformed('an attribute has no key')
    const name = textOf(key, meter)
    if (name !== '__proto__') attributes[name] = anyValue(value, meter, depth)
  }
  return attributes
}

/** A repeated field; absent is empty. @throws AppError when it is something else. */
export function rawList(value: unknown, name: string): readonly Raw[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw malformed(`${name} is not an array`)
  for (const member of value) {
    if (typeof member !== 'object' || member === null) throw malformed(`${name} holds what is not an object`)
  }
  return value as Raw[]
}

/** A message field; absent is null. */
export function rawMessage(value: unknown, name: string): Raw | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'object' || Array.isArray(value)) throw malformed(`${name} is not an object`)
  return value as Raw
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what it is about.
const needsCleaning = /[\u0000\ud800-\udfff]/

/** Text that PostgreSQL takes: NUL and lone surrogates become U+FFFD. */
export function textOf(text: string, meter: Meter): string {
  // Every unit may need an escape of six.
  meter.units += 6 * text.length + 4
  return needsCleaning.test(text) ? cleanText(text) : text
}

/** An AnyValue: whichever of its fields is set; none is null. */
function anyValue(value: unknown, meter: Meter, depth: number): unknown {
  const any = rawMessage(value, 'an attribute’s value')
  if (any === null) return null
  meter.units += SCALAR_UNITS
  const { stringValue, boolValue, intValue, doubleValue, arrayValue, kvlistValue, bytesValue } = any
  if (typeof stringValue === 'string') return textOf(stringValue, meter)
  if (isSet(intValue)) return integer(intValue)
  if (isSet(boolValue)) return boolValue === true || boolValue === 'true'
  if (isSet(doubleValue)) return double(doubleValue)
  if (isSet(bytesValue)) return bytes(bytesValue, meter)
  const isList = isSet(arrayValue)
  if (!isList && !isSet(kvlistValue)) return null
  if (depth >= MAX_DEPTH) return TOO_DEEP
  if (!isList) {
    return attributesOf(rawMessage(kvlistValue, 'kvlistValue')?.values, meter, depth + 1)
  }
  const members = rawList(rawMessage(arrayValue, 'arrayValue')?.values, 'arrayValue.values')
  return members.map(member => anyValue(member, meter, depth + 1))
}

const isSet = (value: unknown) => value !== undefined && value !== null

/** int64: a Long from protobuf, a decimal text or a number from JSON. Beyond 2^53 it stays text, to lose nothing. */
function integer(value: unknown): unknown {
  if (typeof value === 'number') return finite(value)
  if (isLong(value)) {
    const whole = value.high * 2 ** 32 + (value.low >>> 0)
    if (Number.isSafeInteger(whole)) return whole
  }
  const text = String(value)
  if (!/^-?\d{1,20}$/.test(text)) throw malformed('an intValue is not an integer')
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : text
}

/** JSON has no NaN and no infinities: both of OTLP's forms say them by name. */
function double(value: unknown): unknown {
  if (typeof value === 'number') return finite(value)
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return value
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN
  if (Number.isNaN(number)) throw malformed('a doubleValue is not a number')
  return finite(number)
}

const finite = (value: number) => (Number.isFinite(value) ? value : String(value))

/** Base64, as OTLP's JSON form has it. */
function bytes(value: unknown, meter: Meter): string {
  if (value instanceof Uint8Array) {
    const text = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
    meter.units += text.length
    return text
  }
  if (typeof value !== 'string') throw malformed('a bytesValue is not base64 text')
  return textOf(value, meter)
}
