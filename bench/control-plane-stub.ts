/**
 * What a proxy asks of the control plane, answered from memory: the directory of one team with a scoped key, a budget
 * of every period and both rate limits, and a swallower of call records. The subject of the bench is the proxy; the real
 * control plane would share the load generator's core and slow the load, not the subject.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { DirectoryAnswer } from '../shared/directory/records.js'
import { connectLedger } from '../shared/ledger/connect.js'
import type { Ledger } from '../shared/ledger/ledger.js'
import { periodKey } from '../shared/ledger/period.js'
import { createLogger } from '../shared/log/logger.js'
import { deriveSecret } from '../shared/secrets/derive.js'
import { hashToken, mintKey, VIRTUAL_KEY_PREFIX } from '../shared/secrets/token.js'
import { createVault } from '../shared/secrets/vault.js'

export interface ControlPlaneStub {
  url: string
  virtualKey: string
  /** Records that proxies have shipped. */
  shipped(): number
  close(): Promise<void>
}

export interface StubOptions {
  aghSecret: string
  upstreamPort: number
  redisUrl?: string
  databaseUrl?: string
}

const GENEROUS = 1_000_000_000

export async function startControlPlaneStub(options: StubOptions): Promise<ControlPlaneStub> {
  const virtualKey = mintKey(VIRTUAL_KEY_PREFIX)
  const answer = directory(options)
  const teamId = answer.team?.teamId ?? ''
  const { redisUrl, databaseUrl } = options
  const ledger = await connectLedger({ redisUrl, databaseUrl, log: createLogger('bench', 'warn') })
  let shipped = 0
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', chunk => {
      body += chunk
    })
    request.on('end', async () => {
      response.setHeader('content-type', 'application/json')
      if (request.url === '/internal/directory') {
        const known = JSON.parse(body).credential?.hash === hashToken(virtualKey)
        response.end(JSON.stringify(known ? answer : { credential: null, team: null }))
      } else if (request.url === '/internal/ledger/seed') {
        await seed(ledger, teamId, answer)
        response.end('{"seeded":4}')
      } else if (request.url === '/internal/calls') {
        const accepted = body.split('\n').filter(line => line !== '').length
        shipped += accepted
        response.end(JSON.stringify({ accepted, rejected: 0 }))
      } else {
        response.end('{"owner":"unknown","status":"ok"}')
      }
    })
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    virtualKey,
    shipped: () => shipped,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await ledger.close()
    },
  }
}

function directory({ aghSecret, upstreamPort }: StubOptions): DirectoryAnswer {
  const vault = createVault([deriveSecret(aghSecret, 'provider-keys')])
  const [teamId, keyId, plain, slow] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()]
  const origin = `http://127.0.0.1:${upstreamPort}`
  const sealed = (rowId: string) =>
    vault.seal('sk-proj-provider-key-0123456789abcdefghijklmnop', { teamId, rowId })
  const pricing = {
    inputPerMTok: 0.15,
    outputPerMTok: 0.6,
    cachedInputPerMTok: 0.075,
    cacheWritePerMTok: null,
  }
  const model = {
    upstreamModel: 'gpt-4o-mini-2024-07-18',
    pricing,
    maxOutputTokens: 16384,
    contextWindow: 128000,
    createdAtMs: 0,
    updatedAtMs: 0,
  }
  return {
    credential: {
      id: keyId,
      teamId,
      kind: 'virtual_key',
      userId: null,
      role: null,
      allowedModels: ['gpt-4o-mini', 'gpt-4o', 'slow'],
      allowedProviders: ['openai_compatible'],
      maxRpm: GENEROUS,
      maxTpm: GENEROUS * 1000,
      cacheTtlSeconds: null,
    },
    team: {
      teamId,
      epoch: 1,
      capturePayloads: false,
      redactKeys: [],
      connections: [
        { id: plain, provider: 'openai_compatible', baseUrl: `${origin}/v1`, sealedKey: sealed(plain) },
        {
          id: slow,
          provider: 'openai_compatible',
          baseUrl: `${origin}/slow/200/50/v1`,
          sealedKey: sealed(slow),
        },
      ],
      models: [
        { ...model, id: randomUUID(), publicName: 'gpt-4o-mini', connectionId: plain },
        { ...model, id: randomUUID(), publicName: 'slow', connectionId: slow },
      ],
      budgets: [
        { id: randomUUID(), virtualKeyId: null, period: 'month', capNano: 1e15 },
        { id: randomUUID(), virtualKeyId: keyId, period: 'day', capNano: 1e15 },
      ],
    },
  }
}

async function seed(ledger: Ledger, teamId: string, { team }: DirectoryAnswer): Promise<void> {
  await ledger.publish(teamId, { epoch: 1 })
  const counters = (team?.budgets ?? []).map(({ id, period }) => ({
    budgetId: id,
    periodKey: periodKey(period, Date.now()),
    settledNano: 0,
  }))
  await ledger.seed(teamId, counters)
}

const listen = (server: Server) =>
  new Promise<number>(resolve => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })
