import { test } from 'tap'
import { AppError, notFound, unavailable } from '../../../shared/errors/app-error.js'
import { errorStatus } from '../../../shared/errors/catalogue.js'
import { errorReply } from '../../../shared/errors/envelope.js'

test('an AppError is its code, status, headers and message, and never its cause', async t => {
  const error = unavailable('The database cannot be reached.', 0, new Error('password authentication failed'))
  const reply = errorReply(error, 'r1')
  t.same(reply, {
    status: 503,
    headers: { 'retry-after': '1' },
    body: { error: { code: 'UNAVAILABLE', message: 'The database cannot be reached.' } },
  })
})

test('anything else is INTERNAL_ERROR with the request id and nothing else', async t => {
  for (const thrown of [new Error('secret'), 'secret', null, undefined, { status: 400, message: 'secret' }]) {
    t.same(errorReply(thrown, 'r1'), {
      status: 500,
      headers: {},
      body: { error: { code: 'INTERNAL_ERROR', message: 'Internal error. Request id: r1.' } },
    })
  }
})

test('a message that repeats something huge is shortened to what can be read', async t => {
  const { message } = errorReply(notFound(`Prompt '${'x'.repeat(900_000)}'`), 'r1').body.error
  t.ok(message.length < 5_000)
  t.match(message, /^Prompt 'x+ … x+' not found\.$/)
})

test('a missing resource says which', async t => {
  t.match(notFound('Prompt'), { code: 'NOT_FOUND', status: 404, message: 'Prompt not found.' })
})

test('every code has an error status, and a forwarded provider status overrides its own', async t => {
  for (const status of Object.values(errorStatus)) t.ok(status >= 400 && status < 600)
  t.equal(new AppError('PROVIDER_ERROR', 'x').status, 502)
  t.equal(new AppError('PROVIDER_ERROR', 'x', { status: 422 }).status, 422)
})
