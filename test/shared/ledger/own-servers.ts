import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../bin/embedded-postgres.js'
import { migrate } from '../../../control-plane/db/migrate.js'
import type { Reach } from './subject.js'

/** A store that the test may freeze and kill: no other test uses it. */
export interface OwnServer {
  reach: Reach
  freeze(): void
  thaw(): void
  /** Dies at once, without a good-bye. */
  kill(): Promise<void>
  /** On the same port. Resolves when it accepts connections. */
  start(): Promise<void>
}

const freePort = () =>
  new Promise<number>(resolve => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

function scratchFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'agh-own-'))
  // Under root PostgreSQL runs as another user, who must be able to enter.
  chmodSync(folder, 0o755)
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** In memory only: what it is killed with is lost. */
export async function ownRedis(t: Test, settings: readonly string[] = []): Promise<OwnServer> {
  const port = await freePort()
  const flags = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--dir',
    scratchFolder(t),
    ...settings,
  ]
  let server: ChildProcess | undefined
  const own: OwnServer = {
    reach: { redisUrl: `redis://127.0.0.1:${port}` },
    freeze: () => server?.kill('SIGSTOP'),
    thaw: () => server?.kill('SIGCONT'),
    kill: async () => {
      const dying = server
      server = undefined
      if (dying === undefined) return
      const gone = new Promise(resolve => dying.once('exit', resolve))
      dying.kill('SIGKILL')
      await gone
    },
    start: async () => {
      server = spawn('redis-server', flags, { stdio: 'ignore' })
      while (!(await accepts(port))) await wait(10)
    },
  }
  t.teardown(() => own.kill())
  await own.start()
  return own
}

/** Durable, as an installation would be: what was committed survives a kill. */
export async function ownPostgres(t: Test): Promise<OwnServer> {
  const dataDir = join(scratchFolder(t), 'postgres')
  const port = await freePort()
  let server: EmbeddedPostgres | undefined = await startEmbeddedPostgres({ dataDir, port })
  await migrate(server.url)
  const signal = (name: NodeJS.Signals) => {
    if (server === undefined) return
    for (const pid of [server.pid, ...childrenOf(server.pid)]) process.kill(pid, name)
  }
  t.teardown(() => {
    signal('SIGCONT')
    return server?.stop()
  })
  return {
    reach: { databaseUrl: server.url },
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    kill: async () => {
      const dying = server
      server = undefined
      dying?.kill()
      await dying?.exited
    },
    start: async () => {
      server = await startEmbeddedPostgres({ dataDir, port })
    },
  }
}

/** PostgreSQL has a process a connection, each the leader of its own group. */
function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
  return stdout.split('\n').filter(Boolean).map(Number)
}

function accepts(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
