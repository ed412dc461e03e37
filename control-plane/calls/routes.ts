import type { FastifyInstance } from 'fastify'
import { shipCalls } from '../../shared/contract/internal.js'
import type { Deps } from '../deps.js'
import { rawBody, route } from '../http/route.js'
import { ingestCalls } from './ingest.js'

/** Where proxies ship what finished calls leave behind. */
export function registerCalls(app: FastifyInstance, deps: Deps): void {
  route(app, deps, shipCalls, ({ request }) => ingestCalls(deps, rawBody(request)))
}
