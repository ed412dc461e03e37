import { randomUUID } from 'node:crypto'
import t from 'tap'
import { inTransaction } from '../../../control-plane/db/sql.js'
import { writeSpans } from '../../../control-plane/traces/ingest.js'
import { readTrace } from '../../../shared/contract/traces.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { spanWrite } from '../../support/span-writes.js'

const START = Date.parse('2026-11-21T12:00:00.000Z')
const replacing = { repeated: 'replace', foreign: 'refuse' } as const

async function setUp(t: Parameters<typeof startControlPlane>[0]) {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const write = (...spans: ReturnType<typeof spanWrite>[]) =>
    inTransaction(cp.deps.sql, tx => writeSpans(tx, spans, Date.now(), replacing))
  const read = async (id: string) =>
    (await cp.call(readTrace, { params: { id }, as: ours.viewer.personalKey })).body
  return { cp, ours, write, read }
}

t.test('of two writes of one span the last one is stored, and the trace is as if it were alone', async t => {
  const { ours, write, read } = await setUp(t)
  const id = randomUUID()
  const span = (parts: Parameters<typeof spanWrite>[1]) =>
    spanWrite(ours.teamId, { spanId: 'a', trace: { id }, startTimeMs: START, ...parts })
  t.match(
    await write(
      span({ endTimeMs: START + 9000, status: 'error', model: 'old', costNano: 5, promptTokens: 7 }),
      spanWrite(ours.teamId, { spanId: 'b', trace: { id }, startTimeMs: START, endTimeMs: START + 10 }),
    ),
    { created: 2, replaced: 0 },
  )
  t.match(await write(span({ endTimeMs: START + 500, status: 'ok', model: 'new', costNano: null })), {
    created: 0,
    replaced: 1,
  })
  const { trace, spans } = await read(id)
  t.match(trace, { status: 'ok', spanCount: 2, totalCostUsd: null, totalTokens: 0, durationMs: 500 })
  t.match(spans[0], { spanId: 'a', model: 'new', status: 'ok', costUsd: null, usage: null })
})

t.test('a write that comes again changes nothing', async t => {
  const { cp, ours, write, read } = await setUp(t)
  const spans = [1, 2, 3].map(n =>
    spanWrite(ours.teamId, { trace: { id: randomUUID(), tags: ['x'] }, spanId: `s${n}`, input: { n } }),
  )
  t.match(await write(...spans), { created: 3, replaced: 0 })
  const before = await Promise.all(spans.map(span => read(span.trace.id)))
  const versions = () => cp.deps.sql`select xmin::text from spans order by 1`
  const stored = await versions()
  t.match(await write(...spans), { created: 0, replaced: 3 })
  t.same(await Promise.all(spans.map(span => read(span.trace.id))), before)
  t.same(await versions(), stored, 'no row was rewritten')
})

t.test('of two spans with one reference in one write the last one wins', async t => {
  const { ours, write, read } = await setUp(t)
  const id = randomUUID()
  const span = (name: string) => spanWrite(ours.teamId, { spanId: 'a', trace: { id }, name })
  t.match(await write(span('first'), span('second')), { created: 1, replaced: 0 })
  t.match((await read(id)).spans, [{ name: 'second' }])
})

t.test('a trace id of another team is refused, the rest of the write is stored', async t => {
  const { cp, ours, write, read } = await setUp(t)
  const theirs = await team(cp)
  const [taken, free] = [randomUUID(), randomUUID()]
  await write(spanWrite(theirs.teamId, { trace: { id: taken } }))
  const written = await write(
    spanWrite(ours.teamId, { trace: { id: taken } }),
    spanWrite(ours.teamId, { trace: { id: free } }),
  )
  t.same([...written.foreignTraceIds], [taken])
  t.equal(written.created, 1)
  t.equal((await read(free)).trace.spanCount, 1)
  const [kept] = await cp.deps.sql`select team_id, span_count from traces where id = ${taken}`
  t.same(kept, { teamId: theirs.teamId, spanCount: '1' })
})

t.test('a replaced span may name its trace anew', async t => {
  const { ours, write, read } = await setUp(t)
  const id = randomUUID()
  const named = (name: string) =>
    spanWrite(ours.teamId, { spanId: 'a', trace: { id, name, nameSource: 'explicit', tags: [name] } })
  await write(named('one'))
  await write(named('two'))
  t.match((await read(id)).trace, { name: 'two', tags: ['one', 'two'], spanCount: 1 })
})
