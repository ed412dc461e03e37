import { fastify } from 'fastify'
import { test } from 'tap'
import { z } from 'zod'
import type { Deps } from '../../../control-plane/deps.js'
import { handleErrors } from '../../../control-plane/http/errors.js'
import { prepareForRoutes, route } from '../../../control-plane/http/route.js'
import { endpoint } from '../../../shared/contract/endpoint.js'

const thing = endpoint({
  method: 'GET',
  path: '/thing',
  summary: 'A thing.',
  group: 'Test',
  access: 'public',
  query: z.object({ tag: z.union([z.string(), z.array(z.string())]).optional() }),
  response: z.object({ id: z.string(), parts: z.array(z.object({ name: z.string() })) }),
})

const serve = (answer: unknown, strictResponses: boolean) => {
  const app = fastify()
  prepareForRoutes(app, { strictResponses })
  handleErrors(app)
  route(app, {} as Deps, thing, () => answer as { id: string; parts: { name: string }[] })
  return app.inject('/api/v1/thing')
}

test('a field that the contract does not declare never leaves the service, and fails a test', async t => {
  const answer = { id: '1', parts: [{ name: 'a', secret: 's' }], hash: 'h' }
  const live = await serve(answer, false)
  t.same(live.json(), { id: '1', parts: [{ name: 'a' }] })
  t.equal((await serve(answer, true)).statusCode, 500)
  t.equal((await serve({ id: '1', parts: [{ name: 'a' }] }, true)).statusCode, 200)
})

test('an answer that lacks a field of the contract is a 500, not half an answer', async t => {
  const response = await serve({ id: '1' }, false)
  t.equal(response.statusCode, 500)
  t.equal(response.json().error.code, 'INTERNAL_ERROR')
})

test('a repeated query parameter arrives as an array', async t => {
  const app = fastify()
  prepareForRoutes(app, { strictResponses: true })
  const seen: unknown[] = []
  route(app, {} as Deps, thing, ({ query }) => {
    seen.push(query.tag)
    return { id: '1', parts: [] }
  })
  await app.inject('/api/v1/thing?tag=a')
  await app.inject('/api/v1/thing?tag=a&tag=b')
  t.same(seen, ['a', ['a', 'b']])
})
