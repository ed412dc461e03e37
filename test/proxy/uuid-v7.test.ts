import { test } from 'tap'
import { uuidV7 } from '../../proxy/uuid-v7.js'

test('ids are UUIDs of version 7 that begin with their moment and never repeat', async t => {
  const before = Date.now()
  const ids = Array.from({ length: 20_000 }, () => uuidV7())
  const after = Date.now()
  for (const id of ids.filter((_, i) => i % 500 === 0)) {
    t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const moment = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
    t.ok(moment >= before && moment <= after)
  }
  t.equal(new Set(ids).size, ids.length)
})

test('every digit behind the version is random, the variant too', async t => {
  const tails = Array.from({ length: 2_000 }, () => uuidV7().slice(15))
  const seen = (at: number) => [...new Set(tails.map(tail => tail[at]))].sort().join('')
  for (let at = 0; at < 21; at++) {
    const expected = at === 3 || at === 8 ? '-' : at === 4 ? '89ab' : '0123456789abcdef'
    t.equal(seen(at), expected)
  }
})
