import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../shared/contract/common.js'
import { seedLedger } from '../../shared/contract/internal.js'
import { AppError, notFound } from '../../shared/errors/app-error.js'
import { LedgerUnavailable } from '../../shared/ledger/ledger.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { seedTeam } from './seed.js'

/** For proxies whose ledger answered `unseeded`: a new period, a new budget, an empty Redis. */
export function registerLedger(app: FastifyInstance, deps: Deps): void {
  route(app, deps, seedLedger, async ({ body }) => {
    if (!isUuid(body.teamId)) throw notFound('Team')
    try {
      return { seeded: await seedTeam(deps, body.teamId) }
    } catch (cause) {
      if (!(cause instanceof LedgerUnavailable)) throw cause
      throw new AppError('LEDGER_UNAVAILABLE', cause.message, { cause, headers: { 'retry-after': '1' } })
    }
  })
}
