import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ControlPlaneStub } from './control-plane-stub.js'
import { freePort, listening, processTree, type Started, SUBJECT_CORE, start } from './processes.js'

const here = dirname(fileURLToPath(import.meta.url))

/** Something in front of the upstream whose cost is measured. */
export interface Subject {
  name: string
  port: number
  /** Processes whose CPU and memory count; for `direct`, the upstream itself. */
  pids(): number[]
  /** Path of the plain completion, and of a slow stream; null: it cannot stream at this shape. */
  path: string
  streamPath: string | null
  streamModel: string
  headers: Record<string, string>
  /** Of the latency scenario; 200 where 1,000 would saturate the subject, or the load core that its store shares. */
  callsPerSecond: 200 | 1000
  stop(): Promise<void>
}

export interface Surroundings {
  scratch: string
  upstream: Started
  upstreamPort: number
  aghSecret: string
}

const COMPLETIONS = '/v1/chat/completions'
const AGH = '/api/v1/gateway/chat/completions'
/** 200 chunks, 50 ms apart: 20 chunks/s a stream. */
const SLOW = `/slow/200/50${COMPLETIONS}`

export function direct({ upstream, upstreamPort }: Surroundings): Subject {
  return {
    name: 'direct',
    port: upstreamPort,
    pids: () => processTree(upstream.pid),
    path: COMPLETIONS,
    streamPath: SLOW,
    streamModel: 'gpt-4o-mini',
    headers: { authorization: 'Bearer x' },
    callsPerSecond: 1000,
    stop: async () => {},
  }
}

export async function nginx({ scratch, upstreamPort }: Surroundings): Promise<Subject> {
  const port = await freePort()
  const config = join(scratch, 'nginx.conf')
  const template = readFileSync(join(here, 'nginx.conf'), 'utf8')
  const values: Record<string, string> = { scratch, port: String(port), upstream: String(upstreamPort) }
  writeFileSync(
    config,
    template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? ''),
  )
  const flags = process.getuid?.() === 0 ? ['-g', 'user root;'] : []
  const started = start('nginx', SUBJECT_CORE, ['nginx', '-c', config, '-p', scratch, ...flags])
  await listening(port, started)
  return {
    ...direct({ scratch, upstreamPort, upstream: started, aghSecret: '' }),
    name: 'nginx',
    port,
    stop: started.stop,
  }
}

export interface AghOptions {
  name: string
  controlPlane: ControlPlaneStub
  env: Record<string, string>
  callsPerSecond?: 200 | 1000
}

export async function agh(
  around: Surroundings,
  { name, controlPlane, env, callsPerSecond = 1000 }: AghOptions,
): Promise<Subject> {
  const port = await freePort()
  const dataDir = join(around.scratch, name.replace(/\W+/g, '-'))
  mkdirSync(dataDir, { recursive: true })
  const main = fileURLToPath(new URL('../proxy/main.js', import.meta.url))
  const started = start(name, SUBJECT_CORE, [process.execPath, main], {
    HOST: '127.0.0.1',
    PORT: String(port),
    CONTROL_PLANE_URL: controlPlane.url,
    AGH_SECRET: around.aghSecret,
    DATA_DIR: dataDir,
    PROXY_WORKERS: '1',
    LOG_LEVEL: 'warn',
    ...env,
  })
  await listening(port, started)
  return {
    name,
    port,
    pids: () => processTree(started.pid),
    path: AGH,
    streamPath: AGH,
    streamModel: 'slow',
    headers: { authorization: `Bearer ${controlPlane.virtualKey}` },
    callsPerSecond,
    stop: started.stop,
  }
}

/** The peer: an LLM gateway for Node without auth, budgets or a store. Its streams fail on Node 20. */
export async function portkey({ upstreamPort }: Surroundings): Promise<Subject> {
  const port = await freePort()
  const folder = dirname(createRequire(import.meta.url).resolve('@portkey-ai/gateway/package.json'))
  const script = join(folder, 'build', 'start-server.js')
  const started = start('portkey', SUBJECT_CORE, [process.execPath, script, '--headless', `--port=${port}`], {
    PORT: String(port),
  })
  await listening(port, started)
  return {
    name: '@portkey-ai/gateway 1.15.2',
    port,
    pids: () => processTree(started.pid),
    path: COMPLETIONS,
    streamPath: null,
    streamModel: 'gpt-4o-mini',
    headers: {
      authorization: 'Bearer x',
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `http://127.0.0.1:${upstreamPort}/v1`,
    },
    callsPerSecond: 200,
    stop: started.stop,
  }
}
