import { randomUUID } from 'node:crypto'
import t from 'tap'
import { wholeRecord } from '../../../control-plane/calls/whole-record.js'
import { recordJson } from '../../../proxy/spool/record-json.js'
import type { CallRecord } from '../../../shared/spool/record.js'
import { callRecord } from '../../support/call-records.js'

const read = (record: CallRecord) => wholeRecord(JSON.parse(recordJson(record))) as CallRecord

/** With what ingestion adds to the attributes. */
function whole(record: CallRecord): CallRecord {
  const { charge, span } = record
  if (span === null) return record
  const { requestId, cached, virtualKeyId } = charge
  const known = virtualKeyId === null ? { requestId, cached } : { requestId, cached, virtualKeyId }
  return { charge, span: { ...span, attributes: { ...known, ...span.attributes } } }
}

const NASTY = [
  '"',
  '\\',
  '\u0000',
  '\n',
  '\u2028',
  '\ud800',
  '😀 ü',
  '","teamId":"x',
  '</script>',
  'x'.repeat(500),
]

t.test('a plain call comes back as it was written, from less than half of its JSON', async t => {
  const [virtualKeyId, finishReason] = [randomUUID(), 'stop']
  const record = callRecord(randomUUID(), {
    charge: { virtualKeyId },
    span: { attributes: { finishReason } },
  })
  t.same(read(record), whole(record))
  t.ok(recordJson(record).length * 2 < JSON.stringify(whole(record)).length)
})

t.test('every field of a charge and a span comes back, whatever it is', async t => {
  const uuid = randomUUID()
  const tokens = { input: 1, cacheRead: 0, cacheWrite: 3, output: 4 }
  const charges: Partial<CallRecord['charge']>[] = [
    { virtualKeyId: uuid, promptVersionId: uuid, provider: 'anthropic', tokens },
    { estimated: true, cached: true, priced: false, costNano: 0 },
    { cached: true, costNano: 5 },
    { priced: false, costNano: 0 },
  ]
  const spans: Partial<NonNullable<CallRecord['span']>>[] = [
    {},
    { parentSpanId: 'p', name: 'mine', status: 'error', errorType: 'provider_error', errorCode: 'http_500' },
    { tokens: null, costNano: null, promptVersionId: null, provider: 'google', model: 'other', teamId: uuid },
    { tokens, costNano: 0, promptVersionId: uuid, spanId: 's', startTimeMs: 1.5, endTimeMs: 2.25 },
    { payload: { input: [{ role: 'user', content: 'x' }], output: null, variables: null }, attributes: {} },
    { attributes: { retries: 1, tags: ['a'], metadata: { b: null }, ledgerBypassed: true, cached: 'mine' } },
  ]
  const traces = [
    {},
    { name: 'n', tags: ['a', ''], metadata: { c: [] } },
    { nameIfUnset: '', sessionId: 's', tags: [] },
  ]
  for (const charge of charges)
    for (const span of spans)
      for (const trace of traces) {
        const record = callRecord(uuid, { charge, span, trace })
        t.same(read(record), whole(record))
      }
  const { charge } = callRecord(uuid)
  t.same(read({ charge, span: null }), { charge, span: null })
})

t.test('every instant comes back to the digit', async t => {
  const now = 1_763_700_000_000
  const instants = [
    now,
    now + 1,
    now + 99,
    now + 999,
    now + 1000,
    0,
    7,
    999,
    1000,
    -1,
    0.5,
    now + 0.25,
    2 ** 53 - 1,
  ]
  for (const instant of [...instants, ...instants.reverse()]) {
    const record = callRecord('team', {
      charge: { admittedAtMs: instant },
      span: { startTimeMs: instant, endTimeMs: instant },
    })
    t.same(read(record), whole(record))
  }
})

t.test('no text breaks out of its place', async t => {
  for (const text of NASTY) {
    const record = callRecord(text, {
      charge: {
        model: text,
        upstreamModel: text,
        virtualKeyId: text,
        promptVersionId: text,
      },
      span: {
        parentSpanId: text,
        name: text,
        errorCode: text,
        attributes: { finishReason: text, tags: [text] },
      },
      trace: {
        name: text,
        nameIfUnset: text,
        sessionId: text,
        tags: [text],
        metadata: { [text]: text },
      },
    })
    const json = recordJson(record)
    t.notOk(json.includes('\n'), 'and none ends the line')
    t.same(wholeRecord(JSON.parse(json)), whole(record))
  }
})

t.test('a record of an earlier version, which says everything, is read as it stands', async t => {
  const record = callRecord(randomUUID(), { charge: { virtualKeyId: randomUUID(), cached: true } })
  const said = whole({ ...record, span: { ...record.span, tokens: null, costNano: null, name: 'own' } })
  t.same(wholeRecord(JSON.parse(JSON.stringify(said))), said)
  t.same(wholeRecord({ charge: said.charge, span: null }), { charge: said.charge, span: null })
})

t.test('what is no record comes out unchanged, to be refused', async t => {
  for (const junk of [null, 1, 'x', [], {}, { charge: null }, { charge: [], span: {} }])
    t.same(wholeRecord(junk), junk)
})
