import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { until } from './spool.js'

/** The proxy's program as a process of its own, for what only a process can show: signals, workers, a parent's death. */
export interface ProxyProcess {
  readonly child: ChildProcess
  readonly url: string
  /** Everything that it logged so far. */
  output(): string
  /** Resolves with its exit status, null when a signal ended it. */
  readonly ended: Promise<number | null>
}

const MAIN = fileURLToPath(new URL('../../proxy/main.js', import.meta.url))

/** Starts it and waits until it answers. */
export async function startProxyProcess(t: Test, env: Record<string, string>): Promise<ProxyProcess> {
  const child = fork(MAIN, [], { env: { PATH: process.env.PATH ?? '', ...env }, silent: true })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', piece => (text += String(piece)))
  const ended = new Promise<number | null>(resolve => child.once('exit', status => resolve(status)))
  t.teardown(() => child.kill('SIGKILL'))
  await until(
    `the proxy listens\n${text}`,
    () => /the proxy listens/.test(text) || child.exitCode !== null,
    20_000,
  )
  const url = /"url":"([^"]+)"/.exec(text)?.[1]
  if (url === undefined) throw new Error(`The proxy did not start:\n${text}`)
  return { child, url, output: () => text, ended }
}
