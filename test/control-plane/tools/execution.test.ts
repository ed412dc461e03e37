import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { executeTool } from '../../../shared/contract/tool-execution.js'
import { deleteTool, promoteToolAlias } from '../../../shared/contract/tools.js'
import { headersOf } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { executionScene } from './execution-scene.js'

const weather = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city'],
}

test('an execution calls the upstream and answers with its result', async t => {
  const { upstream, makeTool, execute, last } = await executionScene(t)
  upstream.reply = () => ({ body: { temperature: 21 } })
  const id = await makeTool({ query: [{ name: 'q', value: '{{arg.city}}' }] }, weather)
  const { status, body } = await execute(id, { city: 'São Paulo & Rio' })
  t.equal(status, 200)
  t.match(body, {
    status: 'ok',
    result: { temperature: 21 },
    error: null,
    alsoDetected: [],
    warnings: [],
    durationMs: Number,
    traceId: /^[0-9a-f-]{36}$/,
    spanId: /^[0-9a-f-]{36}$/,
  })
  t.same(Object.keys(body).sort(), [
    ...['alsoDetected', 'durationMs', 'error', 'result', 'spanId', 'status', 'traceId', 'warnings'],
  ])
  t.equal(last().url, '/call?q=S%C3%A3o%20Paulo%20%26%20Rio')
  t.equal(last().method, 'GET')
  t.equal(last().body, '')
})

test('without alias and version the production version is executed; both together are refused', async t => {
  const { cp, as, makeTool, commit, outcome, execute, last } = await executionScene(t)
  const id = await makeTool({ query: [{ name: 'v', value: '1' }] })
  await commit(id, { query: [{ name: 'v', value: '2' }] })
  const served = async (more: object) => {
    await outcome(id, {}, more)
    return last().url
  }
  t.equal(await served({}), '/call?v=1')
  t.equal(await served({ version: 2 }), '/call?v=2')
  t.equal(await served({ alias: 'staging' }), '/call?v=1')
  await cp.call(promoteToolAlias, { as, params: { id, alias: 'production' }, body: { versionNumber: 2 } })
  t.equal(await served({}), '/call?v=2', 'a promoted alias holds for the next execution')
  const both = await execute(id, {}, { alias: 'staging', version: 1 })
  t.equal(both.status, 400)
  t.same(both.error, { code: 'VALIDATION_ERROR', message: 'Provide at most one of alias or version.' })
  for (const more of [
    { alias: 'a\u0000' },
    { alias: '' },
    { version: 0 },
    { version: 1.5 },
    { version: 3e9 },
  ]) {
    t.equal((await execute(id, {}, more)).status, 400, JSON.stringify(more))
  }
})

test('a missing tool, alias or version is 404', async t => {
  const { cp, as, tools, makeTool, execute, upstream } = await executionScene(t)
  const id = await makeTool()
  const missing = async (toolId: string, more: object = {}) => (await execute(toolId, {}, more)).error
  const notFound = (message: string) => ({ code: 'NOT_FOUND', message })
  t.same(await missing(randomUUID()), notFound('Tool not found.'))
  t.same(await missing('no-uuid'), notFound('Tool not found.'))
  t.same(await missing(id, { alias: 'canary' }), notFound("Alias 'canary' not found for this tool."))
  t.same(await missing(id, { version: 7 }), notFound('Version 7 not found for this tool.'))
  const shell = await tools.create('shell')
  t.same(await missing(shell.id), notFound("Alias 'production' not found for this tool."))
  const stranger = await team(cp)
  const foreign = await execute(id, {}, {}, stranger.owner.personalKey)
  t.same(foreign.error, notFound('Tool not found.'))
  await cp.call(deleteTool, { as, params: { id } })
  t.same(await missing(id), notFound('Tool not found.'))
  t.equal(upstream.requests.length, 0)
})

test('executing a tool needs editor: a viewer and a team-scoped key are refused', async t => {
  const { people, makeTool, execute } = await executionScene(t)
  const id = await makeTool()
  for (const who of [people.viewer.session, people.viewer.personalKey, people.teamKey]) {
    const { status, error } = await execute(id, {}, {}, who)
    t.equal(status, 403)
    t.same(error, { code: 'FORBIDDEN', message: 'Insufficient role for this action.' })
  }
  t.equal((await execute(id, {}, {}, people.virtualKey)).status, 401)
  t.equal((await execute(id, {}, {}, people.editor.session)).status, 200)
})

test('a client tool cannot be executed here', async t => {
  const { tools, execute } = await executionScene(t)
  const { id } = await tools.create('local')
  await tools.commit(id, {})
  const { status, error } = await execute(id)
  t.equal(status, 400)
  t.match(error, { code: 'VALIDATION_ERROR', message: /executor .* is client/ })
})

test('arguments that do not match parametersSchema are 400 and call nothing', async t => {
  const { cp, as, makeTool, execute, upstream } = await executionScene(t)
  const id = await makeTool({}, weather)
  const refused = async (args: object) => {
    const { status, error } = await execute(id, args)
    return [status, error?.code, error?.message]
  }
  const [status, code, message] = await refused({})
  t.same([status, code], [400, 'VALIDATION_ERROR'])
  t.match(message, /^arguments: .*city/)
  t.match((await refused({ city: 5 }))[2], /^arguments: city: /)
  t.match((await refused({ city: 'Oslo', days: 1.5 }))[2], /^arguments: days: /)
  t.match((await refused({ city: 'a\u0000b' }))[2], /NUL/)
  const without = await cp.call(executeTool, { as, params: { id }, body: {} as never })
  t.same(without.error, { code: 'VALIDATION_ERROR', message: 'Required' })
  const list = await cp.call(executeTool, { as, params: { id }, body: { arguments: [] as never } })
  t.equal(list.status, 400)
  t.equal(upstream.requests.length, 0)
  const [row] = await cp.deps.sql<{ n: number }[]>`select count(*)::integer as n from tool_executions`
  t.equal(row?.n, 0, 'nothing was recorded')
})

test('a schema whose pattern never ends refuses its own call and leaves the next one alone', async t => {
  const { makeTool, execute, outcome } = await executionScene(t)
  const id = await makeTool({}, { type: 'object', properties: { s: { type: 'string', pattern: '^(a+)+$' } } })
  const { status, error } = await execute(id, { s: `${'a'.repeat(40)}!` })
  t.equal(status, 400)
  t.match(error?.message, /^arguments: They could not be checked: It ran longer than \d+ ms\./)
  t.equal((await outcome(id, { s: 'aaa' })).status, 'ok')
})

test('an upstream that cannot be reached is an error of the execution', async t => {
  const { cp, makeTool, outcome, upstream } = await executionScene(t)
  const id = await makeTool()
  cp.deps.config.TOOL_ALLOW_PRIVATE_HOSTS.length = 0
  const blocked = await outcome(id)
  t.match(blocked, {
    status: 'error',
    result: null,
    error: { type: 'transport', code: 'address_refused', message: /^The executor's URL cannot be called: / },
  })
  t.equal(upstream.requests.length, 0, 'an exception that was taken away holds for the next call')
})

test('a redirect is not followed and is no success', async t => {
  const { makeTool, outcome, upstream } = await executionScene(t)
  upstream.reply = ({ url }) =>
    url === '/call' ? { status: 302, headers: { location: `${upstream.url}/secret` } } : { body: 'secret' }
  const id = await makeTool()
  t.match(await outcome(id), { status: 'error', error: { type: 'http_status', code: '302' } })
  t.equal(upstream.requests.length, 1)
})

test('a caller that goes away ends the call', async t => {
  const { cp, as, makeTool, upstream } = await executionScene(t)
  upstream.reply = () => ({ body: 'late', delayMs: 3_000 })
  const id = await makeTool()
  const url = await cp.app.listen({ host: '127.0.0.1', port: 0 })
  const caller = new AbortController()
  const asked = fetch(`${url}/api/v1/tools/${id}/execute`, {
    method: 'POST',
    headers: { ...headersOf(as), 'content-type': 'application/json' },
    body: '{"arguments":{}}',
    signal: caller.signal,
  })
  for (let i = 0; i < 200 && upstream.requests.length === 0; i++) await pause(10)
  caller.abort()
  await t.rejects(asked)
  for (let i = 0; i < 200 && upstream.cut === 0; i++) await pause(10)
  t.equal(upstream.cut, 1, 'the upstream sees its connection close')
  const recorded = () => cp.deps.sql<{ errorCode: string }[]>`select error_code from tool_executions`
  for (let i = 0; i < 200 && (await recorded()).length === 0; i++) await pause(10)
  t.same([...(await recorded())], [{ errorCode: 'client_disconnected' }])
})

test('a team has 64 executions at once; the next is told to come back', async t => {
  const { makeTool, execute, upstream } = await executionScene(t)
  upstream.reply = () => ({ body: 'ok', delayMs: 1_500 })
  const id = await makeTool()
  const answers = await Promise.all(Array.from({ length: 70 }, () => execute(id)))
  const refused = answers.filter(answer => answer.status === 429)
  t.equal(refused.length, 6)
  t.equal(refused[0]?.error?.code, 'RATE_LIMITED')
  t.equal(refused[0]?.headers['retry-after'], '1')
  t.equal(answers.filter(answer => answer.status === 200).length, 64)
})
