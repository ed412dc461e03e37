import { randomUUID } from 'node:crypto'
import t from 'tap'
import { listTraces } from '../../../shared/contract/traces.js'
import { callRecord, ship } from '../../support/call-records.js'
import { type ControlPlane, type Credential, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

const NOW = Date.parse('2026-11-21T12:00:00.000Z')
const DAY_MS = 86_400_000

async function setUp(t: Parameters<typeof startControlPlane>[0]) {
  const clock = { ms: NOW }
  const cp = await startControlPlane(t, { now: () => clock.ms })
  const ours = await team(cp)
  const list = (query: Record<string, string | string[]> = {}, as: Credential = ours.viewer.personalKey) =>
    cp.call(listTraces, { query: query as never, as })
  /** Ids that a query finds, in order. */
  const ids = async (query?: Record<string, string | string[]>) => {
    const { error, body } = await list(query)
    if (error !== null) throw new Error(error.message)
    return body.data.map(row => row.id)
  }
  return { cp, clock, ours, list, ids }
}

type Parts = Parameters<typeof callRecord>[1]

/** Stores one trace of one call. @returns its id. */
async function trace(cp: ControlPlane, teamId: string, parts: Parts = {}): Promise<string> {
  const call = callRecord(teamId, { ...parts, charge: { admittedAtMs: NOW, ...parts.charge } })
  await ship(cp, [call])
  return call.span.trace.id
}

t.test('a row has every field of the contract', async t => {
  const { cp, ours, list } = await setUp(t)
  const id = await trace(cp, ours.teamId, {
    trace: { name: 'Checkout', sessionId: 's-1', tags: ['b', 'a'] },
    span: { attributes: { warnings: ['slow'] } },
  })
  t.same((await list()).body, {
    data: [
      {
        id,
        name: 'Checkout',
        sessionId: 's-1',
        status: 'ok',
        startedAt: '2026-11-21T12:00:00.000Z',
        endedAt: '2026-11-21T12:00:00.250Z',
        spanCount: 1,
        totalCostUsd: 0.0000015,
        totalTokens: 12,
        durationMs: 250,
        tags: ['a', 'b'],
        hasWarning: true,
      },
    ],
    total: 1,
    page: 1,
    limit: 20,
  })
})

t.test('newest first, every trace on exactly one page, total over all pages', async t => {
  const { cp, clock, ours, list } = await setUp(t)
  const newestFirst: string[] = []
  for (let batch = 0; batch < 5; batch++) {
    clock.ms += 1
    const calls = Array.from({ length: 9 }, (_, i) =>
      callRecord(ours.teamId, { span: { startTimeMs: clock.ms + i } }),
    )
    await ship(cp, calls)
    newestFirst.unshift(...calls.toReversed().map(call => call.span.trace.id))
  }
  const seen: string[] = []
  for (let page = 1; page <= 6; page++) {
    const { body } = await list({ page: String(page), limit: '10' })
    t.match(body, { total: 45, page, limit: 10 })
    t.equal(body.data.length, page < 5 ? 10 : page === 5 ? 5 : 0)
    seen.push(...body.data.map(row => row.id))
  }
  t.same(seen, newestFirst)
})

t.test('the window is the server’s receipt time: both ends inclusive, 30 days by default', async t => {
  const { cp, clock, ours, ids } = await setUp(t)
  const at = async (ms: number) => {
    clock.ms = ms
    return trace(cp, ours.teamId, { span: { startTimeMs: NOW - 400 * DAY_MS } })
  }
  const tooOld = await at(NOW - 30 * DAY_MS - 1)
  const oldest = await at(NOW - 30 * DAY_MS)
  const middle = await at(NOW - 10 * DAY_MS)
  const newest = await at(NOW)
  t.same(await ids(), [newest, middle, oldest])
  const iso = (ms: number) => new Date(ms).toISOString()
  t.same(await ids({ from: iso(NOW - 10 * DAY_MS), to: iso(NOW) }), [newest, middle])
  t.same(await ids({ from: iso(NOW - 10 * DAY_MS + 1), to: iso(NOW) }), [newest])
  t.same(await ids({ from: iso(NOW - 10 * DAY_MS), to: iso(NOW - 1) }), [middle])
  t.same(await ids({ from: '2020-01-01' }), [newest, middle, oldest, tooOld])
  t.same(await ids({ to: iso(NOW - 5 * DAY_MS) }), [middle, oldest, tooOld], '30 days before `to`')
  t.same(await ids({ to: '2099-01-01' }), [newest, middle, oldest], 'a `to` ahead leaves the last 30 days')
  t.same(await ids({ from: iso(NOW), to: iso(NOW - 1) }), [])
})

t.test('status, model and session_id match exactly, each trace once', async t => {
  const { cp, ours, ids, list } = await setUp(t)
  const id = randomUUID()
  for (const model of ['gpt-a', 'gpt-a', 'gpt-b']) {
    await trace(cp, ours.teamId, { trace: { id, sessionId: 's%1' }, span: { model } })
  }
  const failed = await trace(cp, ours.teamId, {
    span: { status: 'error', model: 'gpt-b', errorType: 'provider_error', errorCode: 'boom' },
    trace: { sessionId: 'sx1' },
  })
  t.same(await ids({ model: 'gpt-a' }), [id])
  t.equal((await list({ model: 'gpt-b' })).body.total, 2)
  t.same(await ids({ model: 'gpt' }), [])
  t.same(await ids({ status: 'error' }), [failed])
  t.same(await ids({ status: 'ok' }), [id])
  t.same(await ids({ status: 'unset' }), [])
  t.same(await ids({ session_id: 's%1' }), [id])
  t.same(await ids({ session_id: 's%1', status: 'error' }), [], 'filters are combined')
  t.same(await ids({ error_type: 'provider_error' }), [failed])
  t.same(await ids({ error_type: 'transform' }), [])
  t.same(await ids({ error_code: 'boom' }), [failed])
})

t.test('lower bounds are inclusive and compare the trace’s totals', async t => {
  const { cp, ours, ids } = await setUp(t)
  const id = randomUUID()
  for (const offset of [0, 500]) {
    await trace(cp, ours.teamId, {
      trace: { id },
      span: { startTimeMs: NOW + offset, endTimeMs: NOW + offset + 250 },
    })
  }
  const unpriced = await trace(cp, ours.teamId, { span: { costNano: null, tokens: null, endTimeMs: NOW } })
  t.same(await ids({ min_latency_ms: '750' }), [id])
  t.same(await ids({ min_latency_ms: '750.5' }), [])
  t.same(await ids({ min_cost_usd: '0.000003' }), [id])
  t.same(await ids({ min_cost_usd: '0.000003001' }), [])
  t.same((await ids({ min_cost_usd: '0' })).includes(unpriced), false, 'no cost is not a cost of 0')
  t.same(await ids({ min_tokens: '24' }), [id])
  t.same(await ids({ min_tokens: '25' }), [])
})

t.test('tags must all be there, metadata must contain the pairs', async t => {
  const { cp, ours, ids } = await setUp(t)
  const one = await trace(cp, ours.teamId, {
    trace: { tags: ['a', 'b'], metadata: { env: 'prod', n: 5, ok: true, 'a"]b': 'x' } },
  })
  const two = await trace(cp, ours.teamId, { trace: { tags: ['a'], metadata: { env: 'prod', n: '5' } } })
  const both = [one, two].sort()
  t.same((await ids({ tags: 'a' })).sort(), both)
  t.same(await ids({ tags: ['a', 'b'] }), [one])
  t.same((await ids({ 'metadata[env]': 'prod' })).sort(), both)
  t.same((await ids({ 'metadata[n]': '5' })).sort(), both, 'a query string has no types')
  t.same(await ids({ 'metadata[env]': 'prod', 'metadata[ok]': 'true' }), [one])
  t.same(await ids({ 'metadata[a"]b]': 'x' }), [one])
  t.same(await ids({ 'metadata[env]': ['prod', 'dev'] }), [])
  t.same(await ids({ 'metadata[__proto__]': 'x' }), [])
})

t.test('has_warning takes both sides', async t => {
  const { cp, ours, ids } = await setUp(t)
  const warned = await trace(cp, ours.teamId, { span: { attributes: { warning: 'hot' } } })
  const calm = await trace(cp, ours.teamId, { span: { attributes: { warnings: [] } } })
  t.same(await ids({ has_warning: 'true' }), [warned])
  t.same(await ids({ has_warning: 'false' }), [calm])
})

t.test('prompt_version_id matches any span', async t => {
  const { cp, ours, ids } = await setUp(t)
  const version = randomUUID()
  const id = await trace(cp, ours.teamId, { span: { promptVersionId: version } })
  await trace(cp, ours.teamId)
  t.same(await ids({ prompt_version_id: version.toUpperCase() }), [id])
})

t.test(
  'q finds text in names, attributes and captured payload; its wildcards are ordinary characters',
  async t => {
    const { cp, ours, ids } = await setUp(t)
    const id = await trace(cp, ours.teamId, {
      trace: { name: 'Nightly 100% run' },
      span: {
        name: 'chat_fast',
        attributes: { note: 'blue whale' },
        payload: {
          input: [{ role: 'user', content: 'say "hi\\there"\nnow' }],
          output: 'Grüße',
          variables: null,
        },
      },
    })
    const unnamed = await trace(cp, ours.teamId)
    const finds = async (q: string, q_in?: string) =>
      (await ids({ q, ...(q_in !== undefined && { q_in }) })).includes(id)
    t.ok(await finds('100%'))
    t.notOk(await finds('1%0'))
    t.ok(await finds('CHAT_FAST'))
    t.notOk(await finds('chat-fast'))
    t.ok(await finds('blue WHALE'))
    t.ok(await finds('"hi\\there"\nnow'))
    t.ok(await finds('"hi\\there"', 'input'))
    t.notOk(await finds('grüße', 'input'))
    t.ok(await finds('grüße', 'output'))
    t.notOk(await finds('grüße', 'name'))
    t.ok(await finds('nightly', 'name'))
    t.same(await ids({ q: 'Trace 2026-11-21T12:00' }), [unnamed], 'a default name is a name')
    t.equal((await ids({ q: '   ' })).length, 2, 'blank means no filter')
    t.same(await ids({ q: `'; drop table traces; --` }), [])
  },
)

t.test('wrong parameters answer 400 in the words of the spec', async t => {
  const { list } = await setUp(t)
  const wrong: [Record<string, string>, string][] = [
    [{ limit: '101' }, 'Number must be less than or equal to 100'],
    [{ page: '0' }, 'Number must be greater than or equal to 1'],
    [{ from: 'yesterday' }, 'Invalid date'],
    [{ to: '' }, 'Invalid date'],
    [{ status: 'done' }, "Invalid enum value. Expected 'ok' | 'error' | 'unset', received 'done'"],
    [{ error_code: ' ' }, 'error_code must not be blank'],
    [{ min_latency_ms: 'fast' }, 'Expected number, received nan'],
    [{ min_cost_usd: '' }, 'Expected number, received nan'],
    [{ has_warning: 'maybe' }, "Invalid enum value. Expected 'true' | 'false', received 'maybe'"],
    [{ prompt_version_id: 'x' }, 'Invalid uuid'],
    [{ min_score: 'x' }, 'Expected number, received nan'],
    [{ q: 'a\u0000' }, 'q must not contain the NUL character'],
    [{ q: 'x'.repeat(257) }, 'String must contain at most 256 character(s)'],
  ]
  for (const [query, message] of wrong) {
    const { status, error } = await list(query)
    t.same(
      { status, error },
      { status: 400, error: { code: 'VALIDATION_ERROR', message } },
      JSON.stringify(query),
    )
  }
  t.match((await list({ error_type: 'other' })).error?.message, /^Invalid enum value/)
})

t.test('every member reads, whatever the credential; nobody reads another team', async t => {
  const { cp, ours, list } = await setUp(t)
  const theirs = await team(cp)
  await trace(cp, ours.teamId)
  for (const person of [ours.owner, ours.admin, ours.editor, ours.viewer]) {
    t.equal((await list({}, person.session)).body.total, 1)
    t.equal((await list({}, person.personalKey)).body.total, 1)
  }
  t.equal((await list({}, ours.teamKey)).body.total, 1)
  t.equal((await list({}, theirs.owner.session)).body.total, 0)
  t.same((await list({}, {})).error, { code: 'UNAUTHORIZED', message: 'Authentication required.' })
  t.equal((await list({}, ours.virtualKey)).status, 401)
})

t.test('hostile searches answer 200 or 400, never 500', async t => {
  const { cp, ours, list } = await setUp(t)
  await trace(cp, ours.teamId, { span: { payload: { input: 'x', output: 'y', variables: null } } })
  const texts = [
    '\u0000',
    '\ud800',
    '%%%',
    '\\',
    "'",
    '"',
    '$1',
    '{{x}}',
    '..',
    '[',
    '(a+)+$',
    '\u202e',
    '😀',
    '-1',
    '1e400',
    '99999999999999999999',
  ]
  const names = [
    'q',
    'model',
    'session_id',
    'error_code',
    'tags',
    'metadata[a]',
    'metadata[\u0000]',
    'min_tokens',
    'min_cost_usd',
    'min_latency_ms',
    'from',
    'page',
    'limit',
    'prompt_version_id',
  ]
  for (const name of names) {
    for (const text of texts) {
      const { status } = await list({ [name]: text })
      t.ok(status === 200 || status === 400, `${JSON.stringify([name, text])}: ${status}`)
    }
  }
})
