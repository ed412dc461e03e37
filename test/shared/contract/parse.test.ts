import { test } from 'tap'
import { z } from 'zod'
import { instant, pageOf, pageQuery } from '../../../shared/contract/common.js'
import { parseWith } from '../../../shared/contract/parse.js'

const problem = (schema: z.ZodType, value: unknown): string => {
  try {
    parseWith(schema, value)
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('It was accepted.')
}

test('validation messages are the texts of documents 1 to 3', async t => {
  t.equal(problem(z.object({ name: z.string() }), {}), 'Required')
  t.equal(problem(z.object({ name: z.string() }), { name: null }), 'Expected string, received null')
  t.equal(problem(z.object({ at: instant }), { at: 'soon' }), 'Invalid date')
  t.equal(problem(pageQuery, { limit: '101' }), 'Number must be less than or equal to 100')
  t.equal(problem(pageQuery, { page: '0' }), 'Number must be greater than or equal to 1')
  t.equal(problem(z.array(z.string()).min(1), []), 'Array must contain at least 1 element(s)')
  t.equal(problem(z.string().max(2), 'abc'), 'String must contain at most 2 character(s)')
  t.equal(
    problem(z.object({ role: z.enum(['owner', 'viewer']) }), { role: 'boss' }),
    "Invalid enum value. Expected 'owner' | 'viewer', received 'boss'",
  )
})

test('what is no string where one of a few is wanted is named by its type, whatever object it is', async t => {
  const schema = z.object({ role: z.enum(['owner', 'viewer']) })
  t.equal(problem(schema, { role: 3 }), "Expected 'owner' | 'viewer', received number")
  t.equal(problem(schema, { role: { toString: 'x' } }), "Expected 'owner' | 'viewer', received object")
})

test('a nested field is named by its path before the message', async t => {
  const schema = z.object({ messages: z.array(z.object({ role: z.string() })) })
  t.equal(problem(schema, { messages: [{ role: 'a' }, {}] }), 'messages.1.role: Required')
})

test('page and limit have their defaults and bounds', async t => {
  t.same(parseWith(pageQuery, {}), { page: 1, limit: 20 })
  t.same(parseWith(pageQuery, { page: '3', limit: '100' }), { page: 3, limit: 100 })
  t.same(
    parseWith(pageQuery, { page: '1000000000000' }),
    { page: 1e12, limit: 20 },
    'an empty page, no error',
  )
  for (const wrong of [{ page: 'x' }, { page: '1.5' }, { limit: '0' }, { limit: '-1' }, { limit: '' }]) {
    t.ok(problem(pageQuery, wrong), JSON.stringify(wrong))
  }
})

test('a page is data, total, page and limit', async t => {
  const page = { data: [{ id: 'a' }], total: 1, page: 1, limit: 20 }
  t.same(pageOf(z.object({ id: z.string() })).parse(page), page)
})

test('an instant is an ISO 8601 date or date-time, in UTC unless it says otherwise', async t => {
  const at = (text: string) => new Date(parseWith(instant, text)).toISOString()
  const zone = process.env.TZ
  process.env.TZ = 'America/New_York'
  t.teardown(() => {
    if (zone === undefined) delete process.env.TZ
    else process.env.TZ = zone
  })
  t.equal(at('2026-11-20'), '2026-11-20T00:00:00.000Z')
  t.equal(at('2026-11-20T10:00:00'), '2026-11-20T10:00:00.000Z', 'whatever the zone of the machine')
  t.equal(at('2026-11-20T10:00'), '2026-11-20T10:00:00.000Z')
  t.equal(at('2026-11-20T10:00:00.123456'), '2026-11-20T10:00:00.123Z')
  t.equal(at('2026-11-20T10:00:00.5Z'), '2026-11-20T10:00:00.500Z')
  t.equal(at('2026-11-20T10:00:00-07:00'), '2026-11-20T17:00:00.000Z')
  t.equal(at('2026-11-20T10:00:00+0200'), '2026-11-20T08:00:00.000Z')
  t.equal(at('2024-02-29'), '2024-02-29T00:00:00.000Z')
  t.equal(at('2026-12-31T23:59:59-01:00'), '2027-01-01T00:59:59.000Z')
  for (const wrong of [
    '',
    'soon',
    '2026',
    '2026-02-29',
    '2026-02-30T00:00:00Z',
    '2026-04-31',
    '2026-13-01',
  ]) {
    t.equal(problem(instant, wrong), 'Invalid date', wrong)
  }
  for (const wrong of ['2026-11-20T', '2026-11-20Tx', '2026-11-20T10:00:00 02:00', '2026-11-20T25:00Z']) {
    t.equal(problem(instant, wrong), 'Invalid date', wrong)
  }
})
