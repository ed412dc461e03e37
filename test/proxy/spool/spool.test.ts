import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { localDisk } from '../../../proxy/spool/disk.js'
import { retryDelay } from '../../../proxy/spool/ship.js'
import { callRecord } from '../../support/call-records.js'
import { away, createSink, linesOf, temporaryDirectory, testSpool, until } from '../../support/spool.js'

const some = (count: number) => Array.from({ length: count }, () => callRecord('team'))
const idsOf = (records: ReturnType<typeof some>) => records.map(record => record.charge.requestId)
const filesIn = (dir: string) => readdirSync(dir, { recursive: true, encoding: 'utf8' })

t.test('a record is on disk when append returns', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  sink.answer = away
  const { spool } = testSpool(t, dir, sink)
  const record = callRecord('team')
  spool.append(record)
  const [segment = ''] = filesIn(dir).filter(name => name.endsWith('.seg'))
  t.match(readFileSync(join(dir, segment), 'utf8'), record.charge.requestId)
  t.ok(spool.bytes > 0)
})

t.test(
  'a prompt nested deeper than can be written costs its payload, never a charge or the process',
  async t => {
    const [dir, sink] = [temporaryDirectory(t), createSink()]
    const { spool } = testSpool(t, dir, sink)
    const input: unknown = JSON.parse('['.repeat(200_000) + ']'.repeat(200_000))
    const deep = () => callRecord('team', { span: { payload: { input, output: null, variables: null } } })
    const records = [deep(), callRecord('team'), deep()]
    for (const record of records) spool.appendWithTurn(record, error => t.equal(error, null))
    t.ok(await spool.flush(5_000))
    spool.append(deep())
    t.ok(await spool.flush(5_000))
    t.same(sink.ids().slice(0, 3), idsOf(records))
    t.same(
      sink.records.map(record => record.span?.payload),
      [null, null, null, null],
    )
  },
)

t.test('the records of a turn are on disk together when the turn has ended, in order', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  let writes = 0
  const disk = {
    ...localDisk,
    write(fd: number, bytes: Uint8Array) {
      writes++
      return localDisk.write(fd, bytes)
    },
  }
  const { spool } = testSpool(t, dir, sink, { disk })
  const records = some(20)
  const told: string[] = []
  for (const record of records) {
    spool.appendWithTurn(record, error => {
      t.equal(error, null)
      t.ok(spool.bytes > 0)
      told.push(record.charge.requestId)
    })
  }
  t.same(told, [], 'nobody is told before the write')
  await until('told', () => told.length === records.length)
  t.equal(writes, 1)
  t.same(told, idsOf(records))
  await until('shipped', () => spool.bytes === 0)
  t.same(sink.records, records)
})

t.test('a turn that ends with the spool’s closing is written first', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const { spool } = testSpool(t, dir, sink)
  const record = callRecord('team')
  let done = false
  spool.appendWithTurn(record, () => {
    done = true
  })
  t.ok(await spool.flush(5_000))
  t.ok(done)
  t.same(sink.records, [record])
})

t.test('a lone record ships soon, a burst in batches of at most 500', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const { spool } = testSpool(t, dir, sink)
  const startedAt = performance.now()
  spool.append(callRecord('team'))
  await until('shipped', () => sink.records.length === 1)
  t.ok(performance.now() - startedAt < 1_000)
  const burst = some(1200)
  for (const record of burst) spool.append(record)
  await until('shipped', () => spool.bytes === 0)
  t.same(sink.ids().slice(1), idsOf(burst), 'all of them, once, in order')
  t.ok(Math.max(...sink.batches) <= 500)
  t.equal(spool.lagMs, 0)
})

t.test('records that come slowly are collected for 200 ms', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const { spool } = testSpool(t, dir, sink)
  for (let index = 0; index < 50; index++) {
    spool.append(callRecord('team'))
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  await until('shipped', () => sink.records.length === 50)
  t.ok(sink.batches.length <= 6, `${sink.batches.length} batches in half a second`)
})

t.test('while the control plane is down records wait, and ship when it is back', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const up = sink.answer
  sink.answer = away
  const { spool, metrics, count } = testSpool(t, dir, sink)
  const records = some(700)
  for (const record of records) spool.append(record)
  await until('tried', () => spool.lagMs > 150)
  t.ok((await count(metrics.retries)) > 0)
  t.equal(sink.records.length, 0)
  sink.answer = up
  await until('shipped', () => spool.bytes === 0)
  t.same(sink.ids(), idsOf(records))
})

t.test('retries back off from 100 ms to 30 s, with jitter', async t => {
  const delays = Array.from({ length: 40 }, (_, failures) => retryDelay(failures))
  t.ok((delays[0] ?? 0) >= 50 && (delays[0] ?? 0) <= 100)
  t.ok(delays.slice(12).every(delay => delay >= 15_000 && delay <= 30_000))
  t.ok(new Set(delays.slice(12)).size > 20)
})

t.test(
  'a restart ships what the last process left, a batch in flight again with the same records',
  async t => {
    const [dir, sink] = [temporaryDirectory(t), createSink()]
    const records = some(3)
    const committedUnseen: string[] = []
    sink.answer = batch => {
      committedUnseen.push(...batch.map(record => record.charge.requestId))
      return away()
    }
    const first = testSpool(t, dir, sink)
    for (const record of records) first.spool.append(record)
    await until('sent', () => committedUnseen.length >= 3)
    await first.spool.close(0)

    const second = createSink()
    const { spool } = testSpool(t, dir, second)
    await until('shipped', () => second.records.length === 3 && spool.bytes === 0)
    t.same(second.records, records, 'the same records, unchanged')
    t.same(new Set(second.ids()), new Set(committedUnseen))
  },
)

t.test('acknowledged records are not sent again after a restart', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const first = testSpool(t, dir, sink)
  first.spool.append(callRecord('team'))
  await until('shipped', () => first.spool.bytes === 0)
  sink.answer = away
  const left = callRecord('team')
  first.spool.append(left)
  await first.spool.close(0)
  const second = createSink()
  const { spool } = testSpool(t, dir, second)
  await until('shipped', () => spool.bytes === 0)
  t.same(second.ids(), [left.charge.requestId])
})

t.test('close ships what waits and leaves nothing on disk', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const { spool } = testSpool(t, dir, sink)
  for (const record of some(10)) spool.append(record)
  await spool.close()
  t.equal(sink.records.length, 10)
  t.same(filesIn(dir), [])
})

t.test('a torn tail is cut, everything before it ships, and the damage is counted and kept', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const records = some(5)
  const segment = await leaveSegment(t, dir, records)
  appendFileSync(segment, readFileSync(segment).subarray(0, 200))
  const { spool, metrics, count } = testSpool(t, dir, sink)
  await until('shipped', () => spool.bytes === 0)
  t.same(sink.ids(), idsOf(records))
  t.equal(await count(metrics.corrupt), 1)
  t.equal(readdirSync(join(dir, 'dead')).length, 1)
})

t.test('an altered record ends its segment: what is before it ships, nothing altered does', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const records = some(4)
  const segment = await leaveSegment(t, dir, records)
  const bytes = readFileSync(segment)
  const third = bytes.indexOf(records[2]?.charge.requestId ?? '')
  bytes.writeUInt8(bytes.readUInt8(third) ^ 1, third)
  writeFileSync(segment, bytes)
  const { spool, metrics, count } = testSpool(t, dir, sink)
  await until('shipped', () => spool.bytes === 0)
  t.same(sink.ids(), idsOf(records.slice(0, 2)))
  t.equal(await count(metrics.corrupt), 1)
})

t.test('garbage in place of a length is damage, not a record of gigabytes', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const segment = await leaveSegment(t, dir, some(1))
  appendFileSync(segment, Buffer.alloc(2 * 1024 * 1024, 0xfe))
  const { spool } = testSpool(t, dir, sink)
  await until('cut', () => spool.bytes === 0)
  t.equal(sink.records.length, 1)
})

t.test('a large record travels alone; one above 4 MB loses its payload, not its charge', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const { spool, metrics, registry } = testSpool(t, dir, sink)
  const withPayload = (bytes: number) =>
    callRecord('team', { span: { payload: { input: 'é'.repeat(bytes / 2), output: null, variables: null } } })
  const records = [callRecord('team'), withPayload(3e6), callRecord('team'), withPayload(5e6)]
  for (const record of records) spool.append(record)
  await until('shipped', () => spool.bytes === 0)
  t.same(sink.ids(), idsOf(records))
  t.same(sink.records[1], records[1])
  t.equal(sink.records[3]?.span?.payload, null)
  t.ok(metrics.droppedPayloads)
  t.match(await registry.metrics(), /agh_spool_dropped_total\{kind="payload"\} 1/)
})

t.test('records that the control plane refuses are set aside, the others of their batch pass', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const records = some(60)
  const bad = [3, 4, 31, 59].map(index => records[index]?.charge.requestId)
  sink.answer = batch =>
    batch.some(record => bad.includes(record.charge.requestId))
      ? { kind: 'refused', status: 400 }
      : { kind: 'committed', rejected: 0 }
  const { spool, metrics, count } = testSpool(t, dir, sink)
  for (const record of records) spool.append(record)
  await until('shipped', () => spool.bytes === 0)
  const passed = idsOf(records).filter(id => !bad.includes(id))
  t.same([...sink.ids()].sort(), passed.sort())
  t.equal(await count(metrics.quarantined), 4)
  const [kept = ''] = readdirSync(join(dir, 'dead'))
  const set = linesOf(readFileSync(join(dir, 'dead', kept), 'utf8')) as ReturnType<typeof some>
  t.same(idsOf(set).sort(), [...bad].sort())
})

t.test('full segments are replaced, and deleted once committed', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const up = sink.answer
  sink.answer = away
  const { spool } = testSpool(t, dir, sink, { segmentBytes: 10_000 })
  const records = some(100)
  for (const record of records) spool.append(record)
  t.ok(filesIn(dir).filter(name => name.endsWith('.seg')).length >= 4)
  sink.answer = up
  t.ok(await spool.flush(5_000))
  t.same([...sink.ids()].sort(), idsOf(records).sort())
  await until('deleted', () => filesIn(dir).filter(name => name.endsWith('.seg')).length === 1)
})

t.test('fresh records do not queue behind a long backlog', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  await leaveSegment(t, dir, some(2_000))
  sink.answer = async batch => {
    await new Promise(resolve => setTimeout(resolve, 100))
    return { kind: 'committed', rejected: batch.length * 0 }
  }
  const { spool } = testSpool(t, dir, sink)
  const fresh = callRecord('team')
  spool.append(fresh)
  await until('shipped', () => sink.ids().includes(fresh.charge.requestId))
  t.ok(sink.records.length < 2_000, 'before the backlog was through')
  await until('all', () => spool.bytes === 0)
})

t.test('the directory of a live process is not touched, that of a dead one is taken over', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  sink.answer = away
  const live = testSpool(t, dir, sink)
  live.spool.append(callRecord('team'))
  const other = createSink()
  const { spool, metrics, count } = testSpool(t, dir, other)
  t.equal(spool.bytes, 0)
  t.equal(await count(metrics.adopted), 0)
  t.ok(existsSync(dir))
})

t.test('a reused process id does not pass for the old owner', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const records = some(2)
  const segment = await leaveSegment(t, dir, records)
  const lock = { ...ownLock(t), started: '12345' }
  writeFileSync(join(segment, '..', 'lock'), JSON.stringify(lock))
  const { spool } = testSpool(t, dir, sink)
  await until('shipped', () => sink.records.length === 2 && spool.bytes === 0)
})

t.test('an owner on another machine is left alone until its lease has run out', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const segment = await leaveSegment(t, dir, some(1))
  writeFileSync(join(segment, '..', 'lock'), JSON.stringify({ ...ownLock(t), host: 'elsewhere' }))
  const { spool } = testSpool(t, dir, sink)
  t.equal(spool.bytes, 0)
  t.ok(existsSync(segment))
})

/** Leaves a segment as a process does that was stopped while the control plane was away. */
async function leaveSegment(t: Test, dir: string, records: ReturnType<typeof some>): Promise<string> {
  const sink = createSink()
  sink.answer = away
  const { spool } = testSpool(t, dir, sink)
  for (const record of records) spool.append(record)
  await spool.close(0)
  return join(dir, filesIn(dir).find(name => name.endsWith('.seg')) ?? '')
}

/** What this process writes into its lock. */
function ownLock(t: Test): Record<string, unknown> {
  const dir = join(temporaryDirectory(t), 'x')
  mkdirSync(dir)
  testSpool(t, dir, createSink())
  const lock = filesIn(dir).find(name => name.endsWith('lock')) ?? ''
  return JSON.parse(readFileSync(join(dir, lock), 'utf8')) as Record<string, unknown>
}
