import type { FastifyInstance } from 'fastify'

/** Asked every few seconds by machines; worth a line only to whoever looks for one. */
const quietRoutes = /^\/(healthz|readyz|metrics|internal\/)/

/** One line a request, without query, body or credential. */
export function logRequests(app: FastifyInstance): void {
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url
    const line = {
      requestId: request.id,
      method: request.method,
      route: route ?? null,
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime * 10) / 10,
      via: request.principal?.via ?? null,
      teamId: request.principal?.teamId ?? null,
    }
    if (route !== undefined && quietRoutes.test(route)) request.log.debug(line, 'request')
    else request.log.info(line, 'request')
  })
}
