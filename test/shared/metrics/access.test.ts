import t from 'tap'
import { checkMetricsReader } from '../../../shared/metrics/access.js'

const reader = {
  token: undefined,
  authorization: undefined,
  remoteAddress: '127.0.0.1',
  forwardedFor: undefined,
}

t.test('without METRICS_TOKEN only loopback addresses read the metrics', async t => {
  const local = [
    '127.0.0.1',
    '127.8.9.1',
    '::1',
    '::ffff:127.0.0.1',
    '0000:0000:0000:0000:0000:0000:0000:0001',
  ]
  for (const remoteAddress of [...local, '0000:0000:0000:0000:0000:ffff:7f00:0001']) {
    t.doesNotThrow(() => checkMetricsReader({ ...reader, remoteAddress }), remoteAddress)
  }
  for (const remoteAddress of [
    '10.0.0.1',
    '::2',
    '1127.0.0.1',
    '127.0.0.1.example',
    '2001:db8:0:0:0:0:0:1',
    '',
  ]) {
    t.throws(() => checkMetricsReader({ ...reader, remoteAddress }), { code: 'FORBIDDEN' }, remoteAddress)
  }
})

t.test('a local reverse proxy does not make its clients local', async t => {
  t.throws(() => checkMetricsReader({ ...reader, forwardedFor: '203.0.113.9' }), { code: 'FORBIDDEN' })
})

t.test('with METRICS_TOKEN only its bearer reads the metrics, loopback included', async t => {
  const token = 'a-token'
  t.throws(() => checkMetricsReader({ ...reader, token }), { code: 'UNAUTHORIZED' })
  t.throws(() => checkMetricsReader({ ...reader, token, authorization: 'Bearer a-tokem' }), {
    code: 'UNAUTHORIZED',
  })
  const remote = { ...reader, token, remoteAddress: '203.0.113.9', authorization: 'Bearer a-token' }
  t.doesNotThrow(() => checkMetricsReader(remote))
})
