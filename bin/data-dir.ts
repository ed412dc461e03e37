/**
 * What `agh start` keeps in DATA_DIR: the secret, the embedded PostgreSQL and its password, the proxy's spool, the logs,
 * mails without an SMTP server; and a lock, because two starts on one directory would ruin each other.
 */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { ConfigError } from '../shared/config/environment.js'

export interface DataDir {
  path: string
  /** 32 random bytes as text, made at the first call and the same ever after; readable by its owner only. */
  secret(name: string): string
  release(): void
}

/** @throws ConfigError when it cannot be written to, or another `agh start` uses it. */
export function openDataDir(given: string): DataDir {
  const path = resolve(given)
  try {
    makeFolder(path)
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
    // Root is let through by the check above even where the file system is read-only.
    writeFileSync(join(path, '.writable'), '')
    rmSync(join(path, '.writable'))
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error)
    throw new ConfigError(
      `DATA_DIR holds ${JSON.stringify(given)}; agh cannot write to ${path} (${why}). It may hold a directory that this user may write to.`,
    )
  }
  const release = lock(path)
  return { path, secret: name => secret(join(path, name)), release }
}

/** Not `recursive: true`: where a file system has no mkdir, as /proc, Node 20 then tries for ever. */
function makeFolder(path: string): void {
  if (existsSync(path)) return
  makeFolder(dirname(path))
  mkdirSync(path)
}

function secret(file: string): string {
  try {
    writeFileSync(file, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const text = readFileSync(file, 'utf8').trim()
  if (text.length < 32) throw new ConfigError(`${file} is damaged: it should hold 43 characters.`)
  return text
}

/** A file that names the process and when it started: a pid alone is soon another program's, in a container at once. */
function lock(path: string): () => void {
  const file = join(path, 'agh.lock')
  const mine = `${process.pid} ${birth(process.pid)}`
  for (const _attempt of [1, 2]) {
    try {
      writeFileSync(file, mine, { flag: 'wx', mode: 0o644 })
      return () => rmSync(file, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const [pid = '', ...born] = readFileSync(file, 'utf8').split(' ')
    // Empty: whoever took it was killed, or the disk was full, before it could say its name.
    if (pid !== '' && birth(Number(pid)) === born.join(' ')) {
      throw new ConfigError(
        `Another agh start (process ${pid}) uses DATA_DIR ${path}. Stop it first; or give this one a DATA_DIR, a PORT and a CONTROL_PLANE_PORT of its own.`,
      )
    }
    rmSync(file, { force: true })
  }
  throw new ConfigError(`${file} cannot be taken; another agh start is doing the same right now.`)
}

/** When a process started, in whatever form the system tells; empty when there is none with this pid. */
function birth(pid: number): string {
  try {
    // Field 22, in clock ticks since boot; the name in field 2 may hold spaces and brackets.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${ticks}`
  } catch {
    const { stdout } = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' })
    return (stdout ?? '').trim()
  }
}
