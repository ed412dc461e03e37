import * as analytics from './analytics.js'
import * as apiKeys from './api-keys.js'
import * as audit from './audit.js'
import * as auth from './auth.js'
import * as budgets from './budgets.js'
import * as completions from './completions.js'
import * as connections from './connections.js'
import type { Endpoint } from './endpoint.js'
import * as feedback from './feedback.js'
import * as internal from './internal.js'
import * as models from './models.js'
import * as notifications from './notifications.js'
import * as promptTools from './prompt-tools.js'
import * as prompts from './prompts.js'
import * as secrets from './secrets.js'
import * as sessions from './sessions.js'
import * as settings from './settings.js'
import * as teams from './teams.js'
import * as toolExecution from './tool-execution.js'
import * as tools from './tools.js'
import * as traceIngestion from './trace-ingestion.js'
import * as traces from './traces.js'
import * as virtualKeys from './virtual-keys.js'

/**
 * Every endpoint of the service, in spec order: the OpenAPI document, the test that walks all endpoints and the typed
 * client read this list. An endpoint value exported from one of these modules is in it.
 */
export const endpoints: readonly Endpoint[] = [
  auth,
  teams,
  apiKeys,
  completions,
  connections,
  models,
  virtualKeys,
  budgets,
  secrets,
  settings,
  prompts,
  promptTools,
  tools,
  toolExecution,
  audit,
  notifications,
  traceIngestion,
  traces,
  feedback,
  sessions,
  analytics,
  internal,
].flatMap(domain => Object.values(domain).filter(isEndpoint))

function isEndpoint(value: unknown): value is Endpoint {
  return typeof value === 'object' && value !== null && 'access' in value && 'bodyLimit' in value
}
