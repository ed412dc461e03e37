import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { createSink, temporaryDirectory, testSpool, until } from '../../support/spool.js'

const APPENDER = fileURLToPath(new URL('../../support/spool-appender.js', import.meta.url))

interface Appender {
  child: ChildProcess
  /** Ids of records whose append had returned, as far as they were reported. */
  reported: string[]
  died: Promise<void>
}

function startAppender(t: Test, dir: string): Appender {
  const child = spawn(process.execPath, [APPENDER, dir], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const reported: string[] = []
  let rest = ''
  child.stdout?.on('data', piece => {
    const lines = (rest + String(piece)).split('\n')
    rest = lines.pop() ?? ''
    reported.push(...lines)
  })
  return { child, reported, died: new Promise(resolve => child.once('close', () => resolve())) }
}

t.test('kill -9 at any moment loses no record whose append had returned, and tears none', async t => {
  for (let round = 0; round < 5; round++) {
    const dir = temporaryDirectory(t)
    const appender = startAppender(t, dir)
    await until('it appends', () => appender.reported.length > 0, 20_000)
    await new Promise(resolve => setTimeout(resolve, Math.random() * 200))
    appender.child.kill('SIGKILL')
    await appender.died

    const sink = createSink()
    const { spool, metrics, count } = testSpool(t, dir, sink)
    t.ok(await spool.flush(20_000))
    const onDisk = new Set(sink.ids())
    const lost = appender.reported.filter(id => !onDisk.has(id))
    t.same(lost, [], `${appender.reported.length} reported, ${onDisk.size} on disk`)
    t.equal(onDisk.size, sink.ids().length, 'none twice')
    t.ok(
      onDisk.size - appender.reported.length <= 20,
      'at most the one whose report was cut off, and its turn',
    )
    t.equal(await count(metrics.corrupt), 0)
    await spool.close()
  }
})

t.test('of several processes that start at once, one takes over what a dead one left', async t => {
  const dir = temporaryDirectory(t)
  const appender = startAppender(t, dir)
  await until('it appends', () => appender.reported.length > 100, 20_000)
  appender.child.kill('SIGKILL')
  await appender.died
  const sink = createSink()
  const spools = [1, 2, 3].map(() => testSpool(t, dir, sink).spool)
  for (const spool of spools) t.ok(await spool.flush(20_000))
  t.equal(new Set(sink.ids()).size, sink.ids().length, 'shipped once')
  t.same(
    appender.reported.filter(id => !sink.ids().includes(id)),
    [],
  )
})

t.test('a chain of crashes leaves no chain of directories', async t => {
  const dir = temporaryDirectory(t)
  const reported: string[] = []
  for (let round = 0; round < 3; round++) {
    const appender = startAppender(t, dir)
    await until('it appends', () => appender.reported.length > 0, 20_000)
    appender.child.kill('SIGKILL')
    await appender.died
    reported.push(...appender.reported)
  }
  t.equal(readdirSync(dir).length, 1, 'each took over the one before')
  const sink = createSink()
  const { spool } = testSpool(t, dir, sink)
  t.ok(await spool.flush(20_000))
  t.same(
    reported.filter(id => !sink.ids().includes(id)),
    [],
  )
})

t.test('a live process is not robbed, whatever starts beside it', async t => {
  const dir = temporaryDirectory(t)
  const appender = startAppender(t, dir)
  await until('it appends', () => appender.reported.length > 0, 20_000)
  const sink = createSink()
  const { spool } = testSpool(t, dir, sink)
  t.equal(spool.bytes, 0)
  const before = appender.reported.length
  await until('it goes on', () => appender.reported.length > before)
  appender.child.kill('SIGKILL')
  await appender.died
})
