import { execFile, spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cpuMicroseconds, LOAD_CORE } from './processes.js'
import type { Subject } from './subjects.js'

const script = fileURLToPath(new URL('wrk.lua', import.meta.url))

export interface Throughput {
  requests: number
  requestsPerSecond: number
  /** CPU of the subject per request, µs. */
  cpuMicroseconds: number
  /** Thousands of user instructions per request; null where the machine has no counters. */
  userKiloInstructions: number | null
}

export interface Load {
  seconds: number
  connections: number
  /** 0: the 475 B request. */
  bodyBytes: number
}

/** Closed-loop load with wrk on the load core. @throws Error when any answer was not 2xx. */
export async function throughput(subject: Subject, load: Load, scratch: string): Promise<Throughput> {
  const pids = subject.pids()
  const url = `http://127.0.0.1:${subject.port}`
  const wrk = [
    'wrk',
    '-t1',
    `-c${load.connections}`,
    `-d${load.seconds}s`,
    '--timeout',
    '20s',
    '-s',
    script,
    url,
  ]
  const env = {
    ...process.env,
    REQUEST_PATH: subject.path,
    BODY_BYTES: String(load.bodyBytes),
    HEADERS: Object.entries(subject.headers)
      .map(([name, value]) => `${name}=${value}`)
      .join(';'),
  }
  const counters = join(scratch, 'perf.csv')
  const counted = hasCounters()
    ? ['perf', 'stat', '-x,', '-o', counters, '-e', 'instructions:u', '-p', pids.join(','), '--']
    : []
  const [program = 'wrk', ...rest] = [...counted, 'taskset', '-c', LOAD_CORE, ...wrk]

  const before = cpuMicroseconds(pids)
  const { stdout } = await promisify(execFile)(program, rest, { env, maxBuffer: 1 << 20 })
  const used = cpuMicroseconds(pids) - before
  const requests = Number(/(\d+) requests in/.exec(stdout)?.[1] ?? 0)
  const failed = /Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)/.exec(stdout)
  if (requests === 0 || failed !== null) throw new Error(`${subject.name} failed under load:\n${stdout}`)
  return {
    requests,
    requestsPerSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1] ?? 0),
    cpuMicroseconds: used / requests,
    userKiloInstructions: counted.length > 0 ? readCounter(counters) / requests / 1000 : null,
  }
}

/** Virtual machines often hide the instruction counter. */
function hasCounters(): boolean {
  const probe = spawnSync('perf', ['stat', '-x,', '-e', 'instructions:u', 'true'], { encoding: 'utf8' })
  return /^\d+,/m.test(probe.stderr ?? '')
}

function readCounter(file: string): number {
  const count = Number(/^(\d+),/m.exec(readFileSync(file, 'latin1'))?.[1] ?? Number.NaN)
  rmSync(file, { force: true })
  return count
}
