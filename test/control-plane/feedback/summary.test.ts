import { randomUUID } from 'node:crypto'
import t from 'tap'
import { DAY_MS, feedbackScene, NOW, promptVersions } from './scene.js'

t.test('by model: count, average of the rated rows, rows below 0, ordered by label', async t => {
  const { posted, trace, summary } = await feedbackScene(t)
  const [a, b] = [await trace({ span: { model: 'gpt-b' } }), await trace({ span: { model: 'gpt-a' } })]
  await posted(a.id, { rating: 5 })
  await posted(a.id, { rating: -1 })
  await posted(a.id, { label: 'unrated' })
  await posted(b.id, { comment: 'unrated' })
  t.same((await summary({ group_by: 'model' })).body, {
    groupBy: 'model',
    buckets: [
      { key: 'gpt-a', label: 'gpt-a', promptId: null, count: 1, avgRating: null, downCount: 0 },
      { key: 'gpt-b', label: 'gpt-b', promptId: null, count: 3, avgRating: 2, downCount: 1 },
    ],
  })
})

t.test('by prompt version, which is the default: labelled with the prompt’s name and the number', async t => {
  const { cp, ours, posted, trace, summary } = await feedbackScene(t)
  const { promptId, versionIds } = await promptVersions(cp, ours.teamId, 'Greeting', [2, 10])
  const gone = randomUUID()
  for (const [promptVersionId, rating] of [
    [versionIds[0] ?? '', 1],
    [versionIds[1] ?? '', -1],
    [gone, 4],
  ] as const) {
    await posted((await trace({ span: { promptVersionId } })).id, { rating })
  }
  await posted((await trace()).id, { rating: 1 })
  const { body } = await summary()
  t.equal(body.groupBy, 'prompt_version')
  const expected = [
    { key: versionIds[1], label: 'Greeting v10', promptId, count: 1, avgRating: -1, downCount: 1 },
    { key: versionIds[0], label: 'Greeting v2', promptId, count: 1, avgRating: 1, downCount: 0 },
    { key: gone, label: gone, promptId: null, count: 1, avgRating: 4, downCount: 0 },
  ].sort((x, y) => (x.label < y.label ? -1 : 1))
  t.same(body.buckets, expected)
  t.same((await summary({ group_by: 'prompt_version' })).body, body)
})

t.test('the version of a deleted prompt keeps its label', async t => {
  const { cp, ours, posted, trace, summary } = await feedbackScene(t)
  const { promptId, versionIds } = await promptVersions(cp, ours.teamId, 'Old', [1])
  await posted((await trace({ span: { promptVersionId: versionIds[0] ?? '' } })).id, { rating: 1 })
  await cp.deps.sql`update prompts set deleted_at = now() where id = ${promptId}`
  t.match((await summary()).body.buckets, [{ label: 'Old v1', promptId }])
})

t.test(
  'every row counts against every distinct model of the trace’s llm spans, whatever span it is on',
  async t => {
    const { cp, ours, posted, trace, summary } = await feedbackScene(t)
    const id = randomUUID()
    const first = await trace({ trace: { id }, span: { model: 'gpt-a' } })
    await trace({ trace: { id }, span: { model: 'gpt-a' } })
    await trace({ trace: { id }, span: { model: 'gpt-b' } })
    const embedding = await trace({ trace: { id }, span: { model: 'embedder' } })
    await cp.deps.sql`
    update spans set kind = 'embedding' where team_id = ${ours.teamId} and span_id = ${embedding.spanId}`
    await posted(id, { rating: 4 })
    await posted(id, { rating: -1, spanId: first.spanId })
    t.match((await summary({ group_by: 'model' })).body.buckets, [
      { key: 'gpt-a', count: 2, avgRating: 1.5, downCount: 1 },
      { key: 'gpt-b', count: 2, avgRating: 1.5, downCount: 1 },
    ])
    t.equal((await summary({ group_by: 'model' })).body.buckets.length, 2, 'llm spans only')
  },
)

t.test('the window is the feedback’s own time: the last 30 days by default', async t => {
  const { clock, posted, trace, summary } = await feedbackScene(t)
  const { id } = await trace({ span: { model: 'm' } })
  const old = await posted(id, { rating: 1 })
  clock.ms = NOW + 31 * DAY_MS
  t.same((await summary({ group_by: 'model' })).body.buckets, [])
  t.same((await summary()).body, { groupBy: 'prompt_version', buckets: [] })
  const count = async (query: Record<string, string>) =>
    (await summary({ group_by: 'model', ...query })).body.buckets[0]?.count ?? 0
  await posted(id, { rating: 1 })
  t.equal(await count({}), 1)
  t.equal(await count({ from: '2026-01-01' }), 2)
  t.equal(await count({ from: old.createdAt, to: old.createdAt }), 1, 'both ends inclusive')
  t.equal(await count({ to: old.createdAt }), 1, '30 days before `to`')
  t.equal(await count({ to: '2099-01-01' }), 1, 'a `to` ahead leaves the last 30 days')
  t.equal(await count({ to: '9999-12-31T23:59:59-05:00' }), 1, 'as far ahead as a date can be')
  t.equal(await count({ to: new Date(Date.parse(old.createdAt) - 1).toISOString() }), 0)
})

t.test('a bad group_by or date is refused', async t => {
  const { summary } = await feedbackScene(t)
  t.match(await summary({ group_by: 'day' }), {
    status: 400,
    error: {
      code: 'VALIDATION_ERROR',
      message: `Invalid enum value. Expected 'model' | 'prompt_version', received 'day'`,
    },
  })
  t.match(await summary({ from: 'x' }), { status: 400, error: { message: 'Invalid date' } })
})
