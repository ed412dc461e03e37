import { test } from 'tap'
import { type ChatCall, parseCall } from '../../../proxy/chat/parse.js'
import { readTraceContext } from '../../../proxy/chat/trace-context.js'

const id = '0197a6e0-5b1c-7c3e-9a35-2f1f0d5c7a11'

function read(headers: Record<string, string>, fields: Record<string, unknown> = {}) {
  const body = { model: 'm', messages: [{ role: 'user' }], ...fields }
  const call = parseCall(Buffer.from(JSON.stringify(body))) as ChatCall
  return readTraceContext({ get: name => headers[name], flat: [] }, call)
}

test('a header of the same meaning wins over the body field', async t => {
  const context = read(
    {
      'x-trace-id': id,
      'x-session-id': 'header',
      'x-trace-name': 'caf%C3%A9',
      'x-trace-metadata': '{"from":"header"}',
      'x-span-metadata': '{"s":1}',
      'x-capture-payloads': 'false',
    },
    {
      trace: {
        traceId: id.replace('0', '1'),
        sessionId: 'body',
        name: 'body',
        metadata: { from: 'body' },
        capturePayloads: true,
        tags: ['a'],
      },
      span: { metadata: { s: 2 }, name: 'step' },
    },
  )
  t.match(context, {
    traceId: id,
    sessionId: 'header',
    name: 'café',
    metadata: { from: 'header' },
    spanMetadata: { s: 1 },
    capturePayloads: false,
    tags: ['a'],
    spanName: 'step',
    ignored: [],
  })
})

test('a field of the wrong type is dropped and listed by its dotted path, a header by its name', async t => {
  const context = read(
    { 'x-trace-metadata': '[1]', 'x-trace-id': 'nonsense', 'x-capture-payloads': 'maybe' },
    { trace: { tags: 'a,b', sessionId: 7, name: {}, capturePayloads: 'yes' }, span: { tags: [1] } },
  )
  t.strictSame(
    new Set(context.ignored),
    new Set([
      'x-trace-id',
      'x-capture-payloads',
      'x-trace-metadata',
      'trace.capturePayloads',
      'trace.sessionId',
      'trace.name',
      'trace.tags',
      'span.tags',
    ]),
  )
  t.equal(context.traceId, null)
})

test('an object of the wrong type is listed as a whole', async t => {
  t.strictSame(read({}, { trace: 'x', span: [1] }).ignored, ['trace', 'span'])
  t.strictSame(read({}, { trace: null }).ignored, [])
})

test('a name that does not decode is taken as it is', async t => {
  t.equal(read({ 'x-trace-name': '100%' }).name, '100%')
  t.equal(read({ 'x-trace-name-if-unset': 'a%20b' }).nameIfUnset, 'a b')
})
