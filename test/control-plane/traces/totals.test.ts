import { randomUUID } from 'node:crypto'
import t from 'tap'
import { inSnapshot, inTransaction, type Sql } from '../../../control-plane/db/sql.js'
import { pageOfFeedback } from '../../../control-plane/feedback/feed.js'
import { editFeedback, postFeedback } from '../../../control-plane/feedback/feedback.js'
import {
  countDays,
  createDayMemo,
  type DayCount,
  type DayMemo,
} from '../../../control-plane/traces/day-counts.js'
import { foldRollups } from '../../../control-plane/traces/fold-rollups.js'
import type { Range } from '../../../control-plane/traces/hour-parts.js'
import { writeSpans } from '../../../control-plane/traces/ingest.js'
import { pageOfTraces } from '../../../control-plane/traces/page-of-traces.js'
import { createPartitionsAhead } from '../../../control-plane/traces/partitions.js'
import { deleteExpiredTraces } from '../../../control-plane/traces/retention.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { spanWrite } from '../../support/span-writes.js'

const DAY_MS = 86_400_000
/** Noon of a Wednesday: the windows of 30 days begin and end within a day. */
const NOW = Date.parse('2031-03-05T12:00:00.000Z')

type Query = Parameters<typeof pageOfTraces>[3]
type Parts = Parameters<typeof spanWrite>[1]
type Question = Query & Parameters<typeof pageOfFeedback>[3]

/** None of them is answered by the counts of one facet. */
const questions: Question[] = [
  { min_latency_ms: 50 },
  { min_tokens: 10, status: 'error' },
  { 'metadata[env]': 'prod' },
  { tags: ['x', 'y'] },
  { min_rating: 3 },
  { max_rating: 2, model: 'm1' },
  { q: 'needle' },
  { q: 'needle', q_in: 'name' },
  { q: 'ne' },
  { q: 'needle', model: 'm1', from: NOW - 9 * DAY_MS + 1, to: NOW - 2 * DAY_MS },
]

async function scene(t: Parameters<typeof startControlPlane>[0], retentionDays = 365) {
  const clock = { ms: NOW }
  const cp = await startControlPlane(t, { now: () => clock.ms })
  const { sql } = cp.deps
  const [ours, theirs] = [await team(cp), await team(cp)]
  await sql`update teams set retention_days = ${retentionDays}`
  for (let ms = NOW - 42 * DAY_MS; ms <= NOW; ms += 7 * DAY_MS) await createPartitionsAhead(sql, ms)
  const write = (at: number, parts: Parts, teamId = ours.teamId, tx: Sql = sql) =>
    inTransaction(tx, inner =>
      writeSpans(inner, [spanWrite(teamId, parts)], at, { repeated: 'replace', foreign: 'refuse' }),
    )
  const author = { teamId: ours.teamId, userId: ours.editor.userId }
  const page = (memo: DayMemo, query: Query, place = { limit: 20, offset: 0 }, teamId = ours.teamId) =>
    pageOfTraces(cp.deps, memo, teamId, query, place)
  const feed = (memo: DayMemo, query: Question, place = { limit: 20, offset: 0 }) =>
    pageOfFeedback(sql, memo, ours.teamId, query, place)
  return { cp, sql, clock, ours, theirs, write, author, page, feed }
}

const short = ({ rows, total }: { rows: { id: string }[]; total: number }) => ({
  ids: rows.map(row => row.id),
  total,
})

t.test('after every kind of write each process answers as one that has counted nothing before', async t => {
  const { cp, sql, clock, write, author, page, feed } = await scene(t, 28)
  // Two processes, each of which remembers what it has counted, in traces and in the feed.
  const processes = [1, 2].map(() => ({ traces: createDayMemo(), feed: createDayMemo() }))
  const holds = async (when: string) => {
    for (const query of questions) {
      for (const place of [
        { limit: 20, offset: 0 },
        { limit: 3, offset: 4 },
      ]) {
        const traces = short(await page(createDayMemo(), query, place))
        const feedback = short(await feed(createDayMemo(), query, place))
        for (const [n, memo] of processes.entries()) {
          const name = `${when}: ${JSON.stringify(query)} at ${place.offset}, process ${n + 1}`
          t.same(short(await page(memo.traces, query, place)), traces, name)
          t.same(short(await feed(memo.feed, query, place)), feedback, `feed ${name}`)
        }
      }
    }
  }
  const total = async (query: Query) => (await page(processes[0]!.traces, query)).total
  const ids = Array.from({ length: 40 }, () => randomUUID())
  for (const [n, id] of ids.entries()) {
    const at = NOW - n * DAY_MS + (n % 5) * 3_600_000 - 7_200_000
    await write(at, {
      name: n % 3 === 0 ? 'needle' : 'hay',
      input: n % 4 === 0 ? { text: 'a needle' } : null,
      startTimeMs: at,
      endTimeMs: at + 10 * n,
      status: n % 2 === 0 ? 'error' : 'ok',
      model: n % 2 === 0 ? 'm1' : 'm2',
      promptTokens: n,
      trace: { id, tags: n % 2 === 0 ? ['x', 'y'] : ['x'], metadata: { env: n % 3 === 0 ? 'prod' : 'dev' } },
    })
    if (n % 2 === 0) await postFeedback(cp.deps, author, id, { rating: (n % 7) - 1, source: 'user' })
  }
  await holds('first')
  const [old, older] = [ids[9]!, ids[17]!]
  const at = NOW - 9 * DAY_MS
  const before = await total({ min_latency_ms: 50 })

  await write(NOW - 3 * DAY_MS, { startTimeMs: at, endTimeMs: at + 900 })
  await holds('a new trace')
  t.equal(await total({ min_latency_ms: 50 }), before + 1)
  await write(NOW, { spanId: 'late', name: 'needle', status: 'error', promptTokens: 50, trace: { id: old } })
  await holds('a late span')
  await write(NOW, { spanId: 'late', name: 'hay', trace: { id: old } })
  await holds('a replaced span')
  await write(NOW, { spanId: 'late', name: 'hay', trace: { id: old, metadata: { env: 'prod' } } })
  await holds('a repeated span that describes its trace')
  await write(NOW, {
    spanId: 'late',
    name: 'hay',
    trace: { id: old, name: 'needles', nameSource: 'explicit', tags: ['y'] },
  })
  await holds('a repeated span that renames and tags its trace')
  const rated = await total({ min_rating: 3 })
  const judged = await postFeedback(cp.deps, author, older, { rating: 5, source: 'api' })
  await holds('feedback')
  t.equal(await total({ min_rating: 3 }), rated + 1)
  await editFeedback(cp.deps, author, { id: older, feedbackId: judged.id }, { rating: -1 })
  await holds('edited feedback')
  t.equal(await total({ min_rating: 3 }), rated)
  t.ok((await foldRollups(sql)) > 0)
  await holds('folded sums')
  t.ok((await deleteExpiredTraces(sql, clock.ms)).droppedWeeks.length > 0)
  await holds('retention by the week')
  await sql`update teams set retention_days = 20 where id = ${author.teamId}`
  t.ok((await deleteExpiredTraces(sql, clock.ms)).deletedTraces > 0)
  await holds('retention row by row')
  clock.ms += DAY_MS + 1_234
  await holds('a day later')
})

t.test('a write that is committed late is seen, whatever was counted and committed meanwhile', async t => {
  const { sql, write, page } = await scene(t)
  const memo = createDayMemo()
  const total = async () => (await page(memo, { min_latency_ms: 50 })).total
  const slow = (at: number, tx: Sql = sql) =>
    write(at, { startTimeMs: at, endTimeMs: at + 90 }, undefined, tx)
  const at = NOW - 5 * DAY_MS
  await slow(at)
  t.equal(await total(), 1)
  await inTransaction(sql, async tx => {
    await slow(at, tx)
    t.equal(await total(), 1, 'not committed')
    await slow(at)
    t.equal(await total(), 2, 'the one that began later')
  })
  t.equal(await total(), 3, 'the one that began first')
})

t.test('traces of before the versions, and those that a process of before writes, are counted', async t => {
  const { sql, write, page } = await scene(t)
  const memo = createDayMemo()
  const at = NOW - 5 * DAY_MS
  const writeAsBefore = async () => {
    await write(at, { startTimeMs: at, endTimeMs: at + 90 })
    await sql`delete from trace_facet_deltas where dimension = 'change'`
  }
  for (const total of [1, 2, 3]) {
    await writeAsBefore()
    for (const _ of ['cold', 'warm']) t.equal((await page(memo, { min_latency_ms: 50 })).total, total)
  }
  await write(at, { startTimeMs: at, endTimeMs: at + 90 })
  t.equal((await page(memo, { min_latency_ms: 50 })).total, 4, 'and the first write with a version')
})

t.test('what writers and readers do at once leaves nothing out in the end', async t => {
  const { sql, write, page } = await scene(t)
  const memos = [createDayMemo(), createDayMemo()]
  const ids = Array.from({ length: 6 }, () => randomUUID())
  const query = { 'metadata[env]': 'prod' }
  for (let round = 0; round < 12; round++) {
    const writes = ids.map((id, n) =>
      write(NOW - (n + 1) * DAY_MS, {
        spanId: `s${round % 3}`,
        startTimeMs: NOW + round,
        trace: { id, metadata: { env: (round + n) % 2 === 0 ? 'prod' : 'dev' } },
      }),
    )
    await Promise.all([...writes, ...memos.map(memo => page(memo, query)), foldRollups(sql)])
    const expected = short(await page(createDayMemo(), query))
    for (const memo of memos) t.same(short(await page(memo, query)), expected, `round ${round}`)
  }
})

t.test("another team's traces are never counted, nor its counts remembered for ours", async t => {
  const { ours, theirs, write, page } = await scene(t)
  const memo = createDayMemo()
  const at = NOW - 4 * DAY_MS
  for (const teamId of [ours.teamId, theirs.teamId, theirs.teamId])
    await write(at, { startTimeMs: at, endTimeMs: at + 90, name: 'needle' }, teamId)
  for (const query of [{ min_latency_ms: 50 }, { q: 'needle' }]) {
    for (const _ of ['cold', 'warm']) {
      t.equal((await page(memo, query, undefined, ours.teamId)).total, 1)
      t.equal((await page(memo, query, undefined, theirs.teamId)).total, 2)
    }
  }
})

t.test('every page is the same as of one list, whether or not its days have been counted before', async t => {
  const { write, page } = await scene(t)
  const written: { id: string; at: number; startTimeMs: number }[] = []
  const store = async (at: number, startTimeMs: number) => {
    const id = randomUUID()
    await write(at, { trace: { id }, startTimeMs, endTimeMs: startTimeMs + 90, name: 'needle' })
    written.push({ id, at, startTimeMs })
  }
  // Three to a moment, days apart and on one day; more on the last day than are remembered of one.
  for (let n = 0; n < 45; n++) await store(NOW - Math.floor(n / 3) ** 2 * 9_000_000, NOW + (n % 3))
  for (let n = 1; n <= 27; n++) await store(NOW - n * 60_000, NOW - n)
  const memo = createDayMemo()
  for (const round of ['cold', 'warm', 'with a day of them changed']) {
    if (round.endsWith('changed')) await store(NOW - 4 * 9_000_000 - 1, NOW)
    const newestFirst = [...written]
      .sort((a, b) => b.at - a.at || b.startTimeMs - a.startTimeMs)
      .map(({ id }) => id)
    for (const query of [{ min_latency_ms: 50 }, { q: 'needle' }, { q: 'needle', q_in: 'name' }] as const) {
      for (const limit of [4, 30]) {
        for (let offset = 0; offset < newestFirst.length + 5; offset += limit) {
          const { ids, total } = short(await page(memo, query, { limit, offset }))
          t.same(ids, newestFirst.slice(offset, offset + limit), `${round} ${offset}`)
          t.equal(total, newestFirst.length)
        }
      }
    }
  }
})

t.test('a search that was made before reads the rows of its page by their keys alone', async t => {
  const { sql, ours, write, page } = await scene(t)
  for (let day = 0; day < 25; day++) await write(NOW - day * DAY_MS, { name: 'needle' })
  const memo = createDayMemo()
  const found = short(await page(memo, { q: 'needle' }))
  // Whoever looked for them again would not find them: no signature, and no write that tells of it.
  await sql`delete from trace_signatures where team_id = ${ours.teamId}`
  t.same(short(await page(memo, { q: 'needle' })), found)
  t.same(short(await page(createDayMemo(), { q: 'needle' })), { ids: [], total: 0 })
})

t.test('a day is counted once, and again when it has changed', async t => {
  const { sql, ours, write } = await scene(t)
  const memo = createDayMemo()
  const start = NOW - (NOW % DAY_MS) - 70 * DAY_MS
  const window = { fromMs: start - 1_000, toMs: start + 64 * DAY_MS + 1_000 }
  for (let day = 0; day < 64; day++) await write(start + day * DAY_MS, {})
  /** @returns the total, and the ranges that were read for it, in days from the first whole one. */
  const count = async (most?: number, pieces: Range[] = [window], counts = (_: number) => 10) => {
    const read: [number, number][] = []
    const days = await inSnapshot(sql, tx =>
      countDays(tx, memo, {
        teamId: ours.teamId,
        name: 'question',
        pieces,
        count: async (ranges, limit) => {
          read.push(
            ...ranges.map(({ fromMs, toMs }): [number, number] => [
              (fromMs - start) / DAY_MS,
              (toMs - start) / DAY_MS,
            ]),
          )
          return counted(ranges, limit, counts)
        },
        ...(most === undefined ? {} : { most }),
      }),
    )
    return {
      total: days.reduce((sum, day) => sum + day.count, 0),
      read: read.map(range => range.map(Math.round)),
    }
  }
  function counted(ranges: readonly Range[], limit: number, counts: (day: number) => number): DayCount[] {
    const days: DayCount[] = []
    let left = limit
    for (let day = 63; day >= 0 && left > 0; day--) {
      const dayMs = start + day * DAY_MS
      if (!ranges.some(({ fromMs, toMs }) => dayMs >= fromMs && dayMs < toMs)) continue
      days.push({ dayMs, count: Math.min(left, counts(day)) })
      left -= counts(day)
    }
    return days.filter(day => day.count > 0)
  }
  t.same(await count(), { total: 640, read: [[-0, 64]] }, 'everything, in one range')
  t.same(
    await count(),
    {
      total: 640,
      read: [
        [-0, 0],
        [64, 64],
      ],
    },
    'then the ends of the window',
  )
  await write(start + 5 * DAY_MS, {})
  await write(start + 6 * DAY_MS + 9, {})
  await write(start + 40 * DAY_MS, {})
  const changed = await count()
  t.same(
    changed,
    {
      total: 640,
      read: [
        [-0, 0],
        [5, 7],
        [40, 41],
        [64, 64],
      ],
    },
    'and the days that changed',
  )
  for (let day = 0; day < 64; day += 2) await write(start + day * DAY_MS, {})
  t.same(await count(), { total: 640, read: [[-0, 64]] }, 'all of them where many ranges would be left')
  const whole = { fromMs: start, toMs: start + 64 * DAY_MS }
  const halves = [
    { fromMs: start + 32 * DAY_MS, toMs: whole.toMs },
    { fromMs: start, toMs: start + 32 * DAY_MS },
  ]
  t.same(await count(325, halves), { total: 330, read: [] }, 'no more than is asked for')
  memo.clear()
  t.same(
    await count(325, halves),
    {
      total: 325,
      read: [
        [32, 64],
        [0, 32],
      ],
    },
    'counting stops there',
  )
  t.same(await count(325, halves), { total: 325, read: [] }, 'a day that has as many as are missing will do')
  t.same(await count(328, halves), { total: 328, read: [[0, 32]] }, 'a day that has fewer is counted again')
  t.same(await count(Number.POSITIVE_INFINITY, halves), { total: 640, read: [[0, 32]] })
  t.same(await count(Number.POSITIVE_INFINITY, halves), { total: 640, read: [] })
})

t.test('what is remembered has a bound', async t => {
  const { sql, ours, write } = await scene(t)
  const memo = createDayMemo()
  for (let day = 0; day < 20; day++) await write(NOW - day * DAY_MS, {})
  await inSnapshot(sql, async tx => {
    for (let n = 0; n < 1_500; n++) {
      const pieces = [{ fromMs: NOW - 30 * DAY_MS, toMs: NOW + DAY_MS }]
      await countDays(tx, memo, { teamId: ours.teamId, name: `${n}`, pieces, count: async () => [] })
    }
  })
  t.ok(memo.size > 5_000 && memo.size <= 20_000, `${memo.size}`)
})
