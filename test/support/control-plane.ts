import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import { buildApp } from '../../control-plane/app.js'
import { readConfig } from '../../control-plane/config.js'
import { connectSql, type Database } from '../../control-plane/db/sql.js'
import type { Deps } from '../../control-plane/deps.js'
import { servedPath } from '../../control-plane/http/route.js'
import { createJobs } from '../../control-plane/jobs/enqueue.js'
import type { Mail, Mailer } from '../../control-plane/mail/mailer.js'
import { createSandbox } from '../../control-plane/sandbox/create-sandbox.js'
import type { Call, Endpoint, Result } from '../../shared/contract/endpoint.js'
import { connectLedger } from '../../shared/ledger/connect.js'
import { createLogger } from '../../shared/log/logger.js'
import { deriveSecret } from '../../shared/secrets/derive.js'
import { createVault } from '../../shared/secrets/vault.js'
import { testDatabase } from './postgres.js'

/** What a test calls as: a session cookie, a key, or nobody. */
export interface Credential {
  cookie?: string
  key?: string
}

export interface CallInput<E extends Endpoint> extends Call<E> {
  as?: Credential
  /** Extra request headers; they win over those of `as`. */
  headers?: Record<string, string>
}

export interface Answered<T> {
  status: number
  headers: Record<string, string>
  /** The checked answer of a success. Reading it after a failure is a test's own mistake. */
  body: T
  /** The error envelope's content; null for a success. */
  error: { code: string; message: string } | null
  text: string
}

export interface ControlPlane {
  deps: Deps & { sql: Database }
  app: FastifyInstance
  databaseUrl: string
  /** Mail that was sent, in order. */
  outbox: Mail[]
  /** Calls an endpoint by its contract value; an answer with an undeclared or missing field fails. */
  call<E extends Endpoint>(endpoint: E, input?: CallInput<E>): Promise<Answered<Result<E>>>
}

export const TEST_SECRET = 'test-secret-test-secret-test-secret'

/** The control plane on a database of the test's own, with no listener; closed at the end of the test. */
export async function startControlPlane(t: Test, overrides: Partial<Deps> = {}): Promise<ControlPlane> {
  const { url } = await testDatabase(t)
  const outbox: Mail[] = []
  // A generous deadline: a busy test machine is not what these tests are about.
  const sql = connectSql(url, { deadlineMs: 20_000, max: 6, name: 'agh-test' })
  const config = testConfig(url)
  const log = createLogger('control-plane', process.env.TEST_LOG_LEVEL ?? 'silent')
  const deps = {
    config,
    ledger: overrides.ledger ?? (await connectLedger({ databaseUrl: url, deadlineMs: 20_000, log })),
    vault: createVault([deriveSecret(TEST_SECRET, 'provider-keys')]),
    mail: keepingMailer(outbox),
    jobs: createJobs(),
    // Generous times here too; the sandbox's own tests use those of production.
    sandbox: createSandbox({ interruptMs: 1_000, wallMs: 3_000 }),
    log,
    now: Date.now,
    ...overrides,
    sql,
  }
  const app = buildApp(deps, { strictResponses: true })
  t.teardown(async () => {
    await app.close()
    await deps.sandbox.close()
    await deps.ledger.close()
    await sql.end({ timeout: 5 })
  })
  await app.ready()
  return { deps, app, databaseUrl: url, outbox, call: (endpoint, input) => call(app, endpoint, input ?? {}) }
}

export const testConfig = (databaseUrl: string, env: Record<string, string> = {}) =>
  readConfig({
    DATABASE_URL: databaseUrl,
    AGH_SECRET: TEST_SECRET,
    APP_URL: 'http://agh.test',
    SIGNUP: 'open',
    LOG_LEVEL: 'silent',
    ...env,
  })

const keepingMailer = (outbox: Mail[]): Mailer => ({
  send: async mail => {
    outbox.push(mail)
  },
  close: () => {},
})

async function call<E extends Endpoint>(
  app: FastifyInstance,
  endpoint: E,
  input: CallInput<E>,
): Promise<Answered<Result<E>>> {
  const response = await app.inject({
    method: endpoint.method,
    url: urlOf(endpoint, input),
    headers: {
      ...(input.body !== undefined && { 'content-type': 'application/json' }),
      ...headersOf(input.as ?? {}),
      ...input.headers,
    },
    ...(input.body !== undefined && { payload: JSON.stringify(input.body) }),
  })
  const isJson = `${response.headers['content-type']}`.startsWith('application/json')
  const json = isJson ? JSON.parse(response.body) : undefined
  const failed = response.statusCode >= 400
  if (!failed && response.statusCode !== endpoint.status)
    throw new Error(`${endpoint.method} ${endpoint.path} answered ${response.statusCode}: ${response.body}`)
  return {
    status: response.statusCode,
    headers: response.headers as Record<string, string>,
    body: failed ? undefined : endpoint.response?.parse(json),
    error: failed ? json.error : null,
    text: response.body,
  } as Answered<Result<E>>
}

/** A page of the service's own sends the cookie. */
export const headersOf = (as: Credential): Record<string, string> => ({
  ...(as.cookie !== undefined && { cookie: as.cookie, origin: 'http://agh.test' }),
  ...(as.key !== undefined && { authorization: `Bearer ${as.key}` }),
})

export function urlOf<E extends Endpoint>(endpoint: E, input: CallInput<E>): string {
  const params = (input.params ?? {}) as Record<string, string>
  const path = servedPath(endpoint).replace(/:(\w+)/g, (_match, name: string) => {
    const value = params[name]
    if (value === undefined) throw new Error(`${endpoint.path} needs the parameter ${name}.`)
    return encodeURIComponent(value)
  })
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(input.query ?? {})) {
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== undefined) query.append(name, String(item))
  }
  return query.size === 0 ? path : `${path}?${query}`
}
