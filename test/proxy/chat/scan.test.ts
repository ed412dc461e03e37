import { test } from 'tap'
import { scanTopLevel, spliceable } from '../../../proxy/chat/scan.js'

const scan = (text: string) => scanTopLevel(Buffer.from(text))

test('the model of a request is found wherever it stands, and only at the top level', async t => {
  const bodies = [
    '{"model":"m","messages":[]}',
    ' \n{ "messages" : [ { "role":"user","content":"\\"model\\":\\"x\\" }" } ] , "model" : "m" }',
    '{"a":{"model":"inner","b":[{"model":1}]},"model":"m"}',
    '{"n":1,"t":true,"x":null,"f":-1.5e3,"model":"m","z":[]}',
    '{"s":"ends with a backslash \\\\","model":"m"}',
    '{"ü":"日本 \\u00e9","model":"m"}',
  ]
  for (const body of bodies) {
    const bytes = Buffer.from(body)
    const found = scanTopLevel(bytes)
    t.ok(found, body)
    t.equal(bytes.subarray(found?.modelStart, found?.modelEnd).toString(), '"m"', body)
    t.equal(found?.keys, Object.keys(JSON.parse(body)).length, body)
  }
})

test('a body with two models, or a name spelled with an escape, is never spliced', async t => {
  t.equal(scan('{"model":"allowed","model":"other"}'), null)
  t.equal(scan('{"model":"allowed","mod\\u0065l":"other"}'), null)
  const twice = Buffer.from('{"model":"m","stream":false,"stream":true}')
  t.equal(spliceable(twice, Object.keys(JSON.parse(twice.toString())).length), null)
  t.equal(spliceable(Buffer.from('{"messages":[]}'), 1), null, 'nothing to replace')
})

test('truncated and odd text ends the walk without an exception', async t => {
  const body = '{"model":"m","messages":[{"role":"user","content":"hi \\"there\\""}],"n":1}'
  for (let length = 0; length < body.length; length++) t.doesNotThrow(() => scan(body.slice(0, length)))
  for (const odd of ['', 'null', '[]', '"x"', '{,}', '{"a"}', '{"a":}', '{1:2}'])
    t.doesNotThrow(() => scan(odd))
})
