import { Pool } from 'undici'
import type { z } from 'zod'
import type { Endpoint } from '../shared/contract/endpoint.js'
import {
  lookUpDirectory,
  lookUpReferences,
  seedLedger,
  shipCalls,
  traceOwner,
} from '../shared/contract/internal.js'
import type { DirectoryAnswer, ReferencesAnswer } from '../shared/directory/records.js'
import { internalToken } from '../shared/secrets/derive.js'
import { directoryAnswer, referencesAnswer } from './directory/answer.js'
import type { ShipOutcome } from './spool/ship.js'

/**
 * The proxy's side of the internal endpoints.
 *
 * Failure stance: every call has a deadline, and every failure is one error, ControlPlaneAway, whatever its kind; the
 * callers decide what goes on without the control plane. Answers are checked for form: a broken one is a failure too,
 * so that what is in memory outlives it.
 */
export interface ControlPlaneClient {
  lookUp(query: DirectoryQuery): Promise<DirectoryAnswer>
  /** The stored prompt and tools that a call names, as they are now. */
  lookUpReferences(query: ReferencesQuery): Promise<ReferencesAnswer>
  traceOwner(teamId: string, traceId: string): Promise<'own' | 'foreign' | 'unknown'>
  seed(teamId: string): Promise<void>
  /** Rejects for what is worth another try; a batch that the control plane will not take is an answer. */
  ship(body: Buffer, signal: AbortSignal): Promise<ShipOutcome>
  /** Resolves when it answers at all. For readiness. */
  ping(): Promise<void>
  close(): Promise<void>
}

export type DirectoryQuery = z.input<typeof lookUpDirectory.body>
export type ReferencesQuery = z.input<typeof lookUpReferences.body>

/** The control plane did not answer, or not as it should. The cause says how. */
export class ControlPlaneAway extends Error {
  constructor(detail: string, cause?: unknown) {
    super(`The control plane cannot be used: ${detail}.`, { cause })
    this.name = 'ControlPlaneAway'
  }
}

/** A directory answer waits for a writer that is about to commit; writers have statement deadlines below this. */
const LOOK_UP_MS = 5_000
/** Ingestion of a full batch with its rollups, on a busy database. */
const SHIP_MS = 30_000
const PING_MS = 2_000
const CONNECT_MS = 2_000
const MAX_ANSWER_BYTES = 32 * 1024 * 1024
/** What the control plane answers to a batch whose content it will never take. */
const REFUSED = new Set([400, 422])
const TOO_LARGE = 413

/** @param origin CONTROL_PLANE_URL. @param aghSecret the internal token is derived from it. */
export function createControlPlaneClient(origin: string, aghSecret: string): ControlPlaneClient {
  const base = new URL(origin)
  const prefix = base.pathname.replace(/\/+$/, '')
  const authorization = `Bearer ${internalToken(aghSecret)}`
  const pool = new Pool(base.origin, {
    connections: 32,
    pipelining: 1,
    // Below the control plane's own: a connection is never used while the other end closes it.
    keepAliveTimeout: 4_000,
    connect: { timeout: CONNECT_MS },
    maxResponseSize: MAX_ANSWER_BYTES,
  })

  async function call(
    path: string,
    body: Buffer | string,
    type: string,
    signal: AbortSignal,
  ): Promise<Answer> {
    try {
      const headers = { authorization, 'content-type': type }
      const response = await pool.request({ method: 'POST', path: prefix + path, headers, body, signal })
      return { status: response.statusCode, text: await response.body.text() }
    } catch (error) {
      throw new ControlPlaneAway(signal.aborted ? 'no answer in time' : 'no connection', error)
    }
  }

  async function ask<E extends Endpoint>(endpoint: E, body: unknown): Promise<unknown> {
    const text = JSON.stringify(body)
    const send = () => call(endpoint.path, text, 'application/json', AbortSignal.timeout(LOOK_UP_MS))
    // Asking twice is harmless, and a kept-alive connection may have died since its last use.
    const answer = await send().catch(error => (isStaleConnection(error) ? send() : Promise.reject(error)))
    if (answer.status !== endpoint.status)
      throw new ControlPlaneAway(`it answered ${answer.status} to ${endpoint.path}`)
    return parsed(answer.text)
  }

  return {
    lookUp: async query => checked(directoryAnswer, await ask(lookUpDirectory, query)),
    lookUpReferences: async query => checked(referencesAnswer, await ask(lookUpReferences, query)),
    traceOwner: async (teamId, traceId) =>
      checked(traceOwner.response, await ask(traceOwner, { teamId, traceId })).owner,
    async seed(teamId) {
      await ask(seedLedger, { teamId })
    },
    async ship(body, signal) {
      const { signal: limit, done } = within(SHIP_MS, signal)
      try {
        const { status, text } = await call(shipCalls.path, body, 'application/x-ndjson', limit)
        if (status === 200) {
          return { kind: 'committed', rejected: checked(shipCalls.response, parsed(text)).rejected }
        }
        if (refusesBatch(status, text)) return { kind: 'refused', status }
        throw new ControlPlaneAway(`it answered ${status} to ${shipCalls.path}`)
      } finally {
        done()
      }
    },
    async ping() {
      try {
        const signal = AbortSignal.timeout(PING_MS)
        const response = await pool.request({ method: 'GET', path: `${prefix}/healthz`, signal })
        await response.body.dump()
      } catch (error) {
        throw new ControlPlaneAway('no answer', error)
      }
    },
    close: () => pool.destroy(),
  }
}

/**
 * Only the control plane's own word counts: a refused record is set aside for good, and whatever stands between the two
 * programs may answer 400 or 403 to everything for a while. A batch too large for one of them is sent in halves.
 */
const refusesBatch = (status: number, text: string): boolean =>
  status === TOO_LARGE || (REFUSED.has(status) && isOwnError(text))

function isOwnError(text: string): boolean {
  try {
    const { error } = JSON.parse(text) as { error?: { code?: unknown } }
    return typeof error?.code === 'string'
  } catch {
    return false
  }
}

interface Answer {
  status: number
  text: string
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ControlPlaneAway('its answer is not JSON', error)
  }
}

function checked<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw new ControlPlaneAway('its answer has an unknown form', result.error)
}

const isStaleConnection = (error: unknown): boolean => {
  const code = ((error as Error).cause as { code?: string } | undefined)?.code ?? ''
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE'
}

/** One controller per call, detached afterwards: AbortSignal.any on a long-lived signal leaks (node#55351). */
function within(ms: number, outer: AbortSignal): { signal: AbortSignal; done(): void } {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const timer = setTimeout(abort, ms)
  if (outer.aborted) abort()
  outer.addEventListener('abort', abort, { once: true })
  return {
    signal: controller.signal,
    done() {
      clearTimeout(timer)
      outer.removeEventListener('abort', abort)
    },
  }
}
