import type { FastifyInstance } from 'fastify'
import { lookUpDirectory } from '../../shared/contract/internal.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { lookUp } from './look-up.js'

/** What proxies ask when they do not know a credential or when its team's epoch moved (design D5). */
export function registerDirectory(app: FastifyInstance, deps: Deps): void {
  route(app, deps, lookUpDirectory, async ({ body }) => lookUp(deps, body))
}
