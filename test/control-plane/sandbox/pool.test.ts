import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { createSandbox } from '../../../control-plane/sandbox/create-sandbox.js'

const honest = 'function transform(x) { return x }'
/** One built-in that only the wall clock ends. */
const hanging = "function transform() { return new Array(1e9) + '' }"

test('a job that outstays the wall clock ends there and its worker is replaced', async t => {
  const sandbox = createSandbox({ size: 1 })
  t.teardown(() => sandbox.close())
  await sandbox.runTransform(honest, 1)
  for (let round = 0; round < 3; round++) {
    const from = performance.now()
    t.match(await sandbox.runTransform(hanging, 1), {
      ok: false,
      message: /^It ran longer than (50|150) ms\.$/,
    })
    t.ok(performance.now() - from < 5_000)
  }
  const generous = createSandbox({ size: 1, wallMs: 10_000 })
  t.teardown(() => generous.close())
  t.same(await generous.runTransform(honest, 1), { ok: true, value: 1 })
})

test('jobs of one team wait in order, and another team’s comes after the one at work', async t => {
  const sandbox = createSandbox({ size: 1, wallMs: 10_000, interruptMs: 10_000 })
  t.teardown(() => sandbox.close())
  const order: string[] = []
  const run = async (name: string, team: string) => {
    await sandbox.runTransform(
      'function transform(x) { for (let i = 0; i < 3e5; i++); return x }',
      name,
      team,
    )
    order.push(name)
  }
  await Promise.all([run('a1', 'a'), run('a2', 'a'), run('a3', 'a'), run('a4', 'a'), run('b1', 'b')])
  t.same(order, ['a1', 'b1', 'a2', 'a3', 'a4'])
})

test('above the bound jobs are refused at once, per team and in all; then there is room again', async t => {
  const sandbox = createSandbox({ size: 1, waitingPerTeam: 3, waitingMax: 5, wallMs: 10_000 })
  t.teardown(() => sandbox.close())
  const refused = { code: 'UNAVAILABLE', status: 503, headers: { 'retry-after': '1' } }
  // The worker is still starting: everything waits.
  const accepted = [1, 2, 3].map(n => sandbox.runTransform(honest, n, 'a'))
  await t.rejects(sandbox.runTransform(honest, 4, 'a'), refused)
  accepted.push(sandbox.runTransform(honest, 5, 'b'), sandbox.runTransform(honest, 6, 'b'))
  await t.rejects(sandbox.runTransform(honest, 7, 'b'), refused)
  const verdicts = await Promise.all(accepted)
  t.ok(verdicts.every(verdict => verdict.ok))
  t.same(await sandbox.runTransform(honest, 8, 'a'), { ok: true, value: 8 })
})

test('teams that fill the queue keep no other team out: it gets its turn among them', async t => {
  const sandbox = createSandbox({ size: 1, waitingPerTeam: 3, waitingMax: 6, wallMs: 10_000 })
  t.teardown(() => sandbox.close())
  const order: string[] = []
  const run = async (name: string) => {
    await sandbox.runTransform(honest, 1, name.slice(0, 1))
    order.push(name)
  }
  await Promise.all(['a1', 'a2', 'a3', 'b1', 'b2', 'b3', 'c1'].map(run))
  t.same(order, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'b3'])
})

test('no thread is started before it is needed, and none keeps a process alive', async t => {
  const unused = createSandbox()
  await unused.close()
  const sandbox = createSandbox({ size: 2, wallMs: 10_000 })
  await Promise.all(Array.from({ length: 20 }, (_, n) => sandbox.runTransform(honest, n)))
  // Left open on purpose: this file's process has to end by itself.
  t.pass()
})

test('a closed sandbox refuses, and what waited is refused with it', async t => {
  const sandbox = createSandbox({ size: 1, wallMs: 10_000, interruptMs: 10_000 })
  await sandbox.runTransform(honest, 1)
  const atWork = sandbox.runTransform('function transform() { for (;;) {} }', 1)
  const waiting = sandbox.runTransform(honest, 1)
  await pause(20)
  const closing = sandbox.close()
  await t.rejects(waiting, { code: 'UNAVAILABLE' })
  t.same(await atWork, { ok: false, message: 'The sandbox is being closed.' })
  await closing
  await t.rejects(sandbox.runTransform(honest, 1), { code: 'UNAVAILABLE' })
})
