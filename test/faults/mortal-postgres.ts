import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../bin/embedded-postgres.js'
import { freePort } from '../../bin/ports.js'
import { migrate } from '../../control-plane/db/migrate.js'

/** A migrated PostgreSQL that only this test uses and that can be killed as no orderly shutdown would. */
export interface MortalPostgres {
  url: string
  /** SIGKILL for the postmaster and every backend: nothing is flushed, nothing is said to clients. */
  kill(): Promise<void>
  /** On the same data directory and port: replays the write-ahead log. */
  start(): Promise<void>
}

/**
 * Commits wait for the write-ahead log to be written, as in an installation. They do not wait for the disk (`fsync`):
 * the death of a process does not lose the page cache, only the machine's would, and no test can kill that.
 */
const SETTINGS = ['fsync=off', 'max_connections=60', 'log_min_messages=fatal']

export async function mortalPostgres(t: Test): Promise<MortalPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'agh-mortal-'))
  // Under root PostgreSQL runs as another user, who must be able to enter.
  chmodSync(folder, 0o755)
  const options = { dataDir: join(folder, 'postgres'), port: await freePort(), settings: SETTINGS }
  let server: EmbeddedPostgres = await startEmbeddedPostgres(options)
  t.teardown(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  await migrate(server.url)
  return {
    url: server.url,
    async kill() {
      const backends = childrenOf(server.pid)
      for (const pid of [server.pid, ...backends]) killNow(pid)
      await server.exited
      // A new server refuses to start while a backend of the old one is attached to its memory.
      while (backends.some(isAlive)) await sleep(5)
    },
    async start() {
      server = await startEmbeddedPostgres(options)
    },
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}

function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
  return stdout.split('\n').filter(Boolean).map(Number)
}
