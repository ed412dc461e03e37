/**
 * What the last start may have left in a data directory: a server that still runs (its agh was killed a moment ago), or
 * a postmaster.pid whose process is gone or is by now another program. PostgreSQL itself sees through a dead pid, but
 * not through a reused one, which is the usual case in a container: every start has the same small pids.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../shared/config/environment.js'

const POLITE_MS = 15_000

/** Call only while holding the lock of DATA_DIR: a running server is then nobody's. */
export async function putAwayLeftover(dataDir: string): Promise<void> {
  const file = join(dataDir, 'postmaster.pid')
  const pid = pidIn(file)
  if (pid === null) return
  if (!isServerOf(dataDir, pid)) {
    rmSync(file, { force: true })
    return
  }
  // Its watcher is stopping it, or it has none: ask again, it does no harm.
  signal(pid, 'SIGINT')
  if (await gone(dataDir, pid)) return
  signal(pid, 'SIGQUIT')
  if (await gone(dataDir, pid)) return
  throw new ConfigError(
    `A PostgreSQL of an earlier start (process ${pid}) does not stop; it holds ${dataDir}.`,
  )
}

function pidIn(file: string): number | null {
  try {
    const pid = Number.parseInt(readFileSync(file, 'utf8'), 10)
    return pid > 0 ? pid : null
  } catch {
    return null
  }
}

/** Whether that process is the server of this very directory: a signal to anybody else's would be a disaster. */
function isServerOf(dataDir: string, pid: number): boolean {
  const words = commandLine(pid)
  return /(^|\/)postgres$/.test(words[0] ?? '') && words[words.indexOf('-D') + 1] === dataDir
}

function commandLine(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    const { stdout } = spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
    return (stdout ?? '').trim().split(' ')
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // Gone already.
  }
}

async function gone(dataDir: string, pid: number): Promise<boolean> {
  const deadline = Date.now() + POLITE_MS
  while (isServerOf(dataDir, pid)) {
    if (Date.now() > deadline) return false
    await sleep(50)
  }
  return true
}
