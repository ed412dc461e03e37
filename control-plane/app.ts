import { randomUUID } from 'node:crypto'
import cookie from '@fastify/cookie'
import { type FastifyInstance, fastify } from 'fastify'
import { registerCalls } from './calls/routes.js'
import { registerDemo } from './demo/routes.js'
import type { Deps } from './deps.js'
import { registerDirectory } from './directory/routes.js'
import { registerConnections } from './gateway/connections/routes.js'
import { registerModels } from './gateway/models/routes.js'
import { registerVirtualKeys } from './gateway/virtual-keys/routes.js'
import { handleErrors } from './http/errors.js'
import { isForwardedByProxy } from './http/origin.js'
import { prepareForRoutes } from './http/route.js'
import { registerTraceSettings } from './settings/routes.js'
import { registerTraces } from './traces/routes.js'

export interface AppOptions {
  /** Tests: an answer with a field that the contract does not declare fails. */
  strictResponses?: boolean
}

/** The control plane without a listener: every domain registered by name. Tests call it by `inject`. */
export function buildApp(deps: Deps, options: AppOptions = {}): FastifyInstance {
  const app = fastify({
    loggerInstance: deps.log,
    disableRequestLogging: true,
    requestIdHeader: false,
    genReqId: request => {
      const given = request.headers['x-request-id']
      const isGiven = typeof given === 'string' && /^[\w.:-]{1,128}$/.test(given)
      return isGiven && isForwardedByProxy(request.headers, deps.config) ? given : randomUUID()
    },
    // A percent-encoded model name of 128 characters, each up to 3 bytes of 3 characters.
    routerOptions: { maxParamLength: 2048 },
    return503OnClosing: true,
    forceCloseConnections: 'idle',
  }) as unknown as FastifyInstance
  app.register(cookie)
  prepareForRoutes(app, { strictResponses: options.strictResponses ?? false })
  handleErrors(app)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
  })
  registerDomains(app, deps)
  return app
}

/** One line a domain. */
function registerDomains(app: FastifyInstance, deps: Deps): void {
  registerConnections(app, deps)
  registerModels(app, deps)
  registerVirtualKeys(app, deps)
  registerDirectory(app, deps)
  registerTraces(app, deps)
  registerTraceSettings(app, deps)
  registerCalls(app, deps)
  registerDemo(app, deps)
}
