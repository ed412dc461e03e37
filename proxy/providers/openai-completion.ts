import { BrokenAnswer, type Completion } from './adapter.js'
import {
  BACKSLASH,
  byteAt,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  standsAt,
  stringEnd,
  valueEnd,
} from './json-text.js'
import { bucketsOf, withCachedTokens } from './usage.js'
import { asList, asObject, asText, isObject, type Json, parseJson } from './wire-values.js'

/** Usage closes an answer: with all details and indented it takes some 600 bytes. */
const TAIL_BYTES = 2048
/** `choices` follows id, object, created and model; providers with more before it take the slow way. */
const HEAD_BYTES = 512

const CHOICES = Buffer.from('"choices"')
const USAGE = '"usage"'
const FINISH_REASON = '"finish_reason"'
const NULL = Buffer.from('null')

/**
 * A plain answer. Parsing the body is what costs most of a call's CPU after the sockets (40 µs per 100 KB), so the body
 * is only looked at where it tells something: `choices` in its head, usage and finish reason in its tail. Whatever is
 * not plainly where it usually is goes through JSON.parse.
 *
 * @throws BrokenAnswer when it is no JSON object with `choices`.
 */
export function openAiCompletion(body: Buffer): Completion {
  return glanced(body) ?? parsed(body)
}

class OpenAiCompletion implements Completion {
  #value: Json | null = null

  constructor(
    readonly bytes: Buffer,
    readonly tokens: Completion['tokens'],
    readonly finishReason: string | null,
  ) {}

  value(): Json {
    this.#value ??= JSON.parse(this.bytes.toString('utf8')) as Json
    return this.#value
  }
}

function parsed(body: Buffer): Completion {
  const value = parseJson(body.toString('utf8'))
  if (!isObject(value)) throw new BrokenAnswer('it is not a JSON object.')
  if (!Array.isArray(value.choices)) throw new BrokenAnswer('it has no choices.')
  const shown = isObject(value.usage) ? withCachedTokens(value.usage) : null
  const bytes = shown === null ? body : Buffer.from(JSON.stringify({ ...value, usage: shown }))
  const reason = asText(asObject(asList(value.choices).at(-1)).finish_reason)
  return new OpenAiCompletion(bytes, bucketsOf(value.usage), reason === '' ? null : reason)
}

/**
 * Usage is looked for backwards, and from its key to the end the text is parsed as an object of its own: if that is JSON,
 * one brace closed it and nothing followed, so usage is a member of the answer itself. The search and the parse are
 * native: 13 thousand of 40 thousand instructions less than a walk over the bytes.
 *
 * @returns null when anything is unusual. Takes for granted only that a body which opens and closes as JSON is JSON.
 */
function glanced(body: Buffer): Completion | null {
  if (!opensWithChoices(body)) return null
  const floor = Math.max(0, body.length - TAIL_BYTES)
  // One character a byte: offsets are the body's, and counts and names are read right.
  const tail = body.toString('latin1', floor)
  const found = tail.lastIndexOf(USAGE)
  const open = found < 0 ? -1 : keyValue(body, floor + found, USAGE.length)
  if (open < 0 || byteAt(body, open) !== OPEN_BRACE) return null
  const reason = finishReason(body, floor + found, floor + tail.lastIndexOf(FINISH_REASON, found), floor)
  if (reason === undefined) return null
  const end = parseJson(`{${tail.slice(found)}`)
  if (!isObject(end) || end.choices !== undefined) return null
  const tokens = bucketsOf(end.usage)
  if (tokens === null) return null
  const bytes = tokens.cacheRead === 0 ? body : withUsageShown(body, open)
  return new OpenAiCompletion(bytes, tokens, reason)
}

/** @param open where the object of usage opens. */
function withUsageShown(body: Buffer, open: number): Buffer {
  const close = valueEnd(body, open)
  // What is written anew is read as the UTF-8 that it is.
  const shown = withCachedTokens(parseJson(body.toString('utf8', open, close)) as Json)
  if (shown === null) return body
  return Buffer.concat([body.subarray(0, open), Buffer.from(JSON.stringify(shown)), body.subarray(close)])
}

/**
 * @param before where the key of usage starts: the choices must end just before it.
 * @param key where the last key of a reason before it starts; anything below `floor` when there is none.
 * @returns the last choice's reason, null when it has none, undefined when there is no telling.
 */
function finishReason(body: Buffer, before: number, key: number, floor: number): string | null | undefined {
  const at = key < floor ? -1 : keyValue(body, key, FINISH_REASON.length)
  const end = at < 0 ? -1 : valueEnd(body, at)
  if (end < 0 || !closesChoices(body, end, before)) return undefined
  if (standsAt(body, at, NULL)) return null
  if (byteAt(body, at) !== QUOTE) return undefined
  const reason = body.toString('latin1', at + 1, end - 1)
  return /^[a-z_]+$/i.test(reason) ? reason : undefined
}

/** Whether from here on only the rest of a choice comes, with plain members, and then `}`, `]` and a comma. */
function closesChoices(body: Buffer, from: number, before: number): boolean {
  let at = from
  for (; at < before; at++) {
    const code = body[at]
    if (code === CLOSE_BRACE) break
    if (code === OPEN_BRACE || code === OPEN_BRACKET || code === CLOSE_BRACKET) return false
  }
  at = skipSpace(body, at + 1)
  if (byteAt(body, at) !== CLOSE_BRACKET) return false
  at = skipSpace(body, at + 1)
  return byteAt(body, at) === COMMA && skipSpace(body, at + 1) === before
}

/**
 * `"name"` with plain quotes cannot stand inside a JSON string, where every quote has a backslash before it: the first
 * quote is checked for one, the last follows the name. With a colon behind it, it is a key.
 *
 * @param key offset of the opening quote, or -1. `length`: of the name with its quotes.
 * @returns the offset of the value's first character, or -1.
 */
function keyValue(body: Buffer, key: number, length: number): number {
  if (key <= 0 || body[key - 1] === BACKSLASH) return -1
  const colon = skipSpace(body, key + length)
  return byteAt(body, colon) === COLON ? skipSpace(body, colon + 1) : -1
}

/** Whether `choices` is a top-level array that begins near the start of the body. */
function opensWithChoices(body: Buffer): boolean {
  let at = skipSpace(body, 0)
  if (byteAt(body, at++) !== OPEN_BRACE) return false
  while (at < HEAD_BYTES) {
    at = skipSpace(body, at)
    if (byteAt(body, at) === COMMA) at = skipSpace(body, at + 1)
    if (byteAt(body, at) !== QUOTE) return false
    const isChoices = standsAt(body, at, CHOICES)
    const keyEnd = stringEnd(body, at + 1)
    if (keyEnd < 0) return false
    const colon = skipSpace(body, keyEnd)
    if (byteAt(body, colon) !== COLON) return false
    at = skipSpace(body, colon + 1)
    if (isChoices) return byteAt(body, at) === OPEN_BRACKET
    at = valueEnd(body, at)
    if (at < 0) return false
  }
  return false
}
