import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { buildConnector, Client, type Dispatcher } from 'undici'
import { Blocked, guardedConnect, guardedLookup } from '../../shared/network/guarded-connect.js'
import { type OutboundRules, policyOf, refusedText } from './outbound-url.js'

/**
 * One HTTP call to a URL that a user wrote (reliability notes, 5.3). The address is checked when the socket is opened,
 * on the very address that is dialled; redirects are answers and never followed; a connection serves one call, so there
 * is none that went stale and none that outlives its check.
 */

export interface OutboundRequest {
  url: URL
  method: Dispatcher.HttpMethod
  /** Lower-case names; values are bytes, a character each. */
  headers: readonly [name: string, value: string][]
  body: string | null
}

export interface OutboundResponse {
  status: number
  /** Lower-case names; repeated headers joined by `, `. */
  headers: Record<string, string>
  /** Decoded as UTF-8; '' when there is none. */
  text: string
}

/** Why there is no response. `code` is what the span says. */
export class OutboundError extends Error {
  constructor(
    readonly code:
      | 'address_refused'
      | 'dns_failure'
      | 'connection_refused'
      | 'connection_reset'
      | 'timeout'
      | 'response_too_large'
      | 'response_broken'
      | 'tls_failure'
      | 'client_disconnected',
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause })
    this.name = 'OutboundError'
  }
}

const CONNECT_MS = 3_000
/** To the first byte, and between any two chunks. */
const SILENCE_MS = 5_000
/** From start to end: a server that sends a byte every four seconds is not waited for. */
const TOTAL_MS = 15_000
const RESPONSE_BYTES = 1024 * 1024
const HEADER_BYTES = 32 * 1024

/**
 * @param signal ends the call when whoever asked for it is gone.
 * @throws OutboundError
 */
export async function callUrl(
  rules: OutboundRules,
  request: OutboundRequest,
  signal: AbortSignal,
): Promise<OutboundResponse> {
  const refused = refusedText(request.url, rules)
  if (refused !== null)
    throw new OutboundError('address_refused', `The executor's URL cannot be called: ${refused}`)
  const client = clientFor(request.url, rules)
  try {
    const { statusCode, headers, body } = await client.request({
      path: request.url.pathname + request.url.search,
      method: request.method,
      headers: request.headers.flat(),
      body: request.body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(TOTAL_MS)]),
    })
    const bytes = Buffer.from(await body.arrayBuffer())
    const plain = joined(headers)
    return { status: statusCode, headers: plain, text: await decoded(bytes, plain['content-encoding']) }
  } catch (error) {
    throw outboundError(error, signal)
  } finally {
    client.destroy().catch(() => {})
  }
}

function clientFor(url: URL, rules: OutboundRules): Client {
  const policy = policyOf(url, rules)
  const lookup = guardedLookup(policy, rules.resolve)
  // `lookup` is an option of the sockets, which undici hands down.
  const base = buildConnector({ timeout: CONNECT_MS, allowH2: false, lookup } as buildConnector.BuildOptions)
  return new Client(url.origin, {
    connect: guardedConnect(base, policy),
    pipelining: 0,
    headersTimeout: SILENCE_MS,
    bodyTimeout: SILENCE_MS,
    maxResponseSize: RESPONSE_BYTES,
    maxHeaderSize: HEADER_BYTES,
  })
}

function joined(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}

const unpackers: Readonly<
  Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>
> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
}

/** Some servers compress whatever was asked for; the bound holds for what comes out. */
async function decoded(bytes: Buffer, encoding: string | undefined): Promise<string> {
  const name = encoding?.trim().toLowerCase() ?? ''
  if (name === '' || name === 'identity' || bytes.length === 0) return bytes.toString('utf8')
  const unpack = Object.hasOwn(unpackers, name) ? unpackers[name] : undefined
  if (unpack === undefined)
    throw new OutboundError('response_broken', 'The response has an unknown content-encoding.')
  return (await unpack(bytes, { maxOutputLength: RESPONSE_BYTES })).toString('utf8')
}

/** By code and name only: messages of sockets name addresses, those of parsers quote bytes. */
function outboundError(error: unknown, signal: AbortSignal): OutboundError {
  if (error instanceof OutboundError) return error
  if (signal.aborted) return new OutboundError('client_disconnected', 'The caller went away.', error)
  if (error instanceof Blocked) {
    return new OutboundError(
      'address_refused',
      `The executor's URL cannot be called: ${error.message}.`,
      error,
    )
  }
  const { code = '', name = '' } = error as { code?: string; name?: string }
  const [kind, message] = kinds.find(([codes]) => codes.test(`${code} ${name}`))?.[1] ?? unknownKind
  return new OutboundError(kind, message, error)
}

type Kind = [OutboundError['code'], string]

const kinds: readonly [RegExp, Kind][] = [
  [/ENOTFOUND|EAI_|ENODATA/, ['dns_failure', 'The host has no address.']],
  [
    /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL/,
    ['connection_refused', 'The host refused the connection.'],
  ],
  [/TIMEOUT|TimeoutError|ETIMEDOUT/, ['timeout', 'The upstream did not answer in time.']],
  [/EXCEEDED_MAX_SIZE|ERR_BUFFER_TOO_LARGE/, ['response_too_large', 'The response is larger than 1 MB.']],
  [/CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO_/, ['tls_failure', 'No trusted TLS connection could be made.']],
  [
    /HTTPParser|HPE_|Z_|ERR__ERROR|HEADERS_OVERFLOW|CONTENT_LENGTH/,
    ['response_broken', 'The response is not valid HTTP.'],
  ],
]
const unknownKind: Kind = ['connection_reset', 'The connection was lost.']
