import type { FastifyInstance } from 'fastify'
import { lookUpReferences } from '../../shared/contract/internal.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { lookUp } from './look-up.js'

/** What proxies ask when a call names a stored prompt or tool that they do not remember. */
export function registerReferences(app: FastifyInstance, deps: Deps): void {
  route(app, deps, lookUpReferences, async ({ body }) => lookUp(deps, body))
}
