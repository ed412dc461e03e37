import { randomUUID } from 'node:crypto'
import cookie from '@fastify/cookie'
import { type FastifyInstance, fastify, LogController } from 'fastify'
import { registerAnalytics } from './analytics/routes.js'
import { registerApiKeys } from './api-keys/routes.js'
import { registerAudit } from './audit/routes.js'
import { registerAuth } from './auth/routes.js'
import { registerCalls } from './calls/routes.js'
import { registerDemo } from './demo/routes.js'
import type { Deps } from './deps.js'
import { registerDirectory } from './directory/routes.js'
import { registerFeedback } from './feedback/routes.js'
import { registerBudgets } from './gateway/budgets/routes.js'
import { registerConnections } from './gateway/connections/routes.js'
import { registerModels } from './gateway/models/routes.js'
import { registerVirtualKeys } from './gateway/virtual-keys/routes.js'
import { registerDocs } from './http/docs.js'
import { answerBrokenRequest, handleErrors, sendError } from './http/errors.js'
import { registerHealth } from './http/health.js'
import { registerMetrics } from './http/metrics.js'
import { isForwardedByProxy } from './http/origin.js'
import { logRequests } from './http/request-log.js'
import { prepareForRoutes } from './http/route.js'
import { registerLedger } from './ledger/routes.js'
import { registerNotifications } from './notifications/routes.js'
import { registerPromptTools } from './prompt-tools/routes.js'
import { registerPrompts } from './prompts/routes.js'
import { registerReferences } from './references/routes.js'
import { registerSecrets } from './secrets/routes.js'
import { registerSessions } from './sessions/routes.js'
import { registerTraceSettings } from './settings/routes.js'
import { registerTeams } from './teams/routes.js'
import { registerToolExecution } from './tools/execution-routes.js'
import { registerTools } from './tools/routes.js'
import { registerTraces } from './traces/routes.js'
import { registerTraceIngestion } from './traces/trace-ingestion.js'

export interface AppOptions {
  /** Tests: an answer with a field that the contract does not declare fails. */
  strictResponses?: boolean
  /** Adds the process's own figures to /metrics; once per process. */
  processMetrics?: boolean
  /** Whether the job queue is being worked, for /readyz; true where there is none to speak of. */
  jobsRun?: () => boolean
}

/** A request must be here within a minute; without a limit a slow sender holds its socket for ever. */
const REQUEST_WITHIN_MS = 60_000
/** A percent-encoded model name of 128 characters, each up to 3 bytes of 3 characters, and more to spare. */
const MAX_PARAM_LENGTH = 2048

/** The control plane without a listener: every domain registered by name. Tests call it by `inject`. */
export function buildApp(deps: Deps, options: AppOptions = {}): FastifyInstance {
  const app = fastify({
    loggerInstance: deps.log,
    logController: new LogController({ disableRequestLogging: true }),
    requestIdHeader: false,
    genReqId: request => {
      const given = request.headers['x-request-id']
      const isGiven = typeof given === 'string' && /^[\w.:-]{1,128}$/.test(given)
      return isGiven && isForwardedByProxy(request.headers, deps.config) ? given : randomUUID()
    },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    requestTimeout: REQUEST_WITHIN_MS,
    return503OnClosing: true,
    forceCloseConnections: 'idle',
    frameworkErrors: (error, request, reply) => {
      sendError(error, request, reply)
    },
    clientErrorHandler: answerBrokenRequest,
  }) as unknown as FastifyInstance
  const jobsRun = options.jobsRun ?? (() => true)
  app.register(cookie)
  prepareForRoutes(app, { strictResponses: options.strictResponses ?? false })
  handleErrors(app)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
  })
  logRequests(app)
  registerMetrics(app, deps, { defaults: options.processMetrics ?? false, jobsRun })
  registerHealth(app, deps, jobsRun)
  registerDocs(app, deps)
  registerDomains(app, deps)
  return app
}

/** One line a domain. */
function registerDomains(app: FastifyInstance, deps: Deps): void {
  registerAuth(app, deps)
  registerTeams(app, deps)
  registerApiKeys(app, deps)
  registerConnections(app, deps)
  registerModels(app, deps)
  registerVirtualKeys(app, deps)
  registerBudgets(app, deps)
  registerSecrets(app, deps)
  registerTraceSettings(app, deps)
  registerPrompts(app, deps)
  registerPromptTools(app, deps)
  registerTools(app, deps)
  registerToolExecution(app, deps)
  registerAudit(app, deps)
  registerNotifications(app, deps)
  registerTraceIngestion(app, deps)
  registerTraces(app, deps)
  registerSessions(app, deps)
  registerAnalytics(app, deps)
  registerFeedback(app, deps)
  registerDirectory(app, deps)
  registerReferences(app, deps)
  registerCalls(app, deps)
  registerLedger(app, deps)
  registerDemo(app, deps)
}
