import { randomUUID } from 'node:crypto'
import { Writable } from 'node:stream'
import pino from 'pino'
import { test } from 'tap'
import { listTraces } from '../../../shared/contract/traces.js'
import { team } from '../../support/seed.js'
import { executionScene } from './execution-scene.js'

const failing = (statement: string) => `function transform({ status, headers, body }) { ${statement} }`
const schema = { type: 'object', required: ['n'] }

test('every execution is a tool span with its tool, version, alias and status', async t => {
  const { makeTool, outcome, trace, upstream } = await executionScene(t)
  upstream.reply = () => ({ status: 201, body: { n: 1 } })
  const id = await makeTool()
  const { traceId, spanId, durationMs } = await outcome(id)
  const { trace: row, spans } = await trace(traceId)
  t.match(row, { id: traceId, status: 'ok', spanCount: 1, hasWarning: false })
  t.match(row.name, /^Trace \d{4}-/)
  t.equal(spans.length, 1)
  const [span] = spans
  t.match(span, {
    spanId,
    parentSpanId: null,
    kind: 'tool',
    name: 'tool_1',
    status: 'ok',
    durationMs,
    model: null,
    errorType: null,
    errorCode: null,
  })
  t.same(span?.attributes, {
    toolId: id,
    toolName: 'tool_1',
    toolVersion: 1,
    alias: 'production',
    httpStatus: 201,
  })
  const byNumber = await outcome(id, {}, { version: 1 })
  const [other] = (await trace(byNumber.traceId)).spans
  t.notOk(Object.hasOwn(other?.attributes ?? {}, 'alias'))
})

test('a failed execution carries errorType, errorCode, alsoDetected and warnings', async t => {
  const { cp, as, makeTool, outcome, trace, upstream } = await executionScene(t)
  upstream.reply = () => ({ status: 503, body: { quota: 0 } })
  const id = await makeTool({
    failureWhen: failing("return { type: 'quota_exceeded', message: 'no quota' }"),
    resultSchema: schema,
  })
  const answer = await outcome(id)
  const { trace: row, spans } = await trace(answer.traceId)
  t.match(row, { status: 'error' })
  t.match(spans[0], {
    status: 'error',
    errorType: 'http_status',
    errorCode: '503',
    attributes: {
      httpStatus: 503,
      errorMessage: 'The upstream answered with status 503.',
      alsoDetected: [
        { type: 'tool_declared', code: 'quota_exceeded', message: 'no quota' },
        { type: 'schema_mismatch', code: null },
      ],
      warnings: [/does not match resultSchema/],
    },
  })
  t.same(spans[0]?.attributes.alsoDetected, answer.alsoDetected)
  upstream.reply = () => ({ body: { n: 1 } })
  const declared = await outcome(id)
  t.equal((await trace(declared.traceId)).spans[0]?.errorCode, 'quota_exceeded')
  const found = async (query: Record<string, string>) => {
    const listed = await cp.call(listTraces, { as, query })
    if (listed.error !== null) throw new Error(listed.error.message)
    return listed.body.data.map(row => row.id)
  }
  t.same(await found({ error_code: 'quota_exceeded' }), [declared.traceId])
  t.same(await found({ error_type: 'http_status' }), [answer.traceId])
  t.same(await found({ has_warning: 'true' }), [answer.traceId])
})

test('each error type is recorded on its span', async t => {
  const { cp, makeTool, outcome, trace, upstream } = await executionScene(t)
  upstream.reply = ({ url }) => (url === '/call' ? { body: {} } : { status: 404 })
  const cases: [string, object][] = [
    ['http_status', { url: `${upstream.url}/missing` }],
    ['tool_declared', { failureWhen: failing("return { type: 'x', message: 'y' }") }],
    ['schema_mismatch', { resultSchema: schema, resultSchemaSeverity: 'error' }],
    ['transform', { requestTransform: 'function transform() { throw 1 }' }],
    ['transport', {}],
  ]
  for (const [errorType, executor] of cases) {
    const id = await makeTool(executor)
    if (errorType === 'transport') cp.deps.config.TOOL_ALLOW_PRIVATE_HOSTS.length = 0
    const { traceId, error } = await outcome(id)
    t.equal(error?.type, errorType)
    t.match((await trace(traceId)).spans[0], { status: 'error', errorType, errorCode: error?.code ?? null })
  }
})

test('a span joins the caller’s trace under its parent; an unknown trace id makes the trace', async t => {
  const { makeTool, outcome, trace } = await executionScene(t)
  const id = await makeTool()
  const traceId = randomUUID()
  const first = await outcome(id, {}, { trace: { traceId, parentSpanId: 'call-1' } })
  t.equal(first.traceId, traceId)
  const second = await outcome(
    id,
    {},
    { trace: { traceId: traceId.toUpperCase(), parentSpanId: first.spanId } },
  )
  t.equal(second.traceId, traceId)
  const { trace: row, spans } = await trace(traceId)
  t.equal(row.spanCount, 2)
  t.same(
    spans.map(span => span.parentSpanId),
    ['call-1', first.spanId],
  )
  const otel = '00112233-4455-6677-8899-aabbccddeeff'
  t.equal(
    (await outcome(id, {}, { trace: { traceId: otel } })).traceId,
    otel,
    'an OpenTelemetry id is one too',
  )
})

test('another team’s trace is 404 Trace not found. and nothing is called', async t => {
  const { cp, makeTool, outcome, execute, upstream, tools } = await executionScene(t)
  const id = await makeTool()
  const { traceId } = await outcome(id)
  const stranger = await team(cp)
  await cp.deps.sql`update trace_owners set team_id = ${stranger.teamId} where id = ${traceId}`
  const calls = upstream.requests.length
  const { status, error } = await execute(id, {}, { trace: { traceId } })
  t.equal(status, 404)
  t.same(error, { code: 'NOT_FOUND', message: 'Trace not found.' })
  for (const trace of [
    { traceId: 'nope' },
    { traceId: 5 },
    {},
    { traceId, parentSpanId: '' },
    { traceId, parentSpanId: 'a\u0000' },
  ]) {
    t.equal((await execute(id, {}, { trace })).status, 400, JSON.stringify(trace))
  }
  t.equal(upstream.requests.length, calls)
  t.ok(tools)
})

test('arguments and result are captured only when the team wants it, redacted like every other payload', async t => {
  const { makeTool, outcome, trace, capture, upstream } = await executionScene(t)
  upstream.reply = () => ({ body: { name: 'Ada', password: 'hunter2', deep: [{ Password: 'x' }] } })
  const id = await makeTool()
  const spanOf = async () => (await trace((await outcome(id, { q: 'who', password: 'p1' })).traceId)).spans[0]
  t.same((await spanOf())?.payload, null)
  await capture({ capturePayloads: true, redactKeys: ['password'] })
  t.same((await spanOf())?.payload, {
    input: { q: 'who', password: '[REDACTED]' },
    output: { name: 'Ada', password: '[REDACTED]', deep: [{ Password: '[REDACTED]' }] },
    variables: null,
  })
})

test('what PostgreSQL cannot hold is cleaned, and the answer is given whole', async t => {
  const { makeTool, outcome, trace, capture, upstream } = await executionScene(t)
  await capture({ capturePayloads: true })
  upstream.reply = () => ({ body: '{"a":"x\\u0000y","b":"\\ud800"}' })
  const answer = await outcome(
    await makeTool({ failureWhen: failing("return { type: 'a\\u0000b', message: 'm' }") }),
  )
  t.equal(answer.error?.code, 'a\ufffdb')
  const [span] = (await trace(answer.traceId)).spans
  t.equal(span?.errorCode, 'a\ufffdb')
  t.same(span?.payload?.output, { a: 'x\ufffdy', b: '\ufffd' })
})

test('no secret is in a span, in an error message or in the log', async t => {
  const lines: string[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const { cp, makeTool, execute, trace, capture, secret, upstream } = await executionScene(t)
  const canary = 'canary+secret/value='
  cp.deps.log = pino({ level: 'trace' }, sink) as typeof cp.deps.log
  await capture({ capturePayloads: true })
  await secret('TOKEN', canary)
  upstream.reply = ({ url, headers }) => ({ status: 500, body: { url, headers, [canary]: `got ${canary}` } })
  const headers = [{ name: 'Authorization', value: 'Bearer {{secret.TOKEN}}' }]
  const query = [{ name: 'key', value: '{{secret.TOKEN}}' }]
  const executors = [
    { headers, query },
    { headers, query, failureWhen: failing("return { type: 'x', message: JSON.stringify(body) }") },
    { headers, query, failureWhen: failing('throw new Error(JSON.stringify(body))') },
    { headers, query, responseTransform: failing('throw new Error(headers + JSON.stringify(body))') },
    { headers, query, resultSchema: { const: 1 } },
    {
      headers,
      requestTransform: 'function transform({ headers }) { throw new Error(headers.authorization) }',
    },
    {
      headers,
      requestTransform:
        'function transform({ headers }) { return { headers: { "x-a": headers.authorization + "\\n" } } }',
    },
  ]
  for (const executor of executors) {
    const id = await makeTool(executor)
    const { body } = await execute(id, { said: canary })
    const { result: _result, ...rest } = body
    const seen = JSON.stringify([rest, await trace(body.traceId)])
    for (const form of [canary, encodeURIComponent(canary)]) t.notMatch(seen, form, JSON.stringify(executor))
    const [span] = (await trace(body.traceId)).spans
    t.same(span?.payload?.input, { said: '***' })
  }
  t.notMatch(lines.join(''), canary)
})

test('an execution that cannot be recorded is answered all the same', async t => {
  const { cp, makeTool, outcome } = await executionScene(t)
  const id = await makeTool()
  await cp.deps.sql`alter table tool_executions rename to tool_executions_away`
  t.match(await outcome(id), { status: 'ok', result: { ok: true } })
})
