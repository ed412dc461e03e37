import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'

/** The subject has core 0 for itself; load, upstream and stores share core 1. On one core everything shares it. */
export const SUBJECT_CORE = '0'
export const LOAD_CORE = '1'

export interface Started {
  name: string
  pid: number
  output(): string
  stop(): Promise<void>
}

/** Starts a program on one core. Its output is kept (the last 20,000 characters) for the report of a failure. */
export function start(
  name: string,
  core: string,
  command: readonly string[],
  env: Record<string, string> = {},
): Started {
  const child = spawn('taskset', ['-c', core, ...command], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const pipe of [child.stdout, child.stderr]) {
    pipe.on('data', (text: Buffer) => {
      output = (output + text.toString('utf8')).slice(-20_000)
    })
  }
  if (child.pid === undefined) throw new Error(`${name} did not start; is taskset (util-linux) installed?`)
  return { name, pid: child.pid, output: () => output, stop: () => stop(child) }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
  child.kill('SIGTERM')
  const forced = setTimeout(() => child.kill('SIGKILL'), 5_000)
  await ended
  clearTimeout(forced)
}

/** Processes below a pid, itself included: nginx and Portkey may have workers. */
export function processTree(pid: number): number[] {
  const found = [pid]
  for (const parent of found) {
    try {
      for (const thread of readdirSync(`/proc/${parent}/task`)) {
        const children = readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8').trim()
        for (const child of children.split(/\s+/)) if (child !== '') found.push(Number(child))
      }
    } catch {
      // It ended while we looked.
    }
  }
  return found
}

/** Ticks of 10 ms: the kernel's USER_HZ on Linux. */
const MICROSECONDS_PER_TICK = 10_000

/** CPU time that a process tree has used, in µs: utime + stime. */
export function cpuMicroseconds(pids: readonly number[]): number {
  let ticks = 0
  for (const pid of pids) {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    ticks += Number(fields[11]) + Number(fields[12])
  }
  return ticks * MICROSECONDS_PER_TICK
}

/** Resident memory of a process tree, in MB. */
export function residentMegabytes(pids: readonly number[]): number {
  let kilobytes = 0
  for (const pid of pids) {
    kilobytes += Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0)
  }
  return kilobytes / 1024
}

export const freePort = () =>
  new Promise<number>(resolve => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

/** @throws Error with the program's output when the port does not open within 20 s. */
export async function listening(port: number, started: Started): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (await opens(port)) return
    await sleep(100)
  }
  throw new Error(`${started.name} does not listen on port ${port}:\n${started.output()}`)
}

const opens = (port: number) =>
  new Promise<boolean>(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })

export const sleep = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** @param share 0.5 for the median, 0.99 for the 99th percentile. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
