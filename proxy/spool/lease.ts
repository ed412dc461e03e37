import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimes,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import { DIRECTORY_MODE, FILE_MODE } from './disk.js'
import { ackPath, SEGMENT_SUFFIX } from './segment.js'

/**
 * Which process owns which directory of segments. A live process's segments are never taken; a dead one's always are.
 *
 * On the same machine (host, boot, process namespace) a process is known by its id and start time, so that a reused id
 * does not pass for the old owner. From another machine or container, on a shared volume, ids say nothing: there the
 * owner counts as dead when its lock file has not been touched for LEASE_MS by the watcher's own clock. An owner that
 * was frozen that long finds out before its next append (`held`) and moves to a new directory.
 */
export interface Lease {
  /** The own directory, which holds the lock and the segments. */
  readonly directory: string
  /** Unique over all processes; names segments. */
  readonly name: string
  /** Whether the directory is still ours. Costs a subtraction unless the last heartbeat is long ago. */
  held(): boolean
  /** Gives the directory up: empty, it goes; with segments in it, it stays for the next process to take over. */
  leave(): void
}

const HEARTBEAT_MS = 5_000
const HELD_FOR_SURE_MS = 20_000
export const LEASE_MS = 30_000
const LOCK = 'lock'
export const DEAD_DIRECTORY = 'dead'

interface Owner {
  host: string
  boot: string
  namespace: string
  pid: number
  started: string
}

/** Makes a directory of one's own under `root`. It appears with its lock in it: there is no moment without. */
export function takeLease(root: string): Lease {
  const name = `${process.pid}-${randomBytes(6).toString('hex')}`
  const [hidden, directory] = [join(root, `.${name}`), join(root, name)]
  mkdirSync(hidden, { recursive: true, mode: DIRECTORY_MODE })
  writeFileSync(join(hidden, LOCK), JSON.stringify(thisProcess()), { mode: FILE_MODE })
  renameSync(hidden, directory)

  const lock = join(directory, LOCK)
  let beatAt = performance.now()
  const timer = setInterval(() => {
    const [at, now] = [performance.now(), new Date()]
    utimes(lock, now, now, error => {
      if (error === null) beatAt = at
    })
  }, HEARTBEAT_MS).unref()

  return {
    directory,
    name,
    held() {
      if (performance.now() - beatAt < HELD_FOR_SURE_MS) return true
      if (statSync(lock, { throwIfNoEntry: false }) === undefined) return false
      beatAt = performance.now()
      return true
    },
    leave() {
      clearInterval(timer)
      rmSync(lock, { force: true })
      try {
        rmdirSync(directory)
      } catch {
        // Segments are left in it.
      }
    },
  }
}

/**
 * Takes over what dead processes left: moves their segments into the own directory and returns the new paths. Two
 * processes may try at once: renaming the directory decides, the loser finds it gone.
 *
 * @param seen what earlier sweeps saw of locks that only time can judge; pass the same map every time.
 */
export function adoptDead(
  root: string,
  own: Lease,
  seen: Map<string, { mtimeMs: number; at: number }>,
): string[] {
  const adopted: string[] = []
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    const candidate = join(root, entry.name)
    const skip = !entry.isDirectory() || entry.name === own.name || entry.name === DEAD_DIRECTORY
    if (skip || entry.name.startsWith('.') || !ownerIsDead(candidate, seen)) continue
    const claimed = join(own.directory, `claimed-${entry.name}`)
    try {
      renameSync(candidate, claimed)
    } catch {
      continue
    }
    adopted.push(...moveSegments(claimed, own.directory))
    rmSync(claimed, { recursive: true, force: true })
  }
  return adopted
}

/** Every segment below `from`, however deep a chain of deaths left it, into `into`. */
function moveSegments(from: string, into: string): string[] {
  const files = readdirSync(from, { recursive: true, withFileTypes: true })
  const segments = files.filter(file => file.isFile() && file.name.endsWith(SEGMENT_SUFFIX))
  return segments.map(file => {
    const [source, target] = [join(file.parentPath, file.name), join(into, basename(file.name))]
    try {
      renameSync(ackPath(source), ackPath(target))
    } catch {
      // Never acknowledged in part.
    }
    renameSync(source, target)
    return target
  })
}

function ownerIsDead(directory: string, seen: Map<string, { mtimeMs: number; at: number }>): boolean {
  const lock = join(directory, LOCK)
  const stat = statSync(lock, { throwIfNoEntry: false })
  // A directory appears with its lock; one without was left by an owner that was closing, or lost it.
  if (stat === undefined) return true
  const [owner, me] = [readOwner(lock), thisProcess()]
  if (owner !== null && owner.host === me.host && owner.boot !== me.boot) return true
  if (owner !== null && owner.host === me.host && owner.namespace === me.namespace) {
    return startOf(owner.pid) !== owner.started
  }
  const before = seen.get(lock)
  if (before === undefined || before.mtimeMs !== stat.mtimeMs) {
    seen.set(lock, { mtimeMs: stat.mtimeMs, at: performance.now() })
    return false
  }
  return performance.now() - before.at > LEASE_MS
}

function readOwner(lock: string): Owner | null {
  try {
    return JSON.parse(readFileSync(lock, 'utf8')) as Owner
  } catch {
    return null
  }
}

const thisProcess = (): Owner => ({
  host: hostname(),
  boot: textOf(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
  namespace: textOf(() => readlinkSync('/proc/self/ns/pid')),
  pid: process.pid,
  started: startOf(process.pid),
})

function textOf(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}

/** When a process started, as text that is equal for the same process only; 'gone' when it does not run any more. */
function startOf(pid: number): string {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return 'gone'
  }
  if (process.platform !== 'linux') {
    return textOf(() => execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim())
  }
  const stat = textOf(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  // The command's name stands in parentheses and may hold anything; behind it: state, then 18 numbers, then the start.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' || fields[0] === 'X' ? 'gone' : (fields[19] ?? '')
}
