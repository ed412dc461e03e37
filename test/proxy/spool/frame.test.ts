import t from 'tap'
import { createFrameWriter, HEADER_BYTES, linesOf, takeBatch } from '../../../proxy/spool/frame.js'

const LIMITS = { records: 500, recordBytes: 4 * 1024 * 1024 }
const records = (count: number) => Array.from({ length: count }, (_, n) => JSON.stringify({ n, text: 'ü\n' }))
const textsOf = (body: Buffer) => linesOf(body).map(String)

/** Frames as they stand in a segment, one behind the other: each write reuses the writer's buffer. */
function segment(...turns: string[][]): Buffer {
  const writer = createFrameWriter()
  return Buffer.concat(turns.map(turn => Buffer.from(writer.turn(turn, 5) ?? [])))
}

t.test('the records of a turn share one frame, and come back as a line each', async t => {
  const turn = records(20)
  const bytes = segment(turn)
  t.equal(bytes.length, HEADER_BYTES + Buffer.byteLength(turn.join('\n')))
  const batch = takeBatch(bytes, true, LIMITS)
  t.same(textsOf(batch.body), turn)
  t.match(batch, { records: 20, consumed: HEADER_BYTES + Buffer.byteLength(turn.join('\n')), lastAtMs: 5 })
})

t.test('more records than a frame can count take several', async t => {
  const turn = records(600)
  const bytes = segment(turn)
  const first = takeBatch(Buffer.from(bytes), true, LIMITS)
  const second = takeBatch(bytes.subarray(first.consumed), true, LIMITS)
  t.ok(first.records <= LIMITS.records && second.records <= LIMITS.records)
  t.same([...textsOf(first.body), ...textsOf(second.body)], turn)
  t.equal(first.consumed + second.consumed, bytes.length)
})

t.test('a batch ends before the frame that would make it too many records', async t => {
  const batch = takeBatch(segment(records(200), records(200), records(200)), true, LIMITS)
  t.match(batch, { records: 400, broken: false })
})

t.test('a frame with a record that has no JSON, or too large for the buffer, is not written', async t => {
  const writer = createFrameWriter()
  t.equal(writer.turn(['{}', null], 5), null)
  t.equal(writer.turn(['x'.repeat(100_000)], 5), null)
})

t.test('a frame of an earlier version, which is of one record, is read as it stands', async t => {
  const json = '{"charge":{}}'
  const bytes = Buffer.alloc(HEADER_BYTES + json.length)
  bytes.writeUInt32LE(json.length, 0)
  // As computed by that version.
  bytes.writeUInt32LE(0x64fc1adc, 4)
  bytes.writeDoubleLE(1_700_000_000_000, 8)
  bytes.write(json, HEADER_BYTES)
  const batch = takeBatch(bytes, true, LIMITS)
  t.match(batch, { records: 1, broken: false, lastAtMs: 1_700_000_000_000 })
  t.same(textsOf(batch.body), [json])
})
