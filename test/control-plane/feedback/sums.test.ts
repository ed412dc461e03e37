import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { knownMigrations } from '../../../control-plane/db/migrations.js'
import { inTransaction } from '../../../control-plane/db/sql.js'
import { keyShifts } from '../../../control-plane/feedback/key-shifts.js'
import { foldFeedbackDeltas } from '../../../control-plane/feedback/sum-queries.js'
import { feedbackBuckets } from '../../../control-plane/feedback/summary.js'
import { foldRollups } from '../../../control-plane/traces/fold-rollups.js'
import { writeSpans } from '../../../control-plane/traces/ingest.js'
import { createPartitionsAhead } from '../../../control-plane/traces/partitions.js'
import { deleteExpiredTraces } from '../../../control-plane/traces/retention.js'
import type { SpanWrite } from '../../../control-plane/traces/span-write.js'
import { type FeedbackGroup, feedbackGroups } from '../../../shared/contract/feedback.js'
import { ingestTraces } from '../../../shared/contract/trace-ingestion.js'
import type { ControlPlane } from '../../support/control-plane.js'
import { spanWrite } from '../../support/span-writes.js'
import { DAY_MS, feedbackScene, NOW, promptVersions } from './scene.js'

const TODAY = Math.floor(NOW / DAY_MS) * DAY_MS
const replacing = { repeated: 'replace', foreign: 'refuse' } as const

interface Window {
  from: Date
  to: Date
}
const windowOf = (fromMs: number, toMs: number): Window => ({ from: new Date(fromMs), to: new Date(toMs) })
const ALL: Window = windowOf(NOW - 400 * DAY_MS, NOW + 400 * DAY_MS)

/** What the summary has to say, counted one by one. */
async function recounted({ deps: { sql } }: ControlPlane, teamId: string, group: FeedbackGroup, w: Window) {
  const feedback = await sql<{ trace: string; rating: number | null; createdAt: Date }[]>`
    select concat(trace_received_at, trace_id) as trace, rating, created_at from feedback where team_id = ${teamId}`
  const spans = await sql<{ trace: string; model: string | null; promptVersionId: string | null }[]>`
    select concat(trace_received_at, trace_id) as trace, model, prompt_version_id from spans
    where team_id = ${teamId} and kind = 'llm'`
  const keysOf = new Map<string, Set<string>>()
  for (const span of spans) {
    const key = group === 'model' ? span.model : span.promptVersionId
    if (key !== null) keysOf.set(span.trace, (keysOf.get(span.trace) ?? new Set()).add(key))
  }
  const ratings = new Map<string, (number | null)[]>()
  for (const { trace, rating, createdAt } of feedback) {
    if (createdAt < w.from || createdAt > w.to) continue
    for (const key of keysOf.get(trace) ?? []) ratings.set(key, [...(ratings.get(key) ?? []), rating])
  }
  return [...ratings].sort(byKey).map(([key, all]) => {
    const rated = all.filter(rating => rating !== null)
    const sum = rated.reduce((a, b) => a + b, 0)
    const avgRating = rated.length === 0 ? null : rounded(sum / rated.length)
    return { key, count: all.length, avgRating, downCount: rated.filter(rating => rating < 0).length }
  })
}

/** PostgreSQL divides in decimal. */
const rounded = (average: number) => Number(average.toPrecision(12))

const byKey = (a: readonly [string, unknown], b: readonly [string, unknown]) => (a[0] < b[0] ? -1 : 1)

async function answered({ deps: { sql } }: ControlPlane, teamId: string, group: FeedbackGroup, w: Window) {
  const buckets = await feedbackBuckets(sql, teamId, group, w)
  const entries = buckets.map(bucket => [bucket.key, bucket] as const).sort(byKey)
  return entries.map(([key, { count, avgRating, downCount }]) => ({
    key,
    count,
    avgRating: avgRating === null ? null : rounded(avgRating),
    downCount,
  }))
}

/** @returns how many buckets there were to compare. */
async function holds(t: Test, cp: ControlPlane, teamIds: string[], windows: Window[], when: string) {
  let compared = 0
  for (const teamId of teamIds) {
    for (const group of feedbackGroups) {
      for (const window of windows) {
        const expected = await recounted(cp, teamId, group, window)
        const said = await answered(cp, teamId, group, window)
        if (JSON.stringify(said) !== JSON.stringify(expected)) t.same(said, expected, `${group} ${when}`)
        compared += expected.length
      }
    }
  }
  t.pass(when)
  return compared
}

const sumRows = async ({ deps: { sql } }: ControlPlane) => {
  const [rows] = await sql<{ sums: number; deltas: number }[]>`
    select (select count(*)::int from feedback_sums) as sums,
      (select count(*)::int from feedback_sum_deltas) as deltas`
  return rows!
}

const randomly = (seed: number) => {
  let state = seed
  const next = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state / 0x80000000
  }
  const pick = <T>(items: readonly T[]): T => items[Math.floor(next() * items.length)]!
  return { next, pick }
}
type Random = ReturnType<typeof randomly>

/** Few references, so that many replace one of before. */
const anySpan = (teamId: string, id: string, versionIds: readonly string[], { pick }: Random): SpanWrite =>
  spanWrite(teamId, {
    trace: { id },
    spanId: pick(['a', 'b', 'c']),
    kind: pick(['llm', 'llm', 'llm', 'tool', 'embedding']),
    model: pick([null, 'm1', 'm2', 'm"3']),
    promptVersionId: pick([null, ...versionIds]),
    name: pick(['x', 'y']),
  })

type Scene = Awaited<ReturnType<typeof feedbackScene>>
const write = ({ cp, clock }: Scene, ...spans: SpanWrite[]) =>
  inTransaction(cp.deps.sql, tx => writeSpans(tx, spans, clock.ms, replacing))

/** Everything that may happen to feedback and the spans that it counts for, one thing at a time. */
async function world(scene: Scene, random: Random) {
  const { cp, clock, ours, theirs, post, edit } = scene
  const { sql } = cp.deps
  await sql`update teams set retention_days = 12 where id = ${ours.teamId}`
  await sql`update teams set retention_days = 20 where id = ${theirs.teamId}`
  await createPartitionsAhead(sql, clock.ms)
  const teams = [ours, theirs].map(team => ({ ...team, traces: [] as string[] }))
  const versionIds = new Map<string, string[]>()
  for (const { teamId } of teams) {
    const { versionIds: own } = await promptVersions(cp, teamId, 'Prompt', [1, 2])
    versionIds.set(teamId, [...own, randomUUID()])
  }
  const posted: { id: string; traceId: string; of: (typeof teams)[number] }[] = []
  const aTeam = () => random.pick(teams)
  const spanOf = (teamId: string, id: string) => anySpan(teamId, id, versionIds.get(teamId)!, random)
  const known = ({ traces }: (typeof teams)[number]) => traces.slice(-6)
  const happen: Record<string, () => Promise<unknown>> = {
    async trace() {
      const of = aTeam()
      of.traces.push(randomUUID(), randomUUID())
      await write(scene, ...of.traces.slice(-2).flatMap(id => [spanOf(of.teamId, id), spanOf(of.teamId, id)]))
    },
    async late() {
      const of = aTeam()
      await write(scene, ...known(of).flatMap(id => (random.next() < 0.5 ? [] : [spanOf(of.teamId, id)])))
    },
    async report() {
      const of = aTeam()
      const spans = known(of).map(id => spanOf(of.teamId, id))
      const traces = spans.map(({ trace, spanId, kind, model, name }) => {
        const startTime = new Date(clock.ms).toISOString()
        return { traceId: trace.id, spans: [{ spanId, kind, model, name, startTime }] }
      })
      await cp.call(ingestTraces, { as: of.virtualKey, body: { traces } as never })
    },
    async judge() {
      const of = aTeam()
      if (of.traces.length === 0) return
      for (const traceId of [random.pick(known(of)), random.pick(known(of))]) {
        const rating = random.pick([null, -1, 0, 1, 4, 5])
        const { status, body } = await post(traceId, { rating, label: 'x' }, of.editor.personalKey)
        if (status === 201) posted.push({ id: body.id, traceId, of })
      }
    },
    async edit() {
      if (posted.length === 0) return
      const row = random.pick(posted.slice(-10))
      const change = random.pick([{ rating: null }, { rating: -1 }, { rating: 3 }, { label: 'edited' }])
      await edit(row, change, row.of.editor.personalKey)
    },
    fold: () => foldRollups(sql),
    async expire() {
      clock.ms += Math.floor(random.next() * 4 * DAY_MS)
      await createPartitionsAhead(sql, clock.ms)
      return deleteExpiredTraces(sql, clock.ms)
    },
  }
  const often = ['trace', 'late', 'report', 'judge', 'judge', 'judge', 'edit', 'edit']
  const order = [...often, ...often, 'fold', 'expire']
  return {
    teamIds: teams.map(team => team.teamId),
    async step() {
      clock.ms += Math.floor(random.next() * 8) * 3_600_000
      const what = random.pick(order)
      await happen[what]!()
      return what
    },
  }
}

const someWindow = ({ clock }: Scene, { next, pick }: Random): Window => {
  const fromMs = clock.ms - Math.floor(next() * 25 * DAY_MS)
  const [day, nextDay] = [Math.floor(fromMs / DAY_MS) * DAY_MS, Math.ceil(fromMs / DAY_MS) * DAY_MS]
  const toMs = pick([clock.ms, fromMs + Math.floor(next() * 5 * DAY_MS), nextDay + DAY_MS - 1, nextDay])
  return windowOf(pick([fromMs, day, nextDay]), toMs)
}

for (const seed of [1, 2]) {
  t.test(`whatever happens to feedback and spans, the summary is what counting says (${seed})`, async t => {
    const scene = await feedbackScene(t)
    const random = randomly(seed)
    const { teamIds, step } = await world(scene, random)
    let compared = 0
    for (let i = 0; i < 120; i++) {
      const what = await step()
      const windows = [ALL, someWindow(scene, random)]
      compared += await holds(t, scene.cp, teamIds, windows, `after ${i} ${what}`)
    }
    t.ok(compared > 500, 'there was something to compare')
    const { sql } = scene.cp.deps
    scene.clock.ms += 100 * DAY_MS
    await deleteExpiredTraces(sql, scene.clock.ms)
    await foldRollups(sql)
    t.equal(await foldRollups(sql), 0, 'nothing is folded for ever')
    t.same(await sumRows(scene.cp), { sums: 0, deltas: 0 }, 'and nothing is left of what retention took')
  })
}

t.test('both ways of retention take feedback out of the sums, also when they died half-way', async t => {
  const scene = await feedbackScene(t)
  const { cp, clock, ours, theirs, posted } = scene
  const { sql } = cp.deps
  await sql`update teams set retention_days = 20`
  await sql`update teams set retention_days = 7 where id = ${ours.teamId}`
  await createPartitionsAhead(sql, clock.ms)
  for (const of of [ours, theirs]) {
    for (const _ of [1, 2]) {
      const id = randomUUID()
      await write(scene, spanWrite(of.teamId, { trace: { id }, kind: 'llm', model: 'm' }))
      await posted(id, { rating: 3 }, of.editor.personalKey)
    }
  }
  const ids = [ours.teamId, theirs.teamId]
  clock.ms += 8 * DAY_MS
  await sql`delete from trace_owners where id in (select id from trace_owners where team_id = ${ours.teamId} limit 1)`
  t.equal((await deleteExpiredTraces(sql, clock.ms)).deletedTraces, 2)
  await holds(t, cp, ids, [ALL], 'row by row')
  t.same(await answered(cp, ours.teamId, 'model', ALL), [])
  t.match(await answered(cp, theirs.teamId, 'model', ALL), [{ key: 'm', count: 2 }])
  clock.ms += 20 * DAY_MS
  await sql`delete from trace_owners where id in (select id from trace_owners where team_id = ${theirs.teamId} limit 1)`
  t.ok((await deleteExpiredTraces(sql, clock.ms)).droppedWeeks.length > 0)
  t.same(await answered(cp, theirs.teamId, 'model', ALL), [])
  await foldRollups(sql)
  t.same(await sumRows(cp), { sums: 0, deltas: 0 })
})

t.test('feedback that is edited while a span brings its trace a model counts for it as edited', async t => {
  const scene = await feedbackScene(t)
  const { cp, clock, ours, posted, edit, post } = scene
  const id = randomUUID()
  const span = (model: string) => spanWrite(ours.teamId, { trace: { id }, spanId: model, kind: 'llm', model })
  await write(scene, span('old'))
  const row = await posted(id, { rating: -1 })
  const later = await inTransaction(cp.deps.sql, async tx => {
    await writeSpans(tx, [span('new')], clock.ms, replacing)
    const waiting = [edit(row, { rating: 5 }), post(id, { rating: 0 })]
    await new Promise(resolve => setTimeout(resolve, 200))
    return { waiting }
  })
  for (const { status } of await Promise.all(later.waiting)) t.ok(status < 300)
  await holds(t, cp, [ours.teamId], [ALL], 'afterwards')
  const both = { count: 2, avgRating: 2.5, downCount: 0 }
  t.same(await answered(cp, ours.teamId, 'model', ALL), [
    { key: 'new', ...both },
    { key: 'old', ...both },
  ])
})

t.test('feedback and spans of the same traces, written at once, end exact', async t => {
  const scene = await feedbackScene(t)
  const { cp, ours, posted, edit, post } = scene
  const random = randomly(11)
  const ids = [randomUUID(), randomUUID()]
  for (const id of ids) await write(scene, anySpan(ours.teamId, id, [], random))
  const rows = [await posted(ids[0]!, { rating: 1 }), await posted(ids[1]!, { rating: 2 })]
  for (let round = 0; round < 12; round++) {
    await Promise.all<unknown>([
      ...ids.map(id =>
        write(scene, anySpan(ours.teamId, id, [], random), anySpan(ours.teamId, id, [], random)),
      ),
      ...rows.map(row => edit(row, { rating: random.pick([-1, 0, 4]) })),
      ...ids.map(id => post(id, { rating: random.pick([-1, 3]) })),
      foldRollups(cp.deps.sql),
    ])
    await holds(t, cp, [ours.teamId], [ALL], `round ${round}`)
  }
})

t.test('folds at once lose nothing, and leave one row for each key of a day', async t => {
  const scene = await feedbackScene(t)
  const { cp, ours, posted } = scene
  const { sql } = cp.deps
  const id = randomUUID()
  await write(scene, spanWrite(ours.teamId, { trace: { id }, kind: 'llm', model: 'm' }))
  for (let i = 0; i < 30; i++) await posted(id, { rating: (i % 6) - 1 })
  const fold = () => inTransaction(sql, tx => foldFeedbackDeltas(tx, 7))
  t.same(await sumRows(cp), { sums: 0, deltas: 30 })
  for (let round = 0; round < 3; round++) {
    await Promise.all([fold(), fold(), fold()])
    await holds(t, cp, [ours.teamId], [ALL], `folded ${round}`)
  }
  await foldRollups(sql)
  t.same(await sumRows(cp), { sums: 1, deltas: 0 })
  await holds(t, cp, [ours.teamId], [ALL], 'folded')
})

t.test('the migration counts the feedback that is stored already', async t => {
  const scene = await feedbackScene(t)
  const { cp } = scene
  const { sql } = cp.deps
  const random = randomly(9)
  const { teamIds, step } = await world(scene, random)
  for (let i = 0; i < 60; i++) await step()
  await sql`drop table feedback_sums, feedback_sum_deltas`
  const migration = knownMigrations().find(({ name }) => name === '0017_feedback_sums.sql')
  await sql.unsafe(migration!.sql)
  const windows = [ALL, someWindow(scene, random), someWindow(scene, random)]
  t.ok((await holds(t, cp, teamIds, windows, 'after the migration')) > 10)
  t.equal((await sumRows(cp)).deltas, 0)
})

t.test('whole UTC days are answered from the sums, no span is read for them', async t => {
  const scene = await feedbackScene(t)
  const { cp, clock, ours, posted } = scene
  const { sql } = cp.deps
  const id = randomUUID()
  await write(scene, spanWrite(ours.teamId, { trace: { id }, kind: 'llm', model: 'm' }))
  for (const atMs of [TODAY - 1, TODAY, TODAY + DAY_MS - 1, TODAY + DAY_MS]) {
    clock.ms = atMs - 1_000
    await posted(id, { rating: 1 })
  }
  const counted = async (fromMs: number, toMs: number) =>
    (await answered(cp, ours.teamId, 'model', windowOf(fromMs, toMs)))[0]?.count ?? 0
  const wide = [TODAY - 5, TODAY + DAY_MS + 5] as const
  t.equal(await counted(...wide), 4)
  t.equal(await counted(TODAY, TODAY + DAY_MS - 1), 2, 'one day to its last millisecond')
  await sql`delete from spans`
  t.equal(await counted(...wide), 2, 'the whole day alone')
  t.equal(await counted(TODAY, TODAY + DAY_MS - 1), 2)
  t.equal(await counted(TODAY, TODAY + DAY_MS - 2), 0, 'a millisecond less is no whole day')
  t.equal(await counted(TODAY + 1, TODAY + DAY_MS), 0)
  await foldRollups(sql)
  t.equal(await counted(...wide), 2, 'folded or not')
})

t.test(
  'spans of new traces, and such as change no key of an llm span, have nothing to do with feedback',
  async t => {
    const [teamId, id] = [randomUUID(), randomUUID()]
    const placed = (parts: Parameters<typeof spanWrite>[1]) => ({
      span: spanWrite(teamId, { trace: { id }, kind: 'llm', model: 'm', ...parts }),
      receivedAtMs: NOW,
      position: 0,
      json: { attributes: null, input: null, output: null, variables: null },
    })
    const stored = (created: ReturnType<typeof placed>[]) => ({ created, held: [], changed: [] })
    const known = [{ id }]
    t.same(keyShifts(stored([placed({})]), []), [])
    t.same(keyShifts(stored([placed({ kind: 'tool' })]), known), [])
    t.same(keyShifts(stored([placed({ model: null })]), known), [])
    const before = { ...placed({}).span, traceId: id, durationMs: null }
    const changed = (parts: Parameters<typeof spanWrite>[1]) =>
      keyShifts({ created: [], held: [], changed: [{ ...placed(parts), before }] }, known)
    t.same(changed({ status: 'error' }), [])
    t.match(changed({ model: 'n' }), [
      { traceId: id, dimension: 'model', key: 'n', spans: 1 },
      { traceId: id, dimension: 'model', key: 'm', spans: -1 },
    ])
    t.match(changed({ kind: 'tool' }), [{ key: 'm', spans: -1 }])
    t.match(keyShifts(stored([placed({}), placed({ spanId: 's2' })]), known), [{ key: 'm', spans: 2 }])
  },
)
