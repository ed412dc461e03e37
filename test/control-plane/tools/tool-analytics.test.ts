import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { toolExecutionRetentionJob } from '../../../control-plane/tools/tool-execution-retention.job.js'
import { toolAnalytics } from '../../../shared/contract/tool-execution.js'
import type { ErrorType } from '../../../shared/contract/traces.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { executionScene } from './execution-scene.js'
import { toolbox } from './scene.js'

const DAY = 86_400_000

interface Past {
  at: number
  version?: number
  ms?: number
  error?: [ErrorType, string | null]
}

async function insertPast(cp: ControlPlane, teamId: string, toolId: string, rows: Past[]): Promise<void> {
  const { sql } = cp.deps
  for (const { at, version = 1, ms = 10, error } of rows) {
    await sql`insert into tool_executions ${sql({
      teamId,
      toolId,
      startedAt: new Date(at),
      spanId: randomUUID(),
      versionNumber: version,
      durationMs: ms,
      errorType: error?.[0] ?? null,
      errorCode: error?.[1] ?? null,
    })}`
  }
}

test('analytics count the executions of a tool by version, error type and error code', async t => {
  const { cp, as, makeTool, commit, outcome, upstream } = await executionScene(t)
  const id = await makeTool({
    failureWhen:
      "function transform({ body }) { return body.slug ? { type: body.slug, message: 'm' } : null }",
  })
  await commit(id)
  const other = await makeTool()
  await outcome(other)
  const replies = [{ body: {} }, { body: { slug: 'quota' } }, { body: { slug: 'quota' } }, { status: 503 }]
  for (const reply of replies) {
    upstream.reply = () => reply
    await outcome(id)
  }
  upstream.reply = () => ({ body: {} })
  await outcome(id, {}, { version: 2 })
  const { status, body } = await cp.call(toolAnalytics, { as, params: { id } })
  t.equal(status, 200)
  t.match(body, { calls: 5, errorRate: 0.6, latencyMs: { p50: Number, p95: Number, p99: Number } })
  t.match(body.byVersion, [
    { versionNumber: 2, calls: 1, errorRate: 0 },
    { versionNumber: 1, calls: 4, errorRate: 0.75 },
  ])
  t.same(body.byErrorType, [
    { type: 'tool_declared', count: 2 },
    { type: 'http_status', count: 1 },
  ])
  t.same(body.byErrorCode, [
    { code: 'quota', count: 2 },
    { code: '503', count: 1 },
  ])
})

test('the window is the last 30 days unless from and to are given; both ends are inclusive and echoed', async t => {
  const now = Date.parse('2026-03-31T12:00:00.000Z')
  const cp = await startControlPlane(t, { now: () => now })
  const { teamId, viewer, editor } = await team(cp)
  const { id } = await toolbox(cp, editor.personalKey).create('past')
  await insertPast(cp, teamId, id, [
    { at: now - 31 * DAY },
    { at: now - 30 * DAY },
    { at: now - DAY },
    { at: now },
    { at: now + DAY },
  ])
  const ask = async (query: object = {}) =>
    (await cp.call(toolAnalytics, { as: viewer.personalKey, params: { id }, query })).body
  const plain = await ask()
  t.same([plain.from, plain.to, plain.calls], ['2026-03-01T12:00:00.000Z', '2026-03-31T12:00:00.000Z', 3])
  const given = await ask({ from: '2026-03-30T12:00:00Z', to: '2026-03-31T12:00:00.000Z' })
  t.same([given.from, given.to, given.calls], ['2026-03-30T12:00:00.000Z', '2026-03-31T12:00:00.000Z', 2])
  t.equal((await ask({ from: '2026-01-01' })).calls, 4)
  t.equal((await ask({ from: '1000-01-01', to: '9999-12-31' })).calls, 5)
  t.match(await ask({ to: '2026-03-01' }), {
    from: '2026-01-30T00:00:00.000Z',
    to: '2026-03-01T00:00:00.000Z',
    calls: 1,
  })
  for (const [query, message] of [
    [{ from: 'yesterday' }, 'Invalid date'],
    [{ from: '0000-01-01' }, 'Invalid date'],
    [{ from: '2026-03-02', to: '2026-03-01' }, 'from must not be after to.'],
  ] as const) {
    const { status, error } = await cp.call(toolAnalytics, { as: viewer.personalKey, params: { id }, query })
    t.same([status, error], [400, { code: 'VALIDATION_ERROR', message }])
  }
})

test('percentiles are over the executions of the window; without any they are null and the rate is 0', async t => {
  const cp = await startControlPlane(t)
  const { teamId, editor } = await team(cp)
  const tools = toolbox(cp, editor.personalKey)
  const { id } = await tools.create('timed')
  const ask = async () => (await cp.call(toolAnalytics, { as: editor.personalKey, params: { id } })).body
  t.match(await ask(), {
    calls: 0,
    errorRate: 0,
    latencyMs: { p50: null, p95: null, p99: null },
    byVersion: [],
    byErrorType: [],
    byErrorCode: [],
  })
  const now = cp.deps.now()
  await insertPast(
    cp,
    teamId,
    id,
    Array.from({ length: 101 }, (_, ms) => ({ at: now - 1_000, ms, version: ms < 50 ? 1 : 2 })),
  )
  const { latencyMs, byVersion } = await ask()
  t.same(latencyMs, { p50: 50, p95: 95, p99: 99 })
  t.same(
    byVersion.map(one => [one.versionNumber, one.calls, one.latencyMs.p50]),
    [
      [2, 51, 75],
      [1, 50, 24.5],
    ],
  )
})

test('another team’s tool is not found', async t => {
  const cp = await startControlPlane(t)
  const [mine, theirs] = [await team(cp), await team(cp)]
  const { id } = await toolbox(cp, theirs.editor.personalKey).create('theirs')
  const { status, error } = await cp.call(toolAnalytics, { as: mine.owner.session, params: { id } })
  t.same([status, error], [404, { code: 'NOT_FOUND', message: 'Tool not found.' }])
})

test('executions leave when their team keeps them no longer', async t => {
  const cp = await startControlPlane(t)
  const { teamId, editor } = await team(cp)
  const { id } = await toolbox(cp, editor.personalKey).create('old')
  const now = cp.deps.now()
  await insertPast(cp, teamId, id, [{ at: now - 91 * DAY }, { at: now - 89 * DAY }, { at: now }])
  await toolExecutionRetentionJob.run({}, cp.deps)
  const kept = async () => {
    const [row] = await cp.deps.sql<{ n: number }[]>`select count(*)::integer as n from tool_executions`
    return row?.n
  }
  t.equal(await kept(), 2)
  await cp.deps.sql`update teams set retention_days = 30 where id = ${teamId}`
  await toolExecutionRetentionJob.run({}, cp.deps)
  t.equal(await kept(), 1)
})
