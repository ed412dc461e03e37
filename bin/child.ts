/**
 * One of the two programs as a child of `agh start`. It is started again when it ends by itself, after half a second,
 * then one, then two, up to thirty; a minute of life starts the count anew. It runs in a process group of its own, so
 * that the terminal's Ctrl-C reaches `agh start` alone, which stops things in order; and it holds the other end of an
 * IPC channel, by which it knows when `agh start` died without a word (see lifeline.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../shared/config/environment.js'
import { readable } from './log-lines.js'

export interface ChildOptions {
  name: string
  /** Its main file, from dist/. */
  entry: string
  env: NodeJS.ProcessEnv
  /** Answers 200 when the program is ready. */
  readyUrl: string
  onLine(line: string): void
  /** Called at once, before it is ready: from then on it can be stopped. */
  onStarted(child: Child): void
  say(text: string): void
}

export interface Child {
  /** SIGTERM, and SIGKILL after `graceMs`. */
  stop(graceMs: number): Promise<void>
  /** At once, without a drain. */
  kill(): void
}

const LIFELINE = new URL('./lifeline.js', import.meta.url).href
const READY_WITHIN_MS = 60_000
const STEADY_MS = 60_000
const LONGEST_PAUSE_MS = 30_000

/** Resolves when the program is ready. @throws ConfigError when it ends before, with its last words. */
export async function startChild(options: ChildOptions): Promise<void> {
  let isStopping = false
  let current = launch(options)
  const keepAlive = async () => {
    for (let pauseMs = 500; !isStopping; ) {
      const { why, livedMs } = await current.ended
      if (isStopping) return
      if (livedMs > STEADY_MS) pauseMs = 500
      options.say(`The ${options.name} ended (${why}); it is started again in ${pauseMs / 1000} s.`)
      await sleep(pauseMs)
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
      if (!isStopping) current = launch(options)
    }
  }
  const child: Child = {
    kill() {
      isStopping = true
      current.process.kill('SIGKILL')
    },
    async stop(graceMs) {
      isStopping = true
      current.process.kill('SIGTERM')
      const timer = setTimeout(() => current.process.kill('SIGKILL'), graceMs)
      await current.ended
      clearTimeout(timer)
    },
  }
  options.onStarted(child)
  await ready(options, current)
  void keepAlive()
}

interface Run {
  process: ChildProcess
  /** Its last readable lines: what a program says when it cannot start. */
  lastWords: string[]
  ended: Promise<{ why: string; livedMs: number }>
}

function launch({ name, entry, env, onLine }: ChildOptions): Run {
  const startedAt = Date.now()
  const program = fileURLToPath(new URL(`../${entry}`, import.meta.url))
  const child = spawn(process.execPath, ['--enable-source-maps', '--import', LIFELINE, program], {
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
  })
  const lastWords: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue
    createInterface({ input: stream }).on('line', line => {
      const said = readable(name, line)
      if (said !== null) lastWords.push(said)
      if (lastWords.length > 20) lastWords.shift()
      onLine(line)
    })
  }
  const ended = new Promise<{ why: string; livedMs: number }>(resolve => {
    // `close` comes after the last line of output, `exit` may come before.
    child.once('close', (code, signal) =>
      resolve({ why: signal ?? `exit code ${code}`, livedMs: Date.now() - startedAt }),
    )
    child.once('error', error => resolve({ why: error.message, livedMs: 0 }))
  })
  return { process: child, lastWords, ended }
}

async function ready({ name, readyUrl }: ChildOptions, run: Run): Promise<void> {
  let end: string | null = null
  void run.ended.then(({ why }) => {
    end = why
  })
  let last = 'no answer'
  for (const startedAt = Date.now(); Date.now() - startedAt < READY_WITHIN_MS; await sleep(25)) {
    if (end !== null) {
      const said = run.lastWords.join('\n')
      throw new ConfigError(`The ${name} did not start (${end}).${said === '' ? '' : `\n${said}`}`)
    }
    try {
      const answer = await fetch(readyUrl, { signal: AbortSignal.timeout(2000) })
      if (answer.ok) return
      last = `${answer.status} ${(await answer.text()).slice(0, 300)}`
    } catch {
      // Not listening yet.
    }
  }
  throw new ConfigError(`The ${name} was not ready after ${READY_WITHIN_MS / 1000} s: ${last}`)
}
