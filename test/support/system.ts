/**
 * The two real programs as processes on free ports, on a database of the test's own: what end-to-end and fault tests
 * drive. Both write to the same temporary DATA_DIR, and can be killed and started again one by one.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { freePort } from '../../bin/ports.js'
import type { Endpoint, Result } from '../../shared/contract/endpoint.js'
import { type Answered, type CallInput, headersOf, TEST_SECRET, urlOf } from './control-plane.js'
import { testDatabase } from './postgres.js'

export interface SystemOptions {
  /** Unset: the ledger is in PostgreSQL. */
  redisUrl?: string
  /** Unset: a clone of the template. */
  databaseUrl?: string
  /** The proxy's HTTP edge. */
  http?: 'uwebsockets' | 'node'
  /** For both programs; wins over everything else. */
  env?: Record<string, string>
}

export interface Program {
  readonly pid: number
  /** What it wrote, its last 64 KB. */
  output(): string
  /** Starts it (again) and waits until it is ready. */
  start(): Promise<void>
  /** Sends a signal and waits for the end. @returns the exit code; null after a signal. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

export interface System {
  /** The proxy's: the one that clients use. */
  origin: string
  /** For OpenAI clients. */
  baseUrl: string
  controlPlaneUrl: string
  databaseUrl: string
  dataDir: string
  proxy: Program
  controlPlane: Program
  /** One more proxy process of the same service, on a port of its own. @returns its base URL for OpenAI clients. */
  startAnotherProxy(): Promise<string>
  /** Calls an endpoint through the proxy's origin, by its contract value. */
  call<E extends Endpoint>(endpoint: E, input?: CallInput<E>): Promise<Answered<Result<E>>>
}

const READY_WITHIN_MS = 30_000
const KEPT_OUTPUT = 64 * 1024

export async function startSystem(t: Test, options: SystemOptions = {}): Promise<System> {
  const databaseUrl = options.databaseUrl ?? (await testDatabase(t)).url
  const [port, controlPlanePort] = [await freePort(), await freePort()]
  const dataDir = mkdtempSync(join(tmpdir(), 'agh-system-'))
  const env: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    AGH_SECRET: TEST_SECRET,
    APP_URL: 'http://agh.test',
    PORT: String(port),
    CONTROL_PLANE_PORT: String(controlPlanePort),
    DATABASE_URL: databaseUrl,
    DATA_DIR: dataDir,
    PROXY_WORKERS: '1',
    SIGNUP: 'open',
    LOG_LEVEL: 'warn',
    ...(options.redisUrl !== undefined && { REDIS_URL: options.redisUrl }),
    ...(options.http !== undefined && { PROXY_HTTP: options.http }),
    ...options.env,
  }
  const [origin, controlPlaneUrl] = [port, controlPlanePort].map(each => `http://127.0.0.1:${each}`) as [
    string,
    string,
  ]
  const controlPlane = program('control-plane', env, `${controlPlaneUrl}/readyz`)
  const proxy = program('proxy', env, `${origin}/readyz`)
  t.teardown(async () => {
    await proxy.end('SIGKILL')
    await controlPlane.end('SIGKILL')
    rmSync(dataDir, { recursive: true, force: true })
  })
  await controlPlane.start()
  await proxy.start()
  return {
    origin,
    baseUrl: `${origin}/api/v1/gateway`,
    controlPlaneUrl,
    databaseUrl,
    dataDir,
    proxy,
    controlPlane,
    async startAnotherProxy() {
      const own = { PORT: String(await freePort()), DATA_DIR: join(dataDir, 'another') }
      const url = `http://127.0.0.1:${own.PORT}`
      const another = program('proxy', { ...env, ...own }, `${url}/readyz`)
      t.teardown(() => another.end('SIGKILL'))
      await another.start()
      return `${url}/api/v1/gateway`
    },
    call: (endpoint, input) => call(origin, endpoint, input ?? {}),
  }
}

function program(name: string, env: Record<string, string>, readyUrl: string): Program {
  const entry = fileURLToPath(new URL(`../../${name}/main.js`, import.meta.url))
  let child: ChildProcess | null = null
  let output = ''
  const keep = (text: Buffer) => {
    output = (output + text.toString()).slice(-KEPT_OUTPUT)
  }
  return {
    get pid() {
      return child?.pid ?? 0
    },
    output: () => output,
    async start() {
      child = spawn(process.execPath, ['--enable-source-maps', entry], {
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      child.stdout?.on('data', keep)
      child.stderr?.on('data', keep)
      await ready(name, child, readyUrl, () => output)
    },
    async end(signal) {
      if (child === null || child.exitCode !== null || child.signalCode !== null)
        return child?.exitCode ?? null
      const ended = new Promise<number | null>(resolve => child?.once('exit', code => resolve(code)))
      child.kill(signal)
      return ended
    },
  }
}

async function ready(name: string, child: ChildProcess, url: string, output: () => string): Promise<void> {
  const deadline = Date.now() + READY_WITHIN_MS
  let last = 'no answer'
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}: ${output()}`)
    try {
      const answer = await fetch(url, { signal: AbortSignal.timeout(2000) })
      last = `${answer.status} ${await answer.text()}`
      if (answer.ok) return
    } catch {
      // Not listening yet.
    }
    await sleep(20)
  }
  throw new Error(`${name} was not ready in ${READY_WITHIN_MS / 1000} s: ${last}\n${output()}`)
}

async function call<E extends Endpoint>(
  origin: string,
  endpoint: E,
  input: CallInput<E>,
): Promise<Answered<Result<E>>> {
  const response = await fetch(origin + urlOf(endpoint, input), {
    method: endpoint.method,
    headers: {
      ...(input.body !== undefined && { 'content-type': 'application/json' }),
      ...headersOf(input.as ?? {}),
      ...input.headers,
    },
    ...(input.body !== undefined && { body: JSON.stringify(input.body) }),
  })
  const text = await response.text()
  const json = text === '' ? undefined : JSON.parse(text)
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: response.ok ? endpoint.response?.parse(json) : undefined,
    error: response.ok ? null : json.error,
    text,
  } as Answered<Result<E>>
}
