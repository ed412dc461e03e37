import { test } from 'tap'
import { executionScene } from './execution-scene.js'

const failing = (statement: string) => `function transform({ status, headers, body }) { ${statement} }`

test('a body that is JSON is parsed, any other is text, none is null', async t => {
  const { upstream, makeTool, outcome } = await executionScene(t)
  const id = await makeTool()
  const json = { 'content-type': 'application/json' }
  const cases: [object, unknown][] = [
    [{ body: { a: [1] } }, { a: [1] }],
    [{ body: '"text"', headers: json }, 'text'],
    [{ body: '{"a":1}' }, { a: 1 }],
    [{ body: '[1]', headers: { 'content-type': 'text/plain' } }, [1]],
    [{ body: '42', headers: { 'content-type': 'text/plain' } }, '42'],
    [{ body: '<p>hi</p>', headers: { 'content-type': 'text/html' } }, '<p>hi</p>'],
    [{ body: '{broken', headers: json }, '{broken'],
    [{ body: '' }, null],
    [{ status: 204 }, null],
    [{ body: '{"__proto__":{"x":1},"a":2}', headers: json }, { a: 2 }],
  ]
  for (const [reply, expected] of cases) {
    upstream.reply = () => reply
    t.same((await outcome(id)).result, expected, JSON.stringify(reply))
  }
})

test('a responseTransform gets status, headers and body, and returns the result', async t => {
  const { upstream, makeTool, outcome } = await executionScene(t)
  upstream.reply = () => ({ status: 201, headers: { 'X-Left': '7' }, body: { rows: [{ id: 1 }, { id: 2 }] } })
  const id = await makeTool({
    responseTransform: failing("return { status, left: headers['x-left'], ids: body.rows.map(r => r.id) }"),
  })
  t.match(await outcome(id), { status: 'ok', result: { status: 201, left: '7', ids: [1, 2] } })
})

test('a responseTransform that throws or times out is a transform error', async t => {
  const { makeTool, outcome } = await executionScene(t)
  const thrown = await outcome(await makeTool({ responseTransform: failing('throw new Error("no rows")') }))
  t.match(thrown, {
    status: 'error',
    result: null,
    error: { type: 'transform', code: 'response_transform', message: 'responseTransform: no rows' },
  })
  const endless = await outcome(await makeTool({ responseTransform: failing('for (;;) {}') }))
  t.match(endless, { status: 'error', error: { type: 'transform', message: /It ran longer than \d+ ms/ } })
})

test('a status that is not 2xx is http_status', async t => {
  const { upstream, makeTool, outcome } = await executionScene(t)
  const id = await makeTool()
  for (const status of [304, 400, 404, 429, 500, 503]) {
    upstream.reply = () => ({ status, ...(status !== 304 && { body: { detail: 'why' } }) })
    const answer = await outcome(id)
    t.match(answer, {
      status: 'error',
      error: { type: 'http_status', code: String(status) },
      alsoDetected: [],
    })
    t.match(answer.error?.message, String(status))
    t.same(answer.result, status === 304 ? null : { detail: 'why' }, 'what the upstream said is there')
  }
  for (const status of [200, 201, 202, 299]) {
    upstream.reply = () => ({ status, body: 'ok' })
    t.equal((await outcome(id)).status, 'ok')
  }
})

test('failureWhen sees the raw response and declares a failure by its slug', async t => {
  const { upstream, makeTool, outcome } = await executionScene(t)
  upstream.reply = () => ({ headers: { 'x-kind': 'soft' }, body: { error: 'quota' } })
  const id = await makeTool({
    failureWhen: failing(
      "return body.error ? { type: body.error + '_exceeded', message: status + ' ' + headers['x-kind'] } : null",
    ),
    responseTransform: failing('return { hidden: true }'),
  })
  t.match(await outcome(id), {
    status: 'error',
    result: { hidden: true },
    error: { type: 'tool_declared', code: 'quota_exceeded', message: '200 soft' },
    alsoDetected: [],
  })
  upstream.reply = () => ({ body: { fine: true } })
  t.match(await outcome(id), { status: 'ok', error: null })
})

test('a failureWhen that throws, times out or returns anything else is a transform error', async t => {
  const { makeTool, outcome } = await executionScene(t)
  for (const statement of [
    'throw new Error("x")',
    'for (;;) {}',
    'return 5',
    'return {}',
    'return { type: "" }',
    'return true',
  ]) {
    const answer = await outcome(await makeTool({ failureWhen: failing(statement) }))
    t.match(answer, { status: 'error', error: { type: 'transform', code: 'failure_when' } }, statement)
  }
  for (const statement of ['return null', 'return undefined', '', 'return false']) {
    t.equal((await outcome(await makeTool({ failureWhen: failing(statement) }))).status, 'ok', statement)
  }
})

const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }

test('a result that does not match resultSchema fails with severity error and warns otherwise', async t => {
  const { upstream, makeTool, outcome } = await executionScene(t)
  upstream.reply = () => ({ body: { n: 'one' } })
  const strict = await outcome(await makeTool({ resultSchema: schema, resultSchemaSeverity: 'error' }))
  t.match(strict, {
    status: 'error',
    result: { n: 'one' },
    error: { type: 'schema_mismatch', code: null, message: /does not match resultSchema: n: / },
    warnings: [],
    alsoDetected: [],
  })
  for (const severity of [{}, { resultSchemaSeverity: 'warning' }]) {
    const mild = await outcome(await makeTool({ resultSchema: schema, ...severity }))
    t.match(mild, { status: 'ok', result: { n: 'one' }, error: null, alsoDetected: [] })
    t.match(mild.warnings, [/does not match resultSchema: n: /])
  }
  upstream.reply = () => ({ body: { n: 1 } })
  t.match(await outcome(await makeTool({ resultSchema: schema })), { status: 'ok', warnings: [] })
})

test('resultSchema is held against the transformed result', async t => {
  const { upstream, makeTool, outcome } = await executionScene(t)
  upstream.reply = () => ({ body: { raw: 'one' } })
  const id = await makeTool({
    resultSchema: schema,
    resultSchemaSeverity: 'error',
    responseTransform: failing('return { n: body.raw.length }'),
  })
  t.match(await outcome(id), { status: 'ok', result: { n: 3 } })
})

test('checks run in order: status, failureWhen, resultSchema; the first is reported, the others are in alsoDetected', async t => {
  const { upstream, makeTool, outcome } = await executionScene(t)
  const id = await makeTool({
    failureWhen: failing("return body.bad ? { type: 'declared_bad', message: 'bad' } : null"),
    resultSchema: schema,
    resultSchemaSeverity: 'error',
  })
  const seen = async (status: number, body: object) => {
    upstream.reply = () => ({ status, body })
    const { error, alsoDetected } = await outcome(id)
    return [error, ...alsoDetected].map(one => one?.type ?? null)
  }
  t.same(await seen(500, { bad: true }), ['http_status', 'tool_declared', 'schema_mismatch'])
  t.same(await seen(500, { bad: true, n: 1 }), ['http_status', 'tool_declared'])
  t.same(await seen(500, {}), ['http_status', 'schema_mismatch'])
  t.same(await seen(500, { n: 1 }), ['http_status'])
  t.same(await seen(200, { bad: true }), ['tool_declared', 'schema_mismatch'])
  t.same(await seen(200, { bad: true, n: 1 }), ['tool_declared'])
  t.same(await seen(200, {}), ['schema_mismatch'])
  t.same(await seen(200, { n: 1 }), [null])
  upstream.reply = () => ({ status: 500, body: { bad: true } })
  t.match((await outcome(id)).alsoDetected, [
    { type: 'tool_declared', code: 'declared_bad', message: 'bad' },
    { type: 'schema_mismatch', code: null, message: /resultSchema/ },
  ])
})

test('a mismatch that only warns is also detected beside a failure', async t => {
  const { upstream, makeTool, outcome } = await executionScene(t)
  upstream.reply = () => ({ status: 500, body: {} })
  const answer = await outcome(await makeTool({ resultSchema: schema }))
  t.equal(answer.error?.type, 'http_status')
  t.match(answer.alsoDetected, [{ type: 'schema_mismatch' }])
  t.equal(answer.warnings.length, 1)
})
