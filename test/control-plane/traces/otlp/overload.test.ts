import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createIngestGate, type GateLimits } from '../../../../control-plane/traces/ingest-gate.js'

const limits: GateLimits = { requests: 3, bytes: 1000, workers: 1, waitMs: 50 }
const busy = { code: 'UNAVAILABLE', status: 503, headers: { 'retry-after': '2' } }

t.test('more requests than there is room for are refused until one leaves', async t => {
  const gate = createIngestGate(limits)
  const visits = [gate.enter(1), gate.enter(1), gate.enter(1)]
  t.throws(() => gate.enter(1), busy)
  visits[0]?.leave()
  visits[0]?.leave()
  gate.enter(1)
  t.throws(() => gate.enter(1), busy, 'a visitor leaves once')
})

t.test('more bytes than there is room for are refused, declared or as they come', async t => {
  const gate = createIngestGate(limits)
  const first = gate.enter(600)
  t.throws(() => gate.enter(401), busy)
  const second = gate.enter(0)
  second.grow(400)
  t.throws(() => second.grow(1), busy)
  second.leave()
  first.leave()
  t.doesNotThrow(() => gate.enter(5000).leave(), 'one large body alone passes')
})

t.test('a task that waited too long is refused when its turn comes, and the next one runs', async t => {
  const gate = createIngestGate(limits)
  let finish = () => {}
  const slow = gate.work(() => new Promise<void>(resolve => (finish = resolve)))
  const late = gate.work(async () => 'ran')
  await sleep(limits.waitMs + 10)
  const inTime = gate.work(async () => 'ran')
  finish()
  await t.rejects(late, busy)
  t.equal(await inTime, 'ran')
  await slow
  await t.rejects(
    gate.work(() => Promise.reject(new Error('its own'))),
    { message: 'its own' },
  )
  t.equal(await gate.work(async () => 'free again'), 'free again')
})
