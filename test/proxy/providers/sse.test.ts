import { test } from 'tap'
import { FrameSplitter, SseReader } from '../../../proxy/providers/sse.js'

const read = (...pieces: string[]) => {
  const reader = new SseReader()
  return [...pieces.flatMap(piece => reader.push(Buffer.from(piece))), ...reader.end()]
}
const data = (...texts: string[]) => texts.map(text => ({ event: '', data: text }))

test('every line end of the standard works, mixed too', async t => {
  for (const end of ['\n', '\r\n', '\r']) {
    t.same(read(`data: a${end}${end}data: b${end}${end}`), data('a', 'b'))
  }
  t.same(read('data: a\r\n\ndata: b\n\r\ndata: c\r\r'), data('a', 'b', 'c'))
})

test('comments, unknown fields, blank lines and a byte order mark are no events', async t => {
  t.same(read('\uFEFFdata: a\n\n: ping\n\nid: 7\nretry: 10\n\n\n\n\ndata: b\n\n'), data('a', 'b'))
})

test('lines of one event are joined, one leading space is not data', async t => {
  t.same(read('event: x\ndata: a\ndata:b\ndata:  c\n\n'), [{ event: 'x', data: 'a\nb\n c' }])
  t.same(read('data\n\ndata:\n\n'), data(''))
})

test('a last event without its blank line counts', async t => {
  t.same(read('data: a\n\ndata: b'), data('a', 'b'))
})

test('a character split between reads stays whole', async t => {
  const bytes = Buffer.from('data: 👋é\n\n')
  for (let at = 1; at < bytes.length; at++) {
    const reader = new SseReader()
    const events = [
      ...reader.push(bytes.subarray(0, at)),
      ...reader.push(bytes.subarray(at)),
      ...reader.end(),
    ]
    t.same(events, data('👋é'))
  }
})

test('any bytes at all are read without a throw, however they are cut', async t => {
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed % below
  }
  const alphabet = ['\n', '\r', '\r\n', 'data:', ' ', 'event:', 'x', ':', '\u00e9', '{}', '\uFEFF']
  for (let round = 0; round < 2000; round++) {
    const text = Array.from({ length: random(12) }, () => alphabet[random(alphabet.length)]).join('')
    const bytes = Buffer.from(text)
    const at = random(bytes.length + 1)
    const reader = new SseReader()
    const cut = [...reader.push(bytes.subarray(0, at)), ...reader.push(bytes.subarray(at)), ...reader.end()]
    const whole = read(text)
    if (JSON.stringify(cut) !== JSON.stringify(whole)) t.same(cut, whole, JSON.stringify([text, at]))
  }
})

test('a piece that ends with a frame is given back as it came', async t => {
  const splitter = new FrameSplitter()
  const piece = Buffer.from('data: a\n\ndata: b\n\n')
  t.equal(splitter.push(piece), piece)
  t.equal(splitter.push(Buffer.from('data: c\n')).length, 0)
  t.equal(splitter.push(Buffer.from('\ndata: d')).toString(), 'data: c\n\n')
  t.equal(splitter.rest().toString(), 'data: d')
})
