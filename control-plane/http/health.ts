import type { FastifyInstance } from 'fastify'
import { unavailable } from '../../shared/errors/app-error.js'
import { knownMigrations } from '../db/migrations.js'
import { isSchemaUsable, pingDatabase } from '../db/schema-check.js'
import type { Deps } from '../deps.js'

const PROBE_MS = 1_500

/** `GET /healthz` and `GET /readyz` (spec 4, section 1). @param jobsRun whether the job queue is being worked. */
export function registerHealth(app: FastifyInstance, deps: Deps, jobsRun: () => boolean): void {
  app.get('/healthz', async () => ({ status: 'ok' }))

  const known = knownMigrations()
  const probes: Record<string, () => Promise<boolean>> = {
    postgres: () => succeeds(pingDatabase(deps.sql)),
    migrations: () => isSchemaUsable(deps.sql, known),
    ledger: () => succeeds(deps.ledger.ping()),
    jobs: async () => jobsRun(),
  }
  app.get('/readyz', async () => {
    const results = await Promise.all(
      Object.entries(probes).map(async ([name, probe]) => ((await inTime(probe)) ? null : name)),
    )
    const missing = results.filter(name => name !== null)
    if (missing.length > 0) throw unavailable(`Not ready: ${missing.join(', ')}.`)
    return { status: 'ok' }
  })
}

const succeeds = (attempt: PromiseLike<unknown>): Promise<boolean> =>
  Promise.resolve(attempt).then(
    () => true,
    () => false,
  )

/** A probe that does not answer within its time has failed. */
async function inTime(probe: () => Promise<boolean>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>(resolve => {
    timer = setTimeout(() => resolve(false), PROBE_MS)
  })
  try {
    return await Promise.race([probe().catch(() => false), late])
  } finally {
    clearTimeout(timer)
  }
}
