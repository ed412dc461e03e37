import { randomUUID } from 'node:crypto'
import t from 'tap'
import { feedbackScene, NOW, promptVersions } from './scene.js'

t.test('the feed is the team’s feedback on all traces, newest first, page by page', async t => {
  const { theirs, posted, trace, feed } = await feedbackScene(t)
  const [first, second] = [await trace(), await trace()]
  const rows = []
  for (let i = 0; i < 25; i++) rows.unshift(await posted(i % 2 ? first.id : second.id, { rating: i % 6 }))
  await posted((await trace({}, theirs.teamId)).id, { rating: 1 }, theirs.owner.session)
  t.same((await feed()).body, { data: rows.slice(0, 20), total: 25, page: 1, limit: 20 })
  t.same((await feed({ page: '3', limit: '10' })).body, {
    data: rows.slice(20),
    total: 25,
    page: 3,
    limit: 10,
  })
  t.same((await feed({ page: '4', limit: '10' })).body.data, [])
})

t.test('a limit above 100 or a bad value is refused', async t => {
  const { feed } = await feedbackScene(t)
  const refused: [Record<string, string>, string][] = [
    [{ limit: '101' }, 'Number must be less than or equal to 100'],
    [{ from: 'yesterday' }, 'Invalid date'],
    [{ rating: '5' }, `Invalid enum value. Expected 'up' | 'down' | 'none', received '5'`],
    [{ has_comment: 'yes' }, `Invalid enum value. Expected 'true' | 'false', received 'yes'`],
  ]
  for (const [query, message] of refused) {
    t.match(await feed(query), { status: 400, error: { code: 'VALIDATION_ERROR', message } })
  }
  for (const query of [{ source: 'robot' }, { error_type: 'x' }, { error_code: ' ' }, { status: 'x' }]) {
    t.match(await feed(query as never), { status: 400, error: { code: 'VALIDATION_ERROR' } })
  }
})

t.test('rating, source, label and has_comment filter the rows themselves, alone and together', async t => {
  const { posted, trace, found } = await feedbackScene(t)
  const { id } = await trace()
  const make = async (body: object) => (await posted(id, body)).id
  const best = await make({ rating: 5, source: 'end_user' })
  const up = await make({ rating: 1, label: 'Nice', comment: 'text' })
  const zero = await make({ rating: 0, label: 'nice', source: 'api' })
  const down = await make({ rating: -1, comment: 'text', source: 'end_user' })
  const none = await make({ label: 'Nice', source: 'developer' })
  t.same(await found({ rating: 'up' }), [up, best])
  t.same(await found({ rating: 'down' }), [down])
  t.same(await found({ rating: 'none' }), [none])
  t.same(await found({ source: 'end_user' }), [down, best])
  t.same(await found({ source: 'api' }), [zero])
  t.same(await found({ label: 'Nice' }), [none, up], 'exact')
  t.same(await found({ has_comment: 'true' }), [down, up])
  t.same(await found({ has_comment: 'false' }), [none, zero, best])
  t.same(await found({ rating: 'down', has_comment: 'true', source: 'end_user' }), [down])
  t.same(await found({ rating: 'down', has_comment: 'false' }), [])
})

t.test('from and to are the feedback’s own time, both inclusive, with no default window', async t => {
  const { clock, posted, trace, found } = await feedbackScene(t)
  const { id } = await trace()
  clock.ms = NOW + 400 * 86_400_000
  const late = await posted(id, { rating: 1 })
  const later = await posted(id, { rating: 2 })
  t.same(await found(), [later.id, late.id], 'a trace of last year')
  t.same(await found({ from: late.createdAt, to: later.createdAt }), [later.id, late.id])
  t.same(await found({ from: later.createdAt }), [later.id])
  t.same(await found({ to: late.createdAt }), [late.id])
  clock.ms += 800 * 86_400_000
  t.same(await found(), [later.id, late.id], 'feedback of years ago')
})

t.test('every filter of GET /traces asks about the row’s trace', async t => {
  const { cp, ours, posted, trace, found } = await feedbackScene(t)
  const { versionIds } = await promptVersions(cp, ours.teamId, 'Greeting', [1])
  const special = await trace({
    trace: { name: 'Checkout', sessionId: 's-1', tags: ['a', 'b'], metadata: { tier: 'gold' } },
    span: {
      name: 'charge card',
      status: 'error',
      model: 'gpt-special',
      promptVersionId: versionIds[0] ?? '',
      errorType: 'provider_error',
      errorCode: 'boom',
      endTimeMs: NOW + 900_000,
      startTimeMs: NOW,
      costNano: 5_000_000_000,
      attributes: { warnings: ['slow'], region: 'north' },
      payload: { input: 'the question', output: 'the answer', variables: null },
    },
  })
  const plain = await trace({ trace: { sessionId: 's-2', tags: ['a'] } })
  const wanted = await posted(special.id, { rating: 1 })
  const second = await posted(special.id, { rating: -1 })
  await posted(plain.id, { rating: 2 })
  const queries: Record<string, string | string[]>[] = [
    { status: 'error' },
    { model: 'gpt-special' },
    { session_id: 's-1' },
    { prompt_version_id: versionIds[0] ?? '' },
    { min_latency_ms: '900000' },
    { min_cost_usd: '5' },
    { error_type: 'provider_error' },
    { error_code: 'boom' },
    { has_warning: 'true' },
    { tags: ['a', 'b'] },
    { 'metadata[tier]': 'gold' },
    { q: 'CHARGE' },
    { q: 'north' },
    { q: 'question', q_in: 'input' },
    { q: 'answer', q_in: 'output' },
    { q: 'checkout', q_in: 'name' },
    { model: 'gpt-special', tags: 'b', status: 'error', q: 'the question' },
  ]
  for (const query of queries) {
    t.same(await found(query), [second.id, wanted.id], JSON.stringify(query))
    t.same(await found({ ...query, rating: 'up' }), [wanted.id], 'with a filter of the row')
  }
  t.same(await found({ q: 'question', q_in: 'output' }), [])
  t.same(await found({ model: 'gpt-special', session_id: 's-2' }), [])
  t.equal((await found({ tags: 'a' })).length, 3)
  t.equal((await found({ q: ' ' })).length, 3, 'a blank q is no filter')
  t.equal((await found({ min_tokens: '12' })).length, 3)
  t.equal((await found({ min_tokens: '13' })).length, 0)
})

t.test('prompt_id and the rating bounds are filters of the trace, too', async t => {
  const { cp, ours, posted, trace, found } = await feedbackScene(t)
  const { promptId, versionIds } = await promptVersions(cp, ours.teamId, 'Greeting', [1, 2])
  const [one, two, other] = [
    await trace({ span: { promptVersionId: versionIds[0] ?? '' } }),
    await trace({ span: { promptVersionId: versionIds[1] ?? '' } }),
    await trace(),
  ]
  const first = await posted(one.id, { rating: 5 })
  const second = await posted(two.id, { rating: 1 })
  const third = await posted(other.id, { label: 'unrated' })
  t.same(await found({ prompt_id: promptId }), [second.id, first.id])
  t.same(await found({ prompt_id: randomUUID() }), [])
  t.same(await found({ min_rating: '2' }), [first.id])
  t.same(await found({ max_rating: '1' }), [second.id], 'a trace without a rating matches no bound')
  t.equal((await found({})).includes(third.id), true)
})

t.test('another team’s feedback is in no answer', async t => {
  const { theirs, posted, trace, found, feed, summary } = await feedbackScene(t)
  const foreign = await trace({ span: { model: 'theirs' } }, theirs.teamId)
  await posted(foreign.id, { rating: 1 }, theirs.owner.session)
  t.same(await found(), [])
  t.same(await found({ model: 'theirs' }), [])
  t.same((await summary({ group_by: 'model' })).body.buckets, [])
  t.equal((await feed({}, theirs.viewer.session)).body.total, 1)
})
