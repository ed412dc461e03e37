import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { wholeRecord } from '../../control-plane/calls/whole-record.js'
import type { DirectoryQuery } from '../../proxy/control-plane-client.js'
import type { CredentialRecord, TeamRecord } from '../../shared/directory/records.js'
import { deriveSecret, internalToken } from '../../shared/secrets/derive.js'
import { createVault } from '../../shared/secrets/vault.js'
import type { CallRecord } from '../../shared/spool/record.js'
import { linesOf } from './spool.js'

export const SECRET = 'a-secret-of-the-tests-of-more-than-32-bytes'
export const testVault = createVault([deriveSecret(SECRET, 'provider-keys')])

/**
 * The control plane as the proxy sees it, on a real port, so that a test decides what it answers, how late, or that it
 * is gone. What the real one answers is tested end to end.
 */
export interface StandIn {
  url: string
  /** By hash of the key or cookie. */
  readonly credentials: Map<string, CredentialRecord>
  readonly teams: Map<string, TeamRecord>
  readonly lookUps: DirectoryQuery[]
  readonly seeds: string[]
  readonly calls: CallRecord[]
  readonly traceOwners: Map<string, 'own' | 'foreign'>
  /** Called before a look-up is answered; a rejected promise answers 500. */
  beforeLookUp: () => Promise<void>
  /** Status of /internal/calls. */
  callsStatus: number
  close(): Promise<void>
  /** Listens again on the same port. */
  reopen(): Promise<void>
}

export async function standInControlPlane(t: Test): Promise<StandIn> {
  const standIn: StandIn = {
    url: '',
    credentials: new Map(),
    teams: new Map(),
    lookUps: [],
    seeds: [],
    calls: [],
    traceOwners: new Map(),
    beforeLookUp: async () => {},
    callsStatus: 200,
    close,
    reopen: async () => listen(Number(new URL(standIn.url).port)),
  }
  const server = createServer((request, response) => {
    respond(standIn, request).then(
      ({ status, body }) => response.writeHead(status, { 'content-type': 'application/json' }).end(body),
      () => response.writeHead(500).end('{}'),
    )
  })
  const listen = (port: number) => new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  standIn.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  function close(): Promise<void> {
    server.closeAllConnections()
    return new Promise(resolve => server.close(() => resolve()))
  }
  t.teardown(close)
  return standIn
}

async function respond(
  standIn: StandIn,
  request: IncomingMessage,
): Promise<{ status: number; body: string }> {
  const path = request.url ?? ''
  const text = await bodyOf(request)
  if (!path.startsWith('/internal/')) {
    return { status: 200, body: JSON.stringify({ forwarded: path, method: request.method }) }
  }
  if (request.headers.authorization !== `Bearer ${internalToken(SECRET)}`) return { status: 401, body: '{}' }
  const ok = (answer: unknown) => ({ status: 200, body: JSON.stringify(answer) })
  switch (path) {
    case '/internal/directory':
      return ok(await lookUp(standIn, JSON.parse(text) as DirectoryQuery))
    case '/internal/traces/owner': {
      const { traceId } = JSON.parse(text) as { traceId: string }
      return ok({ owner: standIn.traceOwners.get(traceId) ?? 'unknown' })
    }
    case '/internal/ledger/seed':
      standIn.seeds.push((JSON.parse(text) as { teamId: string }).teamId)
      return ok({ seeded: 0 })
    case '/internal/calls': {
      if (standIn.callsStatus !== 200) return { status: standIn.callsStatus, body: '{}' }
      const records = linesOf(text).map(wholeRecord) as CallRecord[]
      standIn.calls.push(...records)
      return ok({ accepted: records.length, rejected: 0 })
    }
    default:
      return { status: 404, body: '{}' }
  }
}

async function lookUp(standIn: StandIn, query: DirectoryQuery) {
  standIn.lookUps.push(query)
  await standIn.beforeLookUp()
  const credential = standIn.credentials.get(query.credential?.hash ?? '') ?? null
  const team = credential === null ? null : (standIn.teams.get(credential.teamId) ?? null)
  return { credential, team: team === null || team.epoch === query.knownEpoch ? null : team }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString()
}

/** A virtual key without limits. */
export const virtualKey = (teamId: string, over: Partial<CredentialRecord> = {}): CredentialRecord => ({
  id: '00000000-0000-4000-8000-000000000001',
  teamId,
  kind: 'virtual_key',
  userId: null,
  role: null,
  allowedModels: null,
  allowedProviders: null,
  maxRpm: null,
  maxTpm: null,
  cacheTtlSeconds: null,
  ...over,
})

/** A team with one model `fast`, priced at 0.15 and 0.6 USD per million tokens, on a provider at `baseUrl`. */
export const teamRecord = (teamId: string, baseUrl: string, over: Partial<TeamRecord> = {}): TeamRecord => ({
  teamId,
  epoch: 1,
  capturePayloads: false,
  redactKeys: [],
  connections: [
    {
      id: 'connection',
      provider: 'openai',
      baseUrl,
      sealedKey: testVault.seal('sk-provider', { teamId, rowId: 'connection' }),
    },
  ],
  models: [
    {
      id: 'model',
      publicName: 'fast',
      connectionId: 'connection',
      upstreamModel: 'gpt-test',
      pricing: {
        inputPerMTok: 0.15,
        outputPerMTok: 0.6,
        cachedInputPerMTok: null,
        cacheWritePerMTok: null,
      },
      maxOutputTokens: null,
      contextWindow: null,
      createdAtMs: 1_700_000_000_000,
      updatedAtMs: 1_700_000_000_000,
    },
  ],
  budgets: [],
  ...over,
})
