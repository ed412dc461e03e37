import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createPartitionsAhead } from '../../../control-plane/traces/partitions.js'
import { deleteExpiredTraces } from '../../../control-plane/traces/retention.js'
import { createFeedback, updateFeedback } from '../../../shared/contract/feedback.js'
import { readTrace } from '../../../shared/contract/traces.js'
import { DAY_MS, feedbackScene, NOW } from './scene.js'

t.test('feedback has every field of the contract, and the caller as its author', async t => {
  const { ours, post, trace } = await feedbackScene(t)
  const { id } = await trace()
  const { status, body } = await post(id, { rating: 5, label: 'good', comment: 'Thanks' })
  t.equal(status, 201)
  t.match(body.id, /^[0-9a-f-]{36}$/)
  const at = new Date(NOW).toISOString()
  t.same(body, {
    id: body.id,
    traceId: id,
    spanId: null,
    rating: 5,
    label: 'good',
    comment: 'Thanks',
    source: 'user',
    createdBy: ours.editor.userId,
    createdAt: at,
    updatedAt: at,
  })
})

t.test('a comment that was cut inside an emoji is answered as it is kept', async t => {
  const { author, cp, post, ofTrace, trace } = await feedbackScene(t)
  const { id } = await trace()
  const { status, body } = await post(id, { label: 'fine 👍', comment: 'great \ud83d' })
  t.equal(status, 201)
  t.equal(body.label, 'fine 👍')
  t.equal(body.comment, 'great \ufffd')
  const place = { id, feedbackId: body.id }
  const edit = await cp.call(updateFeedback, { params: place, body: { label: '\udc4d' }, as: author })
  t.equal(edit.body.label, '\ufffd')
  t.match((await ofTrace(id)).body.data, [{ label: '\ufffd', comment: 'great \ufffd' }])
})

t.test('each of rating, label and comment is enough alone; none of them is refused', async t => {
  const { post, trace, ofTrace } = await feedbackScene(t)
  const { id } = await trace()
  for (const body of [{ rating: 0 }, { rating: -1 }, { label: 'x' }, { comment: 'x' }]) {
    t.equal((await post(id, body)).status, 201)
  }
  const message = 'Provide at least one of rating, label, or comment.'
  for (const body of [
    {},
    { source: 'api' },
    { rating: null, label: null },
    { comment: '' },
    { label: ' ' },
  ]) {
    t.match(await post(id, body), { status: 400, error: { code: 'VALIDATION_ERROR', message } })
  }
  t.equal((await ofTrace(id)).body.data.length, 4)
})

t.test('a rating is a whole number from -1 to 5', async t => {
  const { post, trace } = await feedbackScene(t)
  const { id } = await trace()
  for (const rating of [-1, 0, 1, 2, 3, 4, 5]) {
    t.match(await post(id, { rating }), { status: 201, body: { rating } })
  }
  for (const rating of [-2, 6, 1e9, 1e300, -1e300]) {
    const error = { code: 'VALIDATION_ERROR', message: 'rating must be between -1 and 5.' }
    t.match(await post(id, { rating }), { status: 400, error })
  }
  for (const rating of [1.5, '5', true]) t.equal((await post(id, { rating })).status, 400)
})

t.test('a label has at most 200 characters, a comment 5,000; NUL is refused', async t => {
  const { post, trace } = await feedbackScene(t)
  const { id } = await trace()
  const most = { label: 'l'.repeat(200), comment: 'c'.repeat(5000) }
  t.match(await post(id, most), { status: 201, body: most })
  t.match(await post(id, { label: 'l'.repeat(201) }), {
    status: 400,
    error: { message: 'String must contain at most 200 character(s)' },
  })
  t.match(await post(id, { comment: 'c'.repeat(5001) }), {
    status: 400,
    error: { message: 'String must contain at most 5000 character(s)' },
  })
  for (const body of [{ label: 'a\u0000' }, { comment: 'a\u0000' }, { rating: 1, spanId: 'a\u0000' }]) {
    t.match(await post(id, body), { status: 400, error: { code: 'VALIDATION_ERROR' } })
  }
})

t.test('source is one of four', async t => {
  const { post, trace } = await feedbackScene(t)
  const { id } = await trace()
  for (const source of ['user', 'developer', 'end_user', 'api']) {
    t.match(await post(id, { rating: 1, source }), { status: 201, body: { source } })
  }
  const { status, error } = await post(id, { rating: 1, source: 'robot' })
  t.equal(status, 400)
  t.equal(
    error?.message,
    `Invalid enum value. Expected 'user' | 'developer' | 'end_user' | 'api', received 'robot'`,
  )
})

t.test('a spanId is the caller’s reference of a span of this very trace', async t => {
  const { post, trace } = await feedbackScene(t)
  const first = await trace({ span: { spanId: 'step-1' } })
  const second = await trace({ span: { spanId: 'step-2' } })
  t.match(await post(first.id, { rating: 1, spanId: 'step-1' }), { status: 201, body: { spanId: 'step-1' } })
  for (const spanId of ['step-2', 'unknown', '', first.id]) {
    t.match(await post(first.id, { rating: 1, spanId }), {
      status: 400,
      error: { code: 'INVALID_SPAN', message: 'spanId does not belong to this trace.' },
    })
  }
  t.equal((await post(second.id, { rating: 1, spanId: 'step-2' })).status, 201)
})

t.test('every role and a team-scoped key may post and read; a virtual key or nobody may not', async t => {
  const { cp, ours, post, trace, ofTrace, feed, summary } = await feedbackScene(t)
  const { id } = await trace()
  for (const role of ['owner', 'admin', 'editor', 'viewer'] as const) {
    for (const as of [ours[role].session, ours[role].personalKey]) {
      t.match(await post(id, { rating: 1 }, as), { status: 201, body: { createdBy: ours[role].userId } })
    }
  }
  t.match(await post(id, { rating: 1 }, ours.teamKey), { status: 201, body: { createdBy: null } })
  for (const as of [ours.viewer.session, ours.viewer.personalKey, ours.teamKey]) {
    t.equal((await ofTrace(id, as)).body.data.length, 9)
    t.equal((await feed({}, as)).body.total, 9)
    t.match((await summary({ group_by: 'model' }, as)).body.buckets, [{ count: 9 }])
  }
  const error = { code: 'UNAUTHORIZED', message: 'Authentication required.' }
  for (const as of [ours.virtualKey, {}]) t.match(await post(id, { rating: 1 }, as), { status: 401, error })
  t.match(await cp.call(createFeedback, { params: { id: randomUUID() }, body: {} }), { status: 401 })
})

t.test('an unknown or foreign trace is not found', async t => {
  const { post, ofTrace, theirs, trace } = await feedbackScene(t)
  const foreign = await trace({}, theirs.teamId)
  for (const id of [randomUUID(), foreign.id, 'not-a-uuid']) {
    const error = { code: 'NOT_FOUND', message: 'Trace not found.' }
    t.match(await post(id, { rating: 1 }), { status: 404, error })
    t.match(await ofTrace(id), { status: 404, error })
  }
  t.same((await ofTrace(foreign.id, theirs.viewer.personalKey)).body, { data: [] })
})

t.test(
  'a trace’s feedback: whole-trace and span rows mixed, newest first, as its detail shows it',
  async t => {
    const { cp, author, posted, trace, ofTrace } = await feedbackScene(t)
    const { id, spanId } = await trace()
    const other = await trace()
    const first = await posted(id, { rating: 1 })
    const second = await posted(id, { rating: -1, spanId })
    await posted(other.id, { rating: 2 })
    const third = await posted(id, { comment: 'again' })
    t.same((await ofTrace(id.toUpperCase())).body, { data: [third, second, first] })
    const detail = await cp.call(readTrace, { params: { id }, as: author })
    t.same(detail.body.feedback, [third, second, first])
  },
)

t.test('an edit keeps what is left out, clears what is null, and moves updatedAt on', async t => {
  const { clock, posted, edit, trace, ofTrace } = await feedbackScene(t)
  const { id } = await trace()
  const row = await posted(id, { rating: 1, label: 'a', comment: 'b', source: 'developer' })
  clock.ms += 5_000
  const first = await edit(row, { rating: -1 })
  const later = new Date(clock.ms).toISOString()
  t.same(first.body, { ...row, rating: -1, updatedAt: later })
  const second = await edit(row, { label: null, comment: 'c' })
  t.same(second.body, { ...row, rating: -1, label: null, comment: 'c', updatedAt: second.body.updatedAt })
  t.ok(second.body.updatedAt > first.body.updatedAt, 'also within one millisecond')
  t.same((await edit(row, { rating: null })).body.rating, null)
  t.match((await ofTrace(id)).body.data, [{ rating: null, label: null, comment: 'c' }])
})

t.test('an edit must leave at least one of rating, label and comment, and values as in a post', async t => {
  const { posted, edit, trace, ofTrace } = await feedbackScene(t)
  const { id } = await trace()
  const row = await posted(id, { rating: 1, comment: 'b' })
  const message = 'Provide at least one of rating, label, or comment.'
  for (const body of [
    { rating: null, comment: null },
    { rating: null, comment: '' },
  ]) {
    t.match(await edit(row, body), { status: 400, error: { code: 'VALIDATION_ERROR', message } })
  }
  t.match(await edit(row, { rating: 6 }), {
    status: 400,
    error: { message: 'rating must be between -1 and 5.' },
  })
  t.same((await ofTrace(id)).body.data, [row], 'nothing changed')
  t.equal(
    (await edit(row, { rating: null, comment: null, label: 'x' })).status,
    200,
    'the merged result counts',
  )
})

t.test('spanId and source are not edited', async t => {
  const { posted, edit, trace } = await feedbackScene(t)
  const { id, spanId } = await trace()
  const row = await posted(id, { rating: 1 })
  const { body } = await edit(row, { rating: 2, spanId, source: 'api' })
  t.match(body, { rating: 2, spanId: null, source: 'user' })
})

t.test('only the author may edit, whatever the others’ role', async t => {
  const { ours, posted, edit, trace, ofTrace } = await feedbackScene(t)
  const { id } = await trace()
  const row = await posted(id, { rating: 1 }, ours.viewer.session)
  const error = { code: 'FORBIDDEN', message: 'Only the original author can edit this feedback.' }
  for (const as of [ours.owner.session, ours.editor.personalKey, ours.teamKey]) {
    t.match(await edit(row, { rating: 2 }, as), { status: 403, error })
  }
  t.same((await ofTrace(id)).body.data, [row], 'nothing changed')
  t.match(await edit(row, { rating: 2 }, ours.viewer.personalKey), { status: 200, body: { rating: 2 } })
})

t.test('feedback of a team-scoped key is nobody’s to edit, that key’s included', async t => {
  const { ours, posted, edit, trace } = await feedbackScene(t)
  const row = await posted((await trace()).id, { rating: 1 }, ours.teamKey)
  t.equal(row.createdBy, null)
  for (const as of [ours.teamKey, ours.owner.session]) {
    t.match(await edit(row, { rating: 2 }, as), {
      status: 403,
      error: { message: 'Only the original author can edit this feedback.' },
    })
  }
})

t.test('unknown feedback, another trace’s, and a foreign trace’s are not found', async t => {
  const { ours, theirs, posted, edit, trace } = await feedbackScene(t)
  const row = await posted((await trace()).id, { rating: 1 })
  const foreign = await posted((await trace({}, theirs.teamId)).id, { rating: 1 }, theirs.owner.session)
  const places = [
    { ...row, id: randomUUID() },
    { ...row, id: 'x' },
    { ...row, traceId: randomUUID() },
    { ...row, traceId: 'x' },
    { ...row, traceId: (await trace()).id },
    { ...row, traceId: foreign.traceId },
    foreign,
  ]
  for (const place of places) {
    const error = { code: 'NOT_FOUND', message: 'Feedback not found.' }
    t.match(await edit(place, { rating: 2 }), { status: 404, error })
    t.match(await edit(place, { rating: 2 }, ours.teamKey), { status: 404, error })
  }
})

t.test('two edits at once both hold: neither undoes what the other left out', async t => {
  const { posted, edit, trace, ofTrace } = await feedbackScene(t)
  const row = await posted((await trace()).id, { rating: 1, label: 'a', comment: 'b' })
  await Promise.all([edit(row, { rating: 2 }), edit(row, { label: 'c' }), edit(row, { comment: 'd' })])
  t.match((await ofTrace(row.traceId)).body.data, [{ rating: 2, label: 'c', comment: 'd' }])
})

t.test('feedback goes with its trace when retention deletes it, and no other goes', async t => {
  const { cp, clock, ours, theirs, posted, trace, found, feed } = await feedbackScene(t)
  const { sql } = cp.deps
  await sql`update teams set retention_days = 10 where id = ${ours.teamId}`
  const mine = await posted((await trace()).id, { rating: 1 })
  await posted((await trace({}, theirs.teamId)).id, { rating: 1 }, theirs.editor.session)
  clock.ms += 8 * DAY_MS
  const later = await posted((await trace()).id, { rating: 1 })
  clock.ms += 4 * DAY_MS
  t.match(await deleteExpiredTraces(sql, clock.ms), { deletedTraces: 1 })
  t.same(await found(), [later.id], 'deleted row by row')
  t.match(
    await cp.call(updateFeedback, {
      params: { id: mine.traceId, feedbackId: mine.id },
      body: { rating: 2 },
      as: ours.editor.personalKey,
    }),
    { status: 404 },
  )
  t.equal((await feed({}, theirs.viewer.personalKey)).body.total, 1)
  await createPartitionsAhead(sql, clock.ms)
  await sql`update teams set retention_days = 10`
  clock.ms += 100 * DAY_MS
  t.ok((await deleteExpiredTraces(sql, clock.ms)).droppedWeeks.length > 0)
  t.equal((await feed({}, theirs.viewer.personalKey)).body.total, 0, 'dropped with its week')
})
