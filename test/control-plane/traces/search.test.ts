import { randomUUID } from 'node:crypto'
import t from 'tap'
import { inTransaction } from '../../../control-plane/db/sql.js'
import { writeSpans } from '../../../control-plane/traces/ingest.js'
import { positionsOf, signatureOf } from '../../../control-plane/traces/search-signature.js'
import { listTraces } from '../../../shared/contract/traces.js'
import { startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { spanWrite } from '../../support/span-writes.js'

const holds = (signature: Buffer, search: string) =>
  positionsOf(search).every(position => {
    const bit = position % (signature.length * 8)
    return (signature[bit >> 3]! & (1 << (bit & 7))) !== 0
  })

/** Letter by letter, as PostgreSQL folds: ß has no upper case of one letter, İ no lower one. */
const each = (text: string, change: (letter: string) => string) =>
  [...text].map(c => (change(c).length === c.length ? change(c) : c)).join('')

t.test('a signature holds every part of its texts, in any letter case', async t => {
  const text = 'Größe: "naïve" Ünïcode ΟΔΥΣΣΕΥΣ 日本語テキスト 😀😀 İstanbul K 100% a\\b\nnext'
  const signature = signatureOf([text], [JSON.stringify({ text })])
  for (let from = 0; from < text.length; from++) {
    for (let to = from + 1; to <= Math.min(text.length, from + 12); to++) {
      const part = text.slice(from, to)
      for (const search of [part, each(part, c => c.toUpperCase()), each(part, c => c.toLowerCase())])
        t.ok(holds(signature, search), search)
    }
  }
})

t.test('a signature lets few other texts pass', async t => {
  const words = Array.from({ length: 200 }, (_, i) => (i * 7_919_331).toString(36))
  const signature = signatureOf([], [JSON.stringify(words)])
  const others = Array.from({ length: 1000 }, (_, i) => `q${(i * 104_729_017).toString(36)}z`)
  t.ok(others.filter(other => holds(signature, other)).length < 50)
})

async function setUp(t: Parameters<typeof startControlPlane>[0]) {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const now = Date.now()
  const write = (parts: Parameters<typeof spanWrite>[1]) =>
    inTransaction(cp.deps.sql, tx =>
      writeSpans(tx, [spanWrite(ours.teamId, parts)], now, { repeated: 'replace', foreign: 'refuse' }),
    )
  const find = async (q: string, q_in?: 'input' | 'output' | 'name') => {
    const { error, body } = await cp.call(listTraces, {
      query: { q, ...(q_in !== undefined && { q_in }) },
      as: ours.viewer.personalKey,
    })
    if (error !== null) throw new Error(error.message)
    t.equal(body.total, body.data.length)
    return body.data.map(row => row.id)
  }
  return { cp, ours, write, find }
}

t.test('q finds every part of a text, however PostgreSQL prints it, and nothing else', async t => {
  const { write, find } = await setUp(t)
  const [id, other] = [randomUUID(), randomUUID()]
  const input = { a: 1, list: [1, 2.5, { deep: 'x: y, "z" \\ tab\there' }], big: 1e21, uni: 'Straße ΣΑΣ' }
  await write({ trace: { id }, input, attributes: { 'http.url': 'https://x.test/a%20b?c=_d' } })
  await write({ trace: { id: other }, input: { a: 2, list: [], uni: 'strasse' } })
  for (const q of [
    'x: y',
    '"z" \\ tab',
    'tab\there',
    'straße',
    'ΣΑΣ',
    'σας'.replace('ς', 'σ'),
    '1, 2.5',
    '000000000000',
  ]) {
    t.same(await find(q, 'input'), [id], q)
    t.same(await find(q), [id], q)
  }
  t.same(await find('a%20b?c=_d'), [id])
  t.same(await find('a%20b?c=%d'), [])
  t.same(await find('a_20b'), [])
  t.same((await find('a')).sort(), [id, other].sort(), 'one character')
  t.same((await find('st', 'input')).sort(), [id, other].sort(), 'two characters')
  t.same(await find("'; drop table traces; --"), [])
  t.same(await find('😀'), [])
})

t.test('q finds what a span and its trace say now, not what they said before', async t => {
  const { write, find } = await setUp(t)
  const id = randomUUID()
  const say = (word: string) =>
    write({
      trace: { id, name: `${word} trace`, nameSource: 'explicit' },
      name: `${word} span`,
      output: { word },
    })
  await say('elephant')
  t.same(await find('elephant', 'output'), [id])
  await say('crocodile')
  for (const where of ['output', 'name', undefined] as const) {
    t.same(await find('elephant', where), [], String(where))
    t.same(await find('crocodile', where), [id], String(where))
  }
  t.same(await find('elephant tra', 'name'), [])
  t.same(await find('crocodile tra', 'name'), [id])
  t.same(await find('crocodile spa', 'name'), [id])
})

t.test(
  'a search of names passes over traces whose payloads hold the word, and finds those of before that',
  async t => {
    const { cp, write, find } = await setUp(t)
    const [named, stored, spoken] = [randomUUID(), randomUUID(), randomUUID()]
    const { sql } = cp.deps
    await write({ trace: { id: stored }, name: 'get refund' })
    await sql`update trace_signatures set names = null`
    await write({ trace: { id: named, name: 'Refunds', nameSource: 'explicit' } })
    await write({ trace: { id: spoken }, input: 'a refund, please', attributes: { refund: 1 } })
    t.same((await find('refund', 'name')).sort(), [named, stored].sort())
    t.same((await find('refund')).sort(), [named, stored, spoken].sort())
    const filters = await sql<{ traceId: string; names: Buffer }[]>`
    select trace_id, names from trace_signatures where names is not null`
    const passed = filters.filter(({ names }) => holds(names, 'refund')).map(row => row.traceId)
    t.same(passed, [named], 'no text of the others is read')
  },
)

t.test('q matches a trace once, however many of its spans and signatures do', async t => {
  const { write, find } = await setUp(t)
  const id = randomUUID()
  for (let n = 0; n < 4; n++) await write({ trace: { id }, spanId: `s${n}`, input: 'the same words' })
  t.same(await find('same words'), [id])
})

t.test('a search pages through its whole window, newest first, as if it were one piece', async t => {
  const { cp, ours, find } = await setUp(t)
  const now = Date.now()
  const newestFirst: string[] = []
  for (let n = 0; n < 24; n++) {
    const span = spanWrite(ours.teamId, { input: n % 3 === 0 ? 'no such word' : 'the lamp of day' })
    await inTransaction(cp.deps.sql, tx =>
      writeSpans(tx, [span], now - n * 30 * 3_600_000, { repeated: 'keep', foreign: 'refuse' }),
    )
    if (n % 3 !== 0 && n * 30 < 30 * 24) newestFirst.push(span.trace.id)
  }
  t.same(await find('lamp'), newestFirst)
  t.same(await find('la'), newestFirst, 'and so does one too short for signatures')
  const seen: string[] = []
  for (let page = 1; page <= 4; page++) {
    const { body } = await cp.call(listTraces, {
      query: { q: 'LAMP of', page: String(page), limit: '5' },
      as: ours.viewer.personalKey,
    })
    t.match(body, { total: newestFirst.length, page, limit: 5 })
    seen.push(...body.data.map(row => row.id))
  }
  t.same(seen, newestFirst)
})
