import { randomUUID } from 'node:crypto'
import t from 'tap'
import { readTrace } from '../../../shared/contract/traces.js'
import type { CallRecord, SpanTrace } from '../../../shared/spool/record.js'
import { callRecord, ship } from '../../support/call-records.js'
import { type ControlPlane, startControlPlane } from '../../support/control-plane.js'
import { type SeededTeam, team } from '../../support/seed.js'

const START = Date.parse('2026-11-21T12:00:00.000Z')

interface Said extends Partial<Omit<SpanTrace, 'id'>> {
  status?: 'ok' | 'error'
  costNano?: number | null
}

/** The calls of one trace, a second apart. */
function callsOf(teamId: string, said: readonly Said[]): { id: string; calls: CallRecord[] } {
  const id = randomUUID()
  const calls = said.map(({ status = 'ok', costNano = 1, ...trace }, i) =>
    callRecord(teamId, {
      trace: { id, ...trace },
      span: { startTimeMs: START + 1000 * i, status, costNano },
    }),
  )
  return { id, calls }
}

const read = async (cp: ControlPlane, as: SeededTeam, id: string) =>
  (await cp.call(readTrace, { params: { id }, as: as.owner.session })).body.trace

/** Every order of up to four things. */
function ordersOf<T>(things: readonly T[]): T[][] {
  if (things.length < 2) return [[...things]]
  return things.flatMap((thing, i) =>
    ordersOf([...things.slice(0, i), ...things.slice(i + 1)]).map(rest => [thing, ...rest]),
  )
}

/** What a trace says after its calls arrived one by one in each order, and all in one batch. */
async function inEveryOrder(cp: ControlPlane, ours: SeededTeam, said: readonly Said[]) {
  const answers = []
  for (const order of ordersOf(said.map((_, i) => i))) {
    const { id, calls } = callsOf(ours.teamId, said)
    for (const i of order) await ship(cp, [calls[i]])
    answers.push(await read(cp, ours, id))
  }
  const { id, calls } = callsOf(ours.teamId, said)
  await ship(cp, calls)
  answers.push(await read(cp, ours, id))
  const texts = new Set(answers.map(({ id: _, ...rest }) => JSON.stringify(rest)))
  return { texts, trace: answers[0]! }
}

t.test('the order of arrival makes no difference', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const { texts, trace } = await inEveryOrder(cp, ours, [
    { nameIfUnset: 'fallback', tags: ['b'], sessionId: 'old', metadata: { a: 1, shared: 1 } },
    { name: 'First', tags: ['a', 'b'], costNano: null },
    { nameIfUnset: 'late fallback', sessionId: 'new', status: 'error' },
    { name: 'Second', metadata: { b: 2, shared: 2 } },
  ])
  t.equal(texts.size, 1, [...texts].join('\n'))
  t.match(trace, {
    name: 'Second',
    sessionId: 'new',
    tags: ['a', 'b'],
    metadata: { a: 1, b: 2, shared: 2 },
    status: 'error',
    spanCount: 4,
    totalCostUsd: 0.000000003,
    durationMs: 3250,
    startedAt: new Date(START).toISOString(),
    endedAt: new Date(START + 3250).toISOString(),
  })
})

t.test('x-trace-name names and renames; an absent one never resets', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const { texts, trace } = await inEveryOrder(cp, ours, [{ name: 'A' }, { name: 'B' }, {}])
  t.equal(texts.size, 1)
  t.equal(trace.name, 'B')
})

t.test(
  'x-trace-name-if-unset names a new trace and one that has only its default name, and nothing else',
  async t => {
    const cp = await startControlPlane(t)
    const ours = await team(cp)
    const named = async (said: Said[]) => {
      const { texts, trace } = await inEveryOrder(cp, ours, said)
      t.equal(texts.size, 1, [...texts].join('\n'))
      return trace.name
    }
    t.equal(await named([{ nameIfUnset: 'fallback' }]), 'fallback')
    t.equal(await named([{}, { nameIfUnset: 'fallback' }]), 'fallback')
    t.equal(await named([{ name: 'A' }, { nameIfUnset: 'fallback' }]), 'A')
    t.equal(await named([{ nameIfUnset: 'fallback' }, { name: 'A' }]), 'A')
    t.equal(await named([{ nameIfUnset: 'one' }, { nameIfUnset: 'two' }]), 'one')
  },
)

t.test('a record that comes again does not bring an old name back', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const { id, calls } = callsOf(ours.teamId, [
    { name: 'A', sessionId: 'x' },
    { name: 'B', sessionId: 'y' },
  ])
  await ship(cp, calls)
  await ship(cp, [calls[0]])
  t.match(await read(cp, ours, id), { name: 'B', sessionId: 'y', spanCount: 2 })
})

t.test('error beats ok', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  t.equal(
    (await inEveryOrder(cp, ours, [{ status: 'ok' }, { status: 'error' }, { status: 'ok' }])).trace.status,
    'error',
  )
  t.equal((await inEveryOrder(cp, ours, [{ status: 'ok' }])).trace.status, 'ok')
})

t.test('a total is null only when no span has a cost; sums are exact to the nano-dollar', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const costs = (values: (number | null)[]) =>
    inEveryOrder(
      cp,
      ours,
      values.map(costNano => ({ costNano })),
    )
  t.equal((await costs([null, null])).trace.totalCostUsd, null)
  t.equal((await costs([null, 0])).trace.totalCostUsd, 0)
  t.equal((await costs([4_503_599_627_370_495, 1, null])).trace.totalCostUsd, 4_503_599.627370496)
})

t.test('one trace cannot grow without bound', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const id = randomUUID()
  const calls = Array.from({ length: 60 }, (_, i) =>
    callRecord(ours.teamId, {
      trace: {
        id,
        name: 'n'.repeat(5000),
        sessionId: 's'.repeat(5000),
        tags: Array.from({ length: 200 }, (_, n) => `${i}-${n}${'t'.repeat(500)}`),
        metadata: { [`key${i}`]: randomUUID().repeat(100) },
      },
    }),
  )
  for (const call of calls) t.same((await ship(cp, [call])).body, { accepted: 1, rejected: 0 })
  const trace = await read(cp, ours, id)
  t.equal(trace.spanCount, 60)
  t.ok(trace.tags.length <= 1000)
  t.ok(JSON.stringify(trace.metadata).length < 200_000)
  t.equal(trace.name.length, 1000)
  t.equal(trace.sessionId?.length, 512)
})
