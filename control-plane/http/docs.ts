import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { endpoints } from '../../shared/contract/index.js'
import type { Deps } from '../deps.js'
import { openApiDocument } from './openapi.js'

/** Everything from this origin; the reader sets styles on elements, nothing else inline. */
const contentSecurityPolicy =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"

/** The OpenAPI document at `/api/v1/openapi.json` and its reader at `/docs` (spec 4, section 9). */
export function registerDocs(app: FastifyInstance, deps: Deps): void {
  const document = openApiDocument(endpoints, deps.config.appUrl)
  const text = JSON.stringify(document)
  app.get('/api/v1/openapi.json', async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(text),
  )
  app.register(documentSource(document))
  app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: contentSecurityPolicy,
    uiConfig: { validatorUrl: null, docExpansion: 'list', deepLinking: true },
    theme: { title: 'agh API' },
  })
}

/** What the reader asks `@fastify/swagger` for. The document is ours already, so that plugin's name is enough. */
function documentSource(document: object) {
  const source = async (app: FastifyInstance) => {
    app.decorate('swagger', () => document)
  }
  return Object.assign(source, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('plugin-meta')]: { name: '@fastify/swagger', fastify: '5.x' },
  })
}
