import { BrokenAnswer, type Completion } from './adapter.js'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  stringEnd,
  valueEnd,
} from './json-text.js'
import { bucketsOf, withCachedTokens } from './usage.js'
import { asList, asObject, asText, isObject, type Json, parseJson } from './wire-values.js'

/** Usage closes an answer: with all details and indented it takes some 600 bytes. */
const TAIL_BYTES = 2048
/** `choices` follows id, object, created and model; providers with more before it take the slow way. */
const HEAD_BYTES = 512

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

/** @returns null when anything is unusual. Takes for granted only that a body which opens and closes as JSON is JSON. */
function glanced(body: Buffer): Completion | null {
  const { length } = body
  if (!opensWithChoices(body.toString('latin1', 0, Math.min(length, HEAD_BYTES)))) return null
  const tailStart = Math.max(0, length - TAIL_BYTES)
  const tail = body.toString('latin1', tailStart, length)
  const key = tail.lastIndexOf('"usage"')
  const open = keyValue(tail, key, 7)
  if (open < 0 || tail.charCodeAt(open) !== OPEN_BRACE) return null
  const close = valueEnd(tail, open)
  if (close < 0 || !closesTopLevel(tail, close)) return null

  const reason = finishReason(tail, key)
  if (reason === undefined) return null
  // One character a byte is right for counts; what is written anew is read as the UTF-8 that it is.
  const tokens = bucketsOf(parseJson(tail.slice(open, close)))
  if (tokens === null) return null
  if (tokens.cacheRead === 0) return new OpenAiCompletion(body, tokens, reason)
  const usage = parseJson(body.toString('utf8', tailStart + open, tailStart + close))
  const shown = withCachedTokens(usage as Json)
  if (shown === null) return new OpenAiCompletion(body, tokens, reason)
  const bytes = Buffer.concat([
    body.subarray(0, tailStart + open),
    Buffer.from(JSON.stringify(shown)),
    body.subarray(tailStart + close),
  ])
  return new OpenAiCompletion(bytes, tokens, reason)
}

/**
 * @param before where the key of usage starts: the choices must end just before it.
 * @returns the last choice's reason, null when it has none, undefined when there is no telling.
 */
function finishReason(tail: string, before: number): string | null | undefined {
  const at = keyValue(tail, tail.lastIndexOf('"finish_reason"', before), 15)
  const end = at < 0 ? -1 : valueEnd(tail, at)
  if (end < 0 || !/^[^[\]{}]*\}\s*\]\s*,\s*$/.test(tail.slice(end, before))) return undefined
  if (tail.startsWith('null', at)) return null
  const reason = tail.slice(at + 1, end - 1)
  return tail.charCodeAt(at) === QUOTE && /^[a-z_]+$/i.test(reason) ? reason : undefined
}

/**
 * `"name"` with plain quotes cannot stand inside a JSON string, where every quote has a backslash before it: the first
 * quote is checked for one, the last follows the name. With a colon behind it, it is a key.
 *
 * @param key offset of the opening quote. `length`: of the name with its quotes.
 * @returns the offset of the value's first character, or -1. An offset of 0 hides what precedes: -1 too.
 */
function keyValue(text: string, key: number, length: number): number {
  if (key <= 0 || text.charCodeAt(key - 1) === BACKSLASH) return -1
  const colon = skipSpace(text, key + length)
  return text.charCodeAt(colon) === COLON ? skipSpace(text, colon + 1) : -1
}

/** Whether what follows a member's value closes one object, and then the text: the member is a top-level one. */
function closesTopLevel(text: string, from: number): boolean {
  let depth = 1
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const end = stringEnd(text, at + 1)
      if (end < 0) return false
      at = end - 1
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (--depth === 0) return code === CLOSE_BRACE && skipSpace(text, at + 1) === text.length
    }
  }
  return false
}

/** Whether `choices` is a top-level array that begins in this text. */
function opensWithChoices(head: string): boolean {
  let at = skipSpace(head, 0)
  if (head.charCodeAt(at++) !== OPEN_BRACE) return false
  for (;;) {
    at = skipSpace(head, at)
    if (head.charCodeAt(at) === COMMA) at = skipSpace(head, at + 1)
    if (head.charCodeAt(at) !== QUOTE) return false
    const isChoices = head.startsWith('"choices"', at)
    const keyEnd = stringEnd(head, at + 1)
    if (keyEnd < 0) return false
    const colon = skipSpace(head, keyEnd)
    if (head.charCodeAt(colon) !== COLON) return false
    at = skipSpace(head, colon + 1)
    if (isChoices) return head.charCodeAt(at) === OPEN_BRACKET
    at = valueEnd(head, at)
    if (at < 0) return false
  }
}
