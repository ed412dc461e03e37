import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { Answer, Checked, Endpoint } from '../../shared/contract/endpoint.js'
import { parseWith } from '../../shared/contract/parse.js'
import { authenticate } from '../access/credentials.js'
import { allow } from '../access/policy.js'
import type { Principal } from '../access/principal.js'
import type { Deps } from '../deps.js'
import { parseJsonBody } from './body.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** Set by buildApp for tests: an answer with a field that the contract does not declare fails. */
    strictResponses: boolean
  }
  interface FastifyRequest {
    principal: Principal
  }
}

/** What a handler gets: the checked request, who is calling, and Fastify's own objects for headers and raw bodies. */
export type RouteInput<E extends Endpoint> = Checked<E> & {
  principal: Principal
  request: FastifyRequest
  reply: FastifyReply
}

/** An endpoint without a response schema has a handler that returns nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: an async function without a return is Promise<void>
type Returned<E extends Endpoint> = undefined extends Answer<E> ? Answer<E> | void : Answer<E>

/** Where an endpoint is served: `/api/v1` before all but the internal ones. */
export const servedPath = (endpoint: Endpoint): string =>
  endpoint.path.startsWith('/internal/') ? endpoint.path : `/api/v1${endpoint.path}`

/**
 * Serves an endpoint of the contract: authenticate, apply its access, then read and check params, query and body, call
 * the handler, check what it returns, answer. This is the only place where zod meets Fastify.
 *
 * The caller is checked before the body is read: a stranger cannot make the process buffer megabytes. The body is parsed
 * as JSON whatever the Content-Type says, so no header gets around validation. A handler that answers by itself
 * (`reply.send`) returns undefined.
 */
export function route<E extends Endpoint>(
  app: FastifyInstance,
  deps: Deps,
  endpoint: E,
  handle: (input: RouteInput<E>) => Returned<E> | Promise<Returned<E>>,
): void {
  app.route({
    method: endpoint.method,
    url: servedPath(endpoint),
    bodyLimit: endpoint.bodyLimit,
    onRequest: async request => {
      const principal = await authenticate(endpoint.access, request, deps)
      allow(endpoint.access, principal)
      request.principal = principal
    },
    handler: async (request, reply) => {
      const checked = {
        params: checkedPart(endpoint.params, request.params),
        query: checkedPart(endpoint.query, request.query),
        body: endpoint.body === undefined ? undefined : checkedPart(endpoint.body, bodyOf(request)),
      } as Checked<E>
      const answer = await handle({ ...checked, principal: request.principal, request, reply })
      if (reply.sent) return reply
      return send(reply.code(endpoint.status), endpoint, answer, app.strictResponses)
    },
  })
}

/** The bytes of a request whose body is not JSON; empty without a body. */
export const rawBody = (request: FastifyRequest): Buffer =>
  Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)

/** Adds what `route` needs to an instance: raw bodies for every Content-Type, the caller's place. */
export function prepareForRoutes(app: FastifyInstance, options: { strictResponses: boolean }): void {
  app.decorate('strictResponses', options.strictResponses)
  app.decorateRequest('principal')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))
}

const checkedPart = (schema: z.ZodType | undefined, value: unknown): unknown =>
  schema === undefined ? undefined : parseWith(schema, value)

/** No body at all is an empty object where the contract wants an object: its fields are then what is `Required`. */
function bodyOf(request: FastifyRequest): unknown {
  const bytes = rawBody(request)
  return bytes.length === 0 ? {} : parseJsonBody(bytes)
}

function send(reply: FastifyReply, endpoint: Endpoint, answer: unknown, strict: boolean): FastifyReply {
  if (endpoint.response === undefined) return reply.send()
  const checked = endpoint.response.safeParse(answer)
  const name = `${endpoint.method} ${endpoint.path}`
  if (!checked.success)
    throw new Error(`The answer of ${name} breaks its contract.`, { cause: checked.error })
  const extra = strict ? undeclaredField(answer, checked.data) : undefined
  if (extra !== undefined) throw new Error(`The answer of ${name} has an undeclared field: ${extra}`)
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(checked.data))
}

/** The path of the first field that the handler returned and the contract's schema stripped. */
function undeclaredField(answer: unknown, declared: unknown, path = ''): string | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined
  if (typeof declared !== 'object' || declared === null) return undefined
  for (const [key, value] of Object.entries(answer)) {
    if (value === undefined) continue
    if (!(key in declared)) return `${path}${key}`
    const deeper = undeclaredField(value, declared[key as keyof typeof declared], `${path}${key}.`)
    if (deeper !== undefined) return deeper
  }
  return undefined
}
