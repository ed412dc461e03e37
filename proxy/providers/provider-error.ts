import type { ProviderFailure, UpstreamHeaders } from './adapter.js'
import { asList, asObject, asText, isObject, type Json, parseJson } from './wire-values.js'

/** A provider's own words in an answer of ours are cut here. */
const TEXT_CHARACTERS_MAX = 2000

/** The client's own mistakes: forwarded with the provider's message (spec 3, completions; spec 4, section 9). */
const FORWARDED = new Set([400, 404, 413, 422])

/** What provider keys look like: no text of a provider leaves with one in it, whoever's it is. */
const KEY_SHAPES = /\b(?:(?:sk|rk|pk|xai|gsk)[-_]|agh(?:api)?_sk_|AIza)[A-Za-z0-9_*-]{8,}|\bBearer\s+\S{8,}/g

/**
 * A non-2xx answer of any vendor: 400, 404, 413 and 422 forwarded, 429 with its reason and wait, a refused credential
 * named as what it is with nothing of the body, everything else summarised as 502.
 *
 * @param body of any content type: OpenAI's and Anthropic's `{ error: { message } }`, Google's with `details` (also in
 *   an array, from its OpenAI-compatible endpoint), vLLM's `{ message }`, FastAPI's `{ detail }`, or plain text.
 * @param apiKey the connection's key, taken out of the text should the provider repeat it.
 */
export function providerFailure(
  status: number,
  headers: UpstreamHeaders,
  body: Buffer,
  apiKey?: string,
): ProviderFailure {
  const parsed = parseJson(body.toString('utf8'))
  const answer = asObject(Array.isArray(parsed) ? parsed[0] : parsed)
  if (status === 401 || status === 403 || (status === 400 && refusesKey(answer))) {
    const message = "The provider refused the connection's credential."
    return { status: 502, code: 'PROVIDER_ERROR', message, retryAfterSeconds: null }
  }
  const said = providerText(messageOf(answer) ?? plainText(headers, body), apiKey)
  if (status === 429) {
    const message = said === '' ? 'The provider is rate limiting this connection.' : said
    const retryAfterSeconds = waitSeconds(headers, answer)
    return { status: 429, code: 'PROVIDER_RATE_LIMITED', message, retryAfterSeconds }
  }
  const summary = `The provider answered ${status}.`
  const forwarded = FORWARDED.has(status)
  return {
    status: forwarded ? status : 502,
    code: 'PROVIDER_ERROR',
    message: forwarded && said !== '' ? said : summary,
    retryAfterSeconds: null,
  }
}

/** @returns the provider's own sentence, or null when the object is not shaped like any vendor's error. */
export function messageOf(answer: Json): string | null {
  const { error, message, detail } = answer
  const candidates = [asObject(error).message, error, message, detail, asObject(asList(detail)[0]).msg]
  return candidates.map(asText).find(text => text !== '') ?? null
}

/** A provider's words, fit to be shown: cut, and free of keys. */
export function providerText(text: string, apiKey?: string): string {
  const exact = apiKey === undefined || apiKey === '' ? text : text.replaceAll(apiKey, '***')
  const clean = exact.replace(KEY_SHAPES, '***').trim()
  return clean.length > TEXT_CHARACTERS_MAX ? `${clean.slice(0, TEXT_CHARACTERS_MAX)}…` : clean
}

/** Some gateways answer in words; a page of markup says nothing to an API client. */
function plainText(headers: UpstreamHeaders, body: Buffer): string {
  return headers('content-type')?.startsWith('text/plain') ? body.toString('utf8') : ''
}

/**
 * Google reports a bad key as 400 INVALID_ARGUMENT with the reason in an ErrorInfo. Its OpenAI-compatible endpoint sends
 * no details, so there its fixed sentence is all that tells; reading it wrongly costs a client one helpful message.
 */
function refusesKey(answer: Json): boolean {
  const error = asObject(answer.error)
  const reasons = asList(error.details).map(detail => asText(asObject(detail).reason))
  if (reasons.some(reason => reason.startsWith('API_KEY_'))) return true
  return error.status === 'INVALID_ARGUMENT' && /^API key (?:not valid|expired)/.test(asText(error.message))
}

/** @returns whole seconds, at least 1, or null when the provider names no wait. */
function waitSeconds(headers: UpstreamHeaders, answer: Json): number | null {
  const seconds = [
    Number.parseFloat(headers('retry-after-ms') ?? '') / 1000,
    retryAfter(headers('retry-after')),
    retryInfo(answer),
  ].find(wait => Number.isFinite(wait) && wait >= 0)
  return seconds === undefined ? null : Math.max(1, Math.ceil(seconds))
}

/** Seconds or an HTTP date. */
function retryAfter(header: string | undefined): number {
  if (header === undefined) return Number.NaN
  if (/^\s*\d+(?:\.\d+)?\s*$/.test(header)) return Number(header)
  return Math.max(0, (Date.parse(header) - Date.now()) / 1000)
}

/** Google: `{ "@type": "…/google.rpc.RetryInfo", "retryDelay": "34s" }`. */
function retryInfo(answer: Json): number {
  const details = asList(asObject(answer.error).details).filter(isObject)
  const info = details.find(detail => asText(detail['@type']).endsWith('google.rpc.RetryInfo'))
  const delay = /^(\d+(?:\.\d+)?)s$/.exec(asText(info?.retryDelay))
  return delay === null ? Number.NaN : Number(delay[1])
}
