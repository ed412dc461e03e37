import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabase } from './create-database.js'
import type { DataDir } from './data-dir.js'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.js'
import { freePort } from './ports.js'
import { postgresHome } from './postgres-home.js'

export interface OwnDatabase {
  /** Of the database `agh`. */
  url: string
  /** The server's data directory. */
  path: string
  stop(): Promise<void>
  kill(): void
}

/** The embedded PostgreSQL of `agh start`, on a free loopback port; started again on the same port should it die. */
export async function startOwnDatabase(dataDir: DataDir, say: (text: string) => void): Promise<OwnDatabase> {
  const home = postgresHome(dataDir.path)
  if (home.isElsewhere)
    say(`PostgreSQL's user cannot enter ${dataDir.path}; the database is in ${home.path}.`)
  const options = {
    dataDir: home.path,
    port: await freePort(),
    password: dataDir.secret('postgres.password'),
  }
  let server = await startEmbeddedPostgres(options)
  let isStopping = false

  const restart = async (): Promise<EmbeddedPostgres | null> => {
    for (let pauseMs = 500; !isStopping; pauseMs = Math.min(pauseMs * 2, 30_000)) {
      try {
        return await startEmbeddedPostgres(options)
      } catch (error) {
        say((error as Error).message)
        await sleep(pauseMs)
      }
    }
    return null
  }
  const keepAlive = async () => {
    while (!isStopping) {
      await server.exited
      if (isStopping) return
      say(`PostgreSQL ended by itself; it is started again (its log: ${home.path}.log).`)
      server = (await restart()) ?? server
    }
    // Asked to stop while it was coming up.
    await server.stop()
  }
  void keepAlive()

  return {
    url: await createDatabase(server.url, 'agh'),
    path: home.path,
    stop() {
      isStopping = true
      return server.stop()
    },
    kill() {
      isStopping = true
      server.kill()
    },
  }
}
