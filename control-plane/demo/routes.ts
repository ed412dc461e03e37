/**
 * The built-in demo provider: an OpenAI-compatible model named `demo` that echoes, at `/demo/v1`, so that the first
 * call works with no account and no network (spec 4, section 1). `agh start` makes a connection to it. It reaches
 * nothing, stores nothing, and answers in OpenAI's error format, not in agh's envelope: it plays a provider.
 */
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { MEGABYTE } from '../../shared/contract/endpoint.js'
import type { Deps } from '../deps.js'
import { parseJsonBody } from '../http/body.js'
import { answer } from './answer.js'
import { completion, frames } from './reply.js'
import { DemoError, readRequest } from './request.js'

export const DEMO_MODEL = 'demo'
/** Not a secret: it only shows that the caller's credential is passed on as it should be. */
export const DEMO_KEY = 'agh-demo-provider'
export const DEMO_PATH = '/demo/v1'

export function registerDemo(app: FastifyInstance, deps: Pick<Deps, 'now'>): void {
  app.register(async scope => {
    scope.setErrorHandler((error, _request, reply) => refuse(reply, asDemoError(error)))
    scope.addHook('onRequest', async request => authenticate(request))

    scope.get(`${DEMO_PATH}/models`, async () => ({
      object: 'list',
      data: [{ id: DEMO_MODEL, object: 'model', created: 0, owned_by: 'agh' }],
    }))

    scope.post(`${DEMO_PATH}/chat/completions`, { bodyLimit: 10 * MEGABYTE }, async (request, reply) => {
      const call = readRequest(bodyOf(request))
      if (call.model !== DEMO_MODEL) throw unknownModel(call.model)
      const said = answer(call)
      const head = {
        id: `chatcmpl-${randomBytes(12).toString('hex')}`,
        created: Math.floor(deps.now() / 1000),
        model: DEMO_MODEL,
      }
      if (call.stream !== true) return completion(head, call, said)
      return reply
        .type('text/event-stream')
        .header('cache-control', 'no-cache')
        .send(Readable.from(frames(head, call, said)))
    })
  })
}

function authenticate(request: FastifyRequest): void {
  const sent = request.headers.authorization
  if (sent === undefined) throw new DemoError(401, "You didn't provide an API key.", null)
  if (sent !== `Bearer ${DEMO_KEY}`) {
    throw new DemoError(401, 'Incorrect API key provided.', 'invalid_api_key')
  }
}

const unknownModel = (model: string) =>
  new DemoError(404, `The model '${model}' does not exist; this one is '${DEMO_MODEL}'.`, 'model_not_found')

function bodyOf(request: FastifyRequest): unknown {
  if (!Buffer.isBuffer(request.body)) return request.body
  try {
    return parseJsonBody(request.body)
  } catch {
    throw new DemoError(400, 'We could not parse the JSON body of your request.', null)
  }
}

function asDemoError(error: unknown): DemoError {
  if (error instanceof DemoError) return error
  const status = (error as { statusCode?: number }).statusCode ?? 500
  if (status < 500) return new DemoError(status, (error as Error).message, null)
  return new DemoError(500, 'The server had an error while processing your request.', null)
}

function refuse(reply: FastifyReply, { status, message, code, param }: DemoError): FastifyReply {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error'
  return reply.status(status).send({ error: { message, type, param, code } })
}
