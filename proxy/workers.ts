import cluster, { type Worker } from 'node:cluster'
import { createServer } from 'node:net'
import { AggregatorRegistry, type Registry } from 'prom-client'
import type { Logger } from '../shared/log/logger.js'
import type { ProxyConfig } from './config.js'

/**
 * Several proxy processes on one port, under a supervisor that serves nothing itself. uWebSockets.js binds the port in
 * every worker with SO_REUSEPORT and the kernel spreads the connections; node:http shares it through node:cluster.
 * Workers answer /readyz for themselves; /metrics is the sum over all of them, whichever is asked.
 */

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 30_000
/** A worker that lived this long starts the count of pauses anew. */
const STEADY_MS = 60_000
const GATHER_MS = 1_000

/** A drain goes by message and not by signal: a terminal's Ctrl-C has already sent one to the whole group. */
type Message =
  | { agh: 'drain' }
  | { agh: 'metrics-wanted'; id: number }
  | { agh: 'metrics-part-wanted'; id: number }
  | { agh: 'metrics-part'; id: number; part: object[] }
  | { agh: 'metrics'; id: number; text: string }

/**
 * Forks `config.workers` processes of `entry` and keeps that many alive.
 *
 * @returns drain: each worker drains, resolves when all are gone. kill: ends them at once.
 */
export async function superviseWorkers(
  config: ProxyConfig,
  entry: string,
  log: Logger,
): Promise<{ drain(): Promise<void>; kill(): void }> {
  // With port 0 every worker would get a port of its own.
  const port = config.port === 0 ? await freePort(config.host) : config.port
  cluster.setupPrimary({ exec: entry, args: [] })
  let ending = false
  let pauseMs = FIRST_PAUSE_MS
  let done = () => {}

  function start(): void {
    const startedAt = performance.now()
    const worker = cluster.fork({ PORT: String(port) })
    worker.on('message', (message: Message) => {
      if (message.agh === 'metrics-wanted') void gather(message.id, worker)
    })
    worker.once('exit', (status, signal) => {
      if (ending) {
        if (liveWorkers().length === 0) done()
        return
      }
      if (performance.now() - startedAt > STEADY_MS) pauseMs = FIRST_PAUSE_MS
      log.error({ worker: worker.process.pid, status, signal, pauseMs }, 'a worker died; another is started')
      setTimeout(() => ending || start(), pauseMs)
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    })
  }

  for (let count = 0; count < config.workers; count++) start()
  log.info({ workers: config.workers, port }, 'workers started')
  return {
    drain: () =>
      new Promise<void>(resolve => {
        ending = true
        done = resolve
        const left = liveWorkers()
        if (left.length === 0) resolve()
        for (const worker of left) worker.send({ agh: 'drain' } satisfies Message)
      }),
    kill() {
      for (const worker of liveWorkers()) worker.process.kill('SIGKILL')
    },
  }
}

const liveWorkers = (): Worker[] =>
  Object.values(cluster.workers ?? {}).filter(worker => worker !== undefined)

/** In the supervisor: the figures of all workers, for the one that was asked. */
async function gather(id: number, asker: Worker): Promise<void> {
  const parts = await Promise.all(liveWorkers().map(partOf))
  const known = parts.filter(part => part !== null)
  const text = await AggregatorRegistry.aggregate(known).metrics()
  if (asker.isConnected()) asker.send({ agh: 'metrics', id, text } satisfies Message)
}

let questions = 0

function partOf(worker: Worker): Promise<object[] | null> {
  const id = ++questions
  return new Promise(resolve => {
    const finish = (part: object[] | null) => {
      clearTimeout(timer)
      worker.off('message', onMessage)
      resolve(part)
    }
    const onMessage = (message: Message) => {
      if (message.agh === 'metrics-part' && message.id === id) finish(message.part)
    }
    const timer = setTimeout(finish, GATHER_MS, null)
    worker.on('message', onMessage)
    worker.send({ agh: 'metrics-part-wanted', id } satisfies Message)
  })
}

/** In a worker: joins the supervisor's protocol. Call it once, when the worker has started. */
export function joinSupervisor(registry: Registry): void {
  if (cluster.worker === undefined) return
  // node:cluster ends a worker whose supervisor died, at once and with its streams; this makes it drain instead.
  cluster.worker.exitedAfterDisconnect = true
  process.on('message', (message: Message) => {
    if (message.agh !== 'metrics-part-wanted') return
    void registry.getMetricsAsJSON().then(part => {
      process.send?.({ agh: 'metrics-part', id: message.id, part } satisfies Message)
    })
  })
}

/** The metrics of all workers as text; of this process alone without a supervisor, or when it does not answer. */
export function metricsOfAllWorkers(registry: Registry): Promise<string> {
  if (cluster.worker === undefined || !cluster.worker.isConnected()) return registry.metrics()
  const id = ++questions
  return new Promise(resolve => {
    const finish = (text: string | Promise<string>) => {
      clearTimeout(timer)
      process.off('message', onMessage)
      resolve(text)
    }
    const onMessage = (message: Message) => {
      if (message.agh === 'metrics' && message.id === id) finish(message.text)
    }
    const timer = setTimeout(() => finish(registry.metrics()), 2 * GATHER_MS)
    process.on('message', onMessage)
    process.send?.({ agh: 'metrics-wanted', id } satisfies Message)
  })
}

const freePort = (host: string) =>
  new Promise<number>((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, host, () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
