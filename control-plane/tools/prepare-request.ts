import type { HttpExecutor } from '../../shared/contract/tools.js'
import type { Sandbox } from '../sandbox/sandbox.js'
import type { Arguments, DraftRequest, Method } from './build-request.js'
import { isHeaderValue, refusedHeaderName, utf8Bytes } from './header-check.js'
import type { OutboundRequest } from './outbound-call.js'
import { percentEncoded } from './percent-encoding.js'
import type { SecretSlots } from './secret-slots.js'
import { failure, type ToolFailure } from './tool-failure.js'

export type Prepared = { ok: true; request: OutboundRequest } | { ok: false; failure: ToolFailure }

const methods: ReadonlySet<string> = new Set<Method>(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])

/** Why what a requestTransform returned cannot be sent. */
class Unsendable extends Error {}

/**
 * The request that leaves: the draft, or what the requestTransform makes of it, with the secrets filled in last.
 *
 * Secrets go to the origin that the version's url names and nowhere else: a transform that moves the call to another one
 * can take no placeholder there.
 */
export async function prepareRequest(
  sandbox: Sandbox,
  teamId: string,
  executor: HttpExecutor,
  draft: DraftRequest,
  args: Arguments,
  slots: SecretSlots,
): Promise<Prepared> {
  const refused = (message: string): Prepared => ({
    ok: false,
    failure: failure('transform', 'request_transform', `requestTransform: ${message}`),
  })
  let final = draft
  if (executor.requestTransform !== undefined) {
    const input = { ...draft, headers: joined(draft.headers, true), query: joined(draft.query, false), args }
    const verdict = await sandbox.runTransform(executor.requestTransform, input, teamId)
    if (!verdict.ok) return refused(verdict.message)
    try {
      final = readRequest(verdict.value, draft)
      refuseMovedSecrets(final, draft, slots)
    } catch (error) {
      if (error instanceof Unsendable) return refused(error.message)
      throw error
    }
  }
  try {
    return { ok: true, request: outboundOf(final, slots) }
  } catch (error) {
    if (!(error instanceof Unsendable)) throw error
    return { ok: false, failure: failure('transform', 'request_invalid', error.message) }
  }
}

/** Pairs as an object of strings (spec 4, section 9 Tools); a repeated name's values are joined by commas. */
function joined(pairs: DraftRequest['headers'], lowerCase: boolean): Record<string, string> {
  const values = new Map<string, string[]>()
  for (const [given, value] of pairs) {
    const name = lowerCase ? given.toLowerCase() : given
    values.set(name, [...(values.get(name) ?? []), value])
  }
  return Object.fromEntries([...values].map(([name, texts]) => [name, texts.join(lowerCase ? ', ' : ',')]))
}

/** What a transform returned; a field that it left out stays as it was. */
function readRequest(value: unknown, draft: DraftRequest): DraftRequest {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Unsendable('it must return the request to send: an object.')
  }
  const given = value as Record<string, unknown>
  const url = given.url ?? draft.url
  if (typeof url !== 'string' || !URL.canParse(url)) throw new Unsendable('url must be an absolute URL.')
  const method = String(given.method ?? draft.method).toUpperCase()
  if (!methods.has(method)) throw new Unsendable('method must be GET, HEAD, POST, PUT, PATCH or DELETE.')
  return {
    url,
    method: method as Method,
    headers: given.headers === undefined ? draft.headers : readPairs(given.headers, 'headers'),
    query: given.query === undefined ? draft.query : readPairs(given.query, 'query'),
    body: given.body === undefined ? draft.body : given.body,
  }
}

/** An object of strings, numbers, booleans or arrays of them; null leaves a name out. */
function readPairs(value: unknown, field: string): [string, string][] {
  if (value === null) return []
  if (typeof value !== 'object' || Array.isArray(value))
    throw new Unsendable(`${field} must be an object of strings.`)
  return Object.entries(value).flatMap(([name, member]) =>
    (Array.isArray(member) ? member : [member]).flatMap((item: unknown): [string, string][] => {
      if (item === null) return []
      if (typeof item === 'object') throw new Unsendable(`${field}.${name} must be text.`)
      return [[name, String(item)]]
    }),
  )
}

function refuseMovedSecrets(final: DraftRequest, draft: DraftRequest, slots: SecretSlots): void {
  const isMoved = new URL(final.url).origin !== new URL(draft.url).origin
  if (isMoved && slots.isIn(JSON.stringify(final))) {
    throw new Unsendable(
      'it moved the call to another origin; secrets go to the origin of the version’s url only.',
    )
  }
}

function outboundOf(
  { url: template, method, headers, query, body }: DraftRequest,
  slots: SecretSlots,
): OutboundRequest {
  const url = new URL(slots.fill(template, percentEncoded))
  url.hash = ''
  const pairs = query.map(pair => pair.map(text => percentEncoded(slots.fill(text))).join('='))
  const search = [url.search.slice(1), ...pairs].filter(part => part !== '').join('&')
  url.search = search
  const sent = method === 'GET' || method === 'HEAD' ? null : bodyText(body, slots)
  return { url, method, headers: headersOf(headers, slots, sent?.type ?? null), body: sent?.text ?? null }
}

function bodyText(body: unknown, slots: SecretSlots): { text: string; type: string } | null {
  if (body === null || body === undefined) return null
  if (typeof body === 'string') return { text: slots.fill(body), type: 'text/plain; charset=utf-8' }
  return { text: JSON.stringify(slots.fillJson(body)), type: 'application/json' }
}

function headersOf(
  pairs: DraftRequest['headers'],
  slots: SecretSlots,
  bodyType: string | null,
): [string, string][] {
  const sent = pairs.map(([name, value]): [string, string] => {
    const refused = refusedHeaderName(name)
    if (refused !== null) throw new Unsendable(`header ${JSON.stringify(name.slice(0, 64))}: ${refused}`)
    const bytes = utf8Bytes(slots.fill(value))
    if (isHeaderValue(bytes)) return [name.toLowerCase(), bytes]
    throw new Unsendable(`header '${name}' would hold a line break or a control character.`)
  })
  const named = new Set(sent.map(([name]) => name))
  const defaults: [string, string][] = [
    ['user-agent', 'agh'],
    ['accept', '*/*'],
    // Nothing to unpack, nothing to blow up.
    ['accept-encoding', 'identity'],
  ]
  if (bodyType !== null) defaults.push(['content-type', bodyType])
  return [...sent, ...defaults.filter(([name]) => !named.has(name))]
}
