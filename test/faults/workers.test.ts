/** Several proxy processes on one port: what the death of one of them, or of their supervisor, leaves behind. */
import { spawn, spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { freePort } from '../../bin/ports.js'
import { TEST_SECRET } from '../support/control-plane.js'
import { engines } from '../support/engines.js'
import { addVirtualKey } from '../support/gateway-team.js'
import { testRedis } from '../support/redis.js'
import { temporaryDirectory } from '../support/spool.js'
import { grouped, readEntries } from './books.js'
import { drained, LOOSE_ENDS, until } from './gauges.js'
import { startLoad, tally } from './load.js'
import { isAlive } from './mortal-postgres.js'
import { chance } from './random.js'
import { MODEL, scene } from './scene.js'

const CALLERS = 16

function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
  return stdout.split('\n').filter(Boolean).map(Number)
}

test('a worker that is killed under load loses no charge: what it left is taken over', async t => {
  const redis = testRedis(t)
  if (redis === null) return
  const luck = chance()
  t.comment(`TEST_SEED=${luck.seed}`)
  const { system, team, client, sql } = await scene(t, { redisUrl: redis.url, env: { PROXY_WORKERS: '2' } })
  const { key } = await addVirtualKey(system, team)
  const load = startLoad(client, CALLERS, number => {
    const content = `[fault headDelay=${luck.between(5, 50)} chunkDelay=3]`
    return { key, model: MODEL, content, stream: number % 2 === 0 }
  })
  t.teardown(() => load.stop())
  const workers = () => childrenOf(system.proxy.pid)
  let cutAtMost = 0
  for (let round = 0; round < 3; round++) {
    const alive = await until('two workers', 20_000, workers, pids => pids.length === 2)
    const [victim = 0] = luck.shuffled(alive)
    // The new one should listen by then: on a busy machine nobody may for a moment, whose calls are unreached, not cut.
    await sleep(luck.between(1_500, 2_500))
    cutAtMost += load.live.size
    process.kill(victim, 'SIGKILL')
    await until(
      'its death',
      5_000,
      () => isAlive(victim),
      alive => !alive,
    )
  }
  await sleep(500)
  await load.stop()
  await drained(system)

  const complete = load.calls.filter(call => call.outcome === 'complete')
  const booked = async () => grouped(await readEntries(sql), entry => entry.token)
  const areIn = (charges: Awaited<ReturnType<typeof booked>>) =>
    complete.every(call => charges.has(call.token))
  // The living look for what the dead left every ten seconds, and when they start.
  const charges = await until('all charges', 15_000, booked, areIn)
  const cut = load.calls.filter(call => call.outcome !== 'complete' && call.outcome !== 'unreached')
  t.comment(`${tally(load.calls)}; ${cutAtMost} in flight at the kills`)
  t.ok(complete.length > 200)
  t.ok(
    complete.every(call => charges.get(call.token)?.length === 1),
    'every complete answer is charged once',
  )
  t.ok(
    [...charges.values()].every(rows => rows.length === 1),
    'and nothing twice',
  )
  t.ok(cut.length <= cutAtMost, `at most the calls in flight were cut: ${cut.length}`)
  t.notMatch(system.proxy.output(), LOOSE_ENDS)
  t.equal(await system.proxy.end('SIGTERM'), 0)
})

for (const engine of engines) {
  test(`workers end with their supervisor, even when it is killed while they start: ${engine}`, async t => {
    const entry = fileURLToPath(new URL('../../proxy/main.js', import.meta.url))
    const nowhere = `127.0.0.1:${await freePort()}`
    const env = {
      PATH: process.env.PATH ?? '',
      AGH_SECRET: TEST_SECRET,
      DATA_DIR: temporaryDirectory(t),
      PORT: String(await freePort()),
      PROXY_WORKERS: '2',
      PROXY_HTTP: engine,
      // Not there: workers wait a second for it, so that the kill comes while they start.
      REDIS_URL: `redis://${nowhere}`,
    }
    const supervisor = spawn(process.execPath, [entry], { env, stdio: 'ignore' })
    const pid = supervisor.pid ?? 0
    const workers = await until(
      'two workers',
      20_000,
      () => childrenOf(pid),
      pids => pids.length === 2,
    )
    await sleep(300)
    supervisor.kill('SIGKILL')
    await until(
      'the end of the workers',
      15_000,
      () => workers.filter(isAlive),
      left => left.length === 0,
    )
    t.pass('they are gone')
  })
}
