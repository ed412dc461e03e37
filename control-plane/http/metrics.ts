import type { FastifyInstance } from 'fastify'
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { checkMetricsReader } from '../../shared/metrics/access.js'
import type { Deps } from '../deps.js'

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * `GET /metrics` in Prometheus text format, and the figures of every request. Labels are bounded: the route's pattern,
 * never a path, a team or a key.
 *
 * @param options.defaults whether to add the process's own figures (CPU, memory, event loop); once per process.
 */
export function registerMetrics(
  app: FastifyInstance,
  deps: Deps,
  options: { defaults: boolean; jobsRun: () => boolean },
): void {
  const registry = new Registry()
  if (options.defaults) collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
  const requestSeconds = new Histogram({
    name: 'agh_control_plane_request_seconds',
    help: 'Requests by route and status.',
    labelNames: ['method', 'route', 'status'],
    buckets: SECONDS,
    registers: [registry],
  })
  new Gauge({
    name: 'agh_control_plane_jobs_running',
    help: '1 while this process takes jobs from the queue.',
    registers: [registry],
    collect() {
      this.set(options.jobsRun() ? 1 : 0)
    },
  })

  app.addHook('onResponse', async (request, reply) => {
    const { method } = request
    const route = request.routeOptions.url ?? 'unknown'
    requestSeconds.labels(method, route, String(reply.statusCode)).observe(reply.elapsedTime / 1000)
  })

  app.get('/metrics', async (request, reply) => {
    const forwarded = request.headers['x-forwarded-for'] ?? request.headers.forwarded
    checkMetricsReader({
      token: deps.config.METRICS_TOKEN,
      authorization: request.headers.authorization,
      remoteAddress: request.socket.remoteAddress ?? '',
      forwardedFor: forwarded?.toString(),
    })
    return reply.type(registry.contentType).send(await registry.metrics())
  })
}
