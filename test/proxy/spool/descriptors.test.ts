/** Files that cannot be opened, are no longer this process's, or are closed: where a wrong descriptor would do harm. */
import { readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Disk, localDisk } from '../../../proxy/spool/disk.js'
import { SpoolFull } from '../../../proxy/spool/spool.js'
import { createSyncer } from '../../../proxy/spool/sync.js'
import { callRecord } from '../../support/call-records.js'
import { away, createSink, temporaryDirectory, testSpool, until } from '../../support/spool.js'

const failure = (code: string) => Object.assign(new Error(code), { code })

t.test('a dead process’s segment that cannot be opened at first ships all the same', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const stopped = createSink()
  stopped.answer = away
  const before = testSpool(t, dir, stopped).spool
  for (let count = 0; count < 2; count++) before.append(callRecord('team'))
  await before.close(0)
  let refusals = 1
  const disk: Disk = {
    ...localDisk,
    open(path, flags) {
      if (flags === 'r' && refusals-- > 0) throw failure('EMFILE')
      return localDisk.open(path, flags)
    },
  }
  const { spool } = testSpool(t, dir, sink, { disk })
  t.equal(spool.bytes, 0)
  await until('shipped', () => sink.records.length === 2 && spool.bytes === 0, 15_000)
})

t.test('a lost lease on a full disk: nothing is written to what is closed, and it goes on later', async t => {
  const [dir, sink] = [temporaryDirectory(t), createSink()]
  const [open, strays] = [new Set<number>(), [] as string[]]
  let isFull = false
  const disk: Disk = {
    ...localDisk,
    open(path, flags) {
      if (isFull) throw failure('ENOSPC')
      const fd = localDisk.open(path, flags)
      open.add(fd)
      return fd
    },
    write(fd, bytes) {
      if (!open.has(fd)) strays.push('write')
      return localDisk.write(fd, bytes)
    },
    close(fd) {
      if (!open.delete(fd)) strays.push('close')
      localDisk.close(fd)
    },
  }
  const up = sink.answer
  sink.answer = away
  const { spool } = testSpool(t, dir, sink, { disk })
  spool.append(callRecord('team'))
  const own = readdirSync(dir)[0] ?? ''
  renameSync(join(dir, own), join(dir, '.taken'))
  const now = performance.now.bind(performance)
  t.intercept(performance, 'now', { value: () => now() + 30_000 })

  isFull = true
  t.throws(() => spool.append(callRecord('team')), SpoolFull)
  t.throws(() => spool.append(callRecord('team')), SpoolFull)
  t.same(readdirSync(dir), ['.taken'], 'no directory is left by an attempt')
  isFull = false
  sink.answer = up
  const after = callRecord('team')
  spool.append(after)
  t.ok(await spool.flush(5_000))
  t.same(sink.ids(), [after.charge.requestId])
  t.same(strays, [])
})

t.test('a file that is closed while another one is synced is not synced any more', async t => {
  const synced: number[] = []
  let finish = () => {}
  const disk: Disk = {
    ...localDisk,
    sync(fd) {
      synced.push(fd)
      return new Promise(resolve => {
        finish = resolve
      })
    },
  }
  const syncer = createSyncer(disk, error => t.fail(String(error)))
  syncer.dirty(1)
  syncer.dirty(2)
  await until('the first is synced', () => synced.length === 1)
  syncer.forget(2, () => {})
  finish()
  await syncer.close()
  t.same(synced, [1])
})
