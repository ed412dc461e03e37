import { execFileSync } from 'node:child_process'
import t, { type Test } from 'tap'
import { type Disk, localDisk } from '../../../proxy/spool/disk.js'
import { SpoolFull } from '../../../proxy/spool/spool.js'
import { callRecord } from '../../support/call-records.js'
import { away, createSink, temporaryDirectory, testSpool, until } from '../../support/spool.js'

const PAYLOAD = 2_000
const record = (name = 'chat fast') =>
  callRecord('team', {
    span: { name, payload: { input: 'x'.repeat(PAYLOAD), output: null, variables: null } },
  })

const failure = (code: string) => Object.assign(new Error(code), { code })

/** A disk on which `allow` decides about every write: bytes that it takes before it fails with `code`. */
const failingDisk = (allow: (wanted: number) => number, code: string): Disk => ({
  ...localDisk,
  write(fd, bytes) {
    const taken = Math.min(allow(bytes.length), bytes.length)
    if (taken <= 0) throw failure(code)
    return localDisk.write(fd, bytes.subarray(0, taken))
  },
})

t.test('at the bound payloads go first, then spans, never charges', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const up = sink.answer
  sink.answer = away
  const { spool, registry } = testSpool(t, dir, sink, { maxBytes: 100_000 })
  const records = Array.from({ length: 300 }, () => record())
  for (const each of records) spool.append(each)
  sink.answer = up
  t.ok(await spool.flush(10_000))
  t.same(sink.ids().sort(), records.map(each => each.charge.requestId).sort(), 'every charge')
  const kind = sink.records.map(({ span }) =>
    span === null ? 'charge' : span.payload === null ? 'span' : 'whole',
  )
  const order = kind.filter((each, index) => each !== kind[index - 1])
  t.same(order, ['whole', 'span', 'charge'])
  const [spans, charges] = ['span', 'charge'].map(each => kind.filter(other => other === each).length)
  const text = await registry.metrics()
  t.match(text, `agh_spool_dropped_total{kind="payload"} ${(spans ?? 0) + (charges ?? 0)}`)
  t.match(text, `agh_spool_dropped_total{kind="span"} ${charges}`)
  spool.append(record())
  t.ok(await spool.flush(10_000))
  t.not(sink.records.at(-1)?.span?.payload, null, 'and everything again when there is room')
})

t.test('below the floor of free disk new calls are refused and charges are still written', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  let free = 1e6
  const disk = { ...localDisk, freeBytes: async () => free }
  const { spool } = testSpool(t, dir, sink, { disk, minFreeBytes: 1000 })
  t.notOk(spool.full)
  free = 10
  await until('noticed', () => spool.full)
  spool.append(record())
  t.ok(await spool.flush(5_000))
  t.equal(sink.records[0]?.span, null)
  free = 1e6
  await until('noticed', () => !spool.full)
})

t.test('a full disk costs payload and span of a record before it costs the record', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const disk = failingDisk(wanted => (wanted > 400 ? 0 : wanted), 'ENOSPC')
  const { spool } = testSpool(t, dir, sink, { disk })
  const kept = record()
  spool.append(kept)
  t.ok(spool.full, 'and new calls are refused from then on')
  t.ok(await spool.flush(5_000))
  t.same(sink.records, [{ charge: kept.charge, span: null }])
})

t.test('a disk that takes nothing is SpoolFull, and a half-written record does not stay', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  let room = Number.POSITIVE_INFINITY
  const disk = failingDisk(wanted => {
    const taken = Math.min(room, wanted)
    room -= taken
    return taken
  }, 'ENOSPC')
  const { spool, metrics, count } = testSpool(t, dir, sink, { disk })
  const before = record()
  spool.append(before)
  room = 100
  t.throws(() => spool.append(record()), SpoolFull)
  room = Number.POSITIVE_INFINITY
  const after = record()
  spool.append(after)
  t.ok(await spool.flush(5_000))
  t.same(sink.ids(), [before.charge.requestId, after.charge.requestId])
  t.equal(await count(metrics.corrupt), 0)
})

t.test('a turn that the disk takes only in part keeps what fits, and says which does not', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  let room = Number.POSITIVE_INFINITY
  const disk = failingDisk(wanted => {
    const taken = Math.min(room, wanted)
    room -= taken
    return taken
  }, 'ENOSPC')
  const { spool } = testSpool(t, dir, sink, { disk })
  room = 2_500
  const outcomes: boolean[] = []
  for (let count = 0; count < 6; count++)
    spool.appendWithTurn(record(), error => outcomes.push(error === null))
  await new Promise(resolve => setTimeout(resolve, 20))
  t.equal(outcomes.length, 6)
  t.ok(outcomes.includes(false), 'somebody was told')
  room = Number.POSITIVE_INFINITY
  t.ok(await spool.flush(5_000))
  t.equal(sink.records.length, outcomes.filter(Boolean).length)
})

t.test('a write error moves on to a new segment, and the record is kept', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  let failures = 1
  const disk = failingDisk(wanted => (failures-- > 0 ? 0 : wanted), 'EIO')
  const { spool, metrics, count } = testSpool(t, dir, sink, { disk })
  const kept = record()
  spool.append(kept)
  t.ok(await spool.flush(5_000))
  t.same(sink.records, [kept])
  t.equal(await count(metrics.ioErrors), 1)
})

t.test('a write that can be neither finished nor taken back ends its segment', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  let room = Number.POSITIVE_INFINITY
  const disk: Disk = {
    ...failingDisk(wanted => {
      const taken = Math.min(room, wanted)
      room -= taken
      return taken
    }, 'ENOSPC'),
    truncate() {
      throw failure('EIO')
    },
  }
  const { spool } = testSpool(t, dir, sink, { disk })
  const before = record()
  spool.append(before)
  room = 50
  t.throws(() => spool.append(record()), SpoolFull)
  room = Number.POSITIVE_INFINITY
  const after = record()
  spool.append(after)
  t.ok(await spool.flush(5_000))
  t.same(sink.ids().sort(), [before.charge.requestId, after.charge.requestId].sort())
})

t.test('a failed sync is counted and the next records go into a new segment', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  let failures = 1
  const disk: Disk = {
    ...localDisk,
    sync: fd => (failures-- > 0 ? Promise.reject(failure('EIO')) : localDisk.sync(fd)),
  }
  const { spool, metrics } = testSpool(t, dir, sink, { disk })
  spool.append(record())
  await until('noticed', () => failures < 1)
  spool.append(record())
  t.ok(await spool.flush(5_000))
  t.equal(sink.records.length, 2)
  t.ok(metrics.ioErrors)
})

t.test('on a file system that is really full charges go on until the last byte, then SpoolFull', async t => {
  const dir = smallFileSystem(t)
  if (dir === null) {
    t.comment('not root: the injected disks above stand for it')
    return
  }
  const sink = createSink()
  const up = sink.answer
  sink.answer = away
  const { spool } = testSpool(t, dir, sink)
  const appended: string[] = []
  let refused = 0
  for (let index = 0; index < 2_000; index++) {
    const each = record()
    try {
      spool.append(each)
      appended.push(each.charge.requestId)
    } catch (error) {
      t.ok(error instanceof SpoolFull)
      if (++refused > 3) break
    }
  }
  t.ok(refused > 0, `${appended.length} records fitted`)
  t.ok(spool.full)
  sink.answer = up
  t.ok(await spool.flush(10_000))
  t.same(sink.ids().sort(), appended.sort(), 'what was accepted is shipped, whole')
  await until('room again', () => !spool.full)
  spool.append(record())
  t.ok(await spool.flush(5_000))
  await spool.close()
})

/** A tmpfs of 256 KB; null where one cannot be mounted. */
function smallFileSystem(t: Test): string | null {
  const dir = temporaryDirectory(t)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', dir], { stdio: 'ignore' })
  } catch {
    return null
  }
  t.teardown(() => execFileSync('umount', ['-l', dir], { stdio: 'ignore' }))
  return dir
}
