import { AppError, notFound, unavailable } from '../shared/errors/app-error.js'
import { checkMetricsReader } from '../shared/metrics/access.js'
import { VIRTUAL_KEY_PREFIX } from '../shared/secrets/token.js'
import { listModels } from './chat/list-models.js'
import { completeChat } from './chat/pipeline.js'
import { replyError } from './chat/reply.js'
import type { Deps } from './deps.js'
import type { Exchange, Handler } from './http/exchange.js'

/** What the process knows of itself. */
export interface Health {
  /** Names of what cannot be reached; empty when the process is ready for traffic. */
  missing(): Promise<readonly string[]>
  /** Prometheus text, of all workers that share the port. */
  metricsText(): Promise<string>
}

const COMPLETIONS = '/api/v1/gateway/chat/completions'
const MODELS = '/api/v1/gateway/models'
const JSON_HEADERS = ['content-type', 'application/json']
const METRICS_HEADERS = ['content-type', 'text/plain; version=0.0.4; charset=utf-8']
/** Of a virtual key's bearer; API keys start otherwise, and the control plane knows what to do with them. */
const VIRTUAL_BEARER = new RegExp(`^bearer\\s+${VIRTUAL_KEY_PREFIX}`, 'i')

/**
 * The proxy's routes (spec 4, section 1): completions and a virtual key's model list are answered here, so are the
 * process's own health and metrics; everything else goes to the control plane.
 *
 * This is the one place that catches what a handler throws before it has taken charge of the reply.
 */
export function createHandler(deps: Deps, health: Health): Handler {
  return exchange => {
    try {
      route(exchange, deps, health)
    } catch (error) {
      fail(exchange, error, deps)
    }
  }
}

function route(exchange: Exchange, deps: Deps, health: Health): void {
  const { method, path } = exchange
  if (path === COMPLETIONS) {
    if (method !== 'POST') throw notFound('Route')
    completeChat(exchange, deps)
    return
  }
  if (
    path === MODELS &&
    method === 'GET' &&
    VIRTUAL_BEARER.test(exchange.headers.get('authorization') ?? '')
  ) {
    listModels(exchange, deps)
    return
  }
  const own = ownRoutes[path]
  if (own === undefined) {
    deps.metrics.forwarded.inc()
    deps.forward.handle(exchange)
    return
  }
  if (method !== 'GET' && method !== 'HEAD') throw notFound('Route')
  own(exchange, deps, health).catch(error => fail(exchange, error, deps))
}

const ownRoutes: Record<string, (exchange: Exchange, deps: Deps, health: Health) => Promise<void>> = {
  // No prototype: a path such as `/constructor` is no route, and neither is one without its slash.
  __proto__: null as never,
  async '/healthz'(exchange) {
    exchange.reply(200, JSON_HEADERS, '{"status":"ok"}')
  },
  async '/readyz'(exchange, _deps, health) {
    const missing = await health.missing()
    if (missing.length > 0) throw unavailable(`Not ready: ${missing.join(', ')}.`)
    exchange.reply(200, JSON_HEADERS, '{"status":"ok"}')
  },
  async '/metrics'(exchange, deps, health) {
    checkMetricsReader({
      token: deps.config.metricsToken,
      authorization: exchange.headers.get('authorization'),
      remoteAddress: exchange.remoteAddress,
      forwardedFor: exchange.headers.get('x-forwarded-for') ?? exchange.headers.get('forwarded'),
    })
    exchange.reply(200, METRICS_HEADERS, await health.metricsText())
  },
}

function fail(exchange: Exchange, error: unknown, deps: Deps): void {
  if (!(error instanceof AppError)) {
    deps.metrics.errors.inc()
    deps.log.error({ err: error, requestId: exchange.requestId, path: exchange.path }, 'request failed')
  }
  replyError(exchange, error)
}
