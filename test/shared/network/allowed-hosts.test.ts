import { test } from 'tap'
import { allowedHost, isAllowedHost } from '../../../shared/network/allowed-hosts.js'
import { testConfig } from '../../support/control-plane.js'

const database = 'postgres://localhost/none'

test('an entry is a host, or a host and a port', async t => {
  const cases: [string, string, number | null][] = [
    ['localhost', 'localhost', null],
    ['LocalHost:8080', 'localhost', 8080],
    ['127.0.0.1', '127.0.0.1', null],
    ['127.1:9000', '127.0.0.1', 9000],
    ['[::1]:80', '[::1]', 80],
    ['::1', '[::1]', null],
    ['[0:0:0:0:0:0:0:1]', '[::1]', null],
    ['crm.internal:443', 'crm.internal', 443],
    ['bücher.example', 'xn--bcher-kva.example', null],
  ]
  for (const [entry, hostname, port] of cases) t.same(allowedHost(entry), { hostname, port }, entry)
})

test('what is neither stops the start with one line', async t => {
  for (const entry of [
    'http://localhost',
    'a b',
    'host:0',
    'host:65536',
    'host:x',
    '*.internal',
    'me@host',
    'host/x',
    ':80',
    '[::1',
  ]) {
    t.equal(allowedHost(entry), null, entry)
    t.throws(() => testConfig(database, { TOOL_ALLOW_PRIVATE_HOSTS: `localhost, ${entry}` }), {
      name: 'ConfigError',
      message: `TOOL_ALLOW_PRIVATE_HOSTS holds ${JSON.stringify(`localhost, ${entry}`).replace(/\/\/[^/@\s]*@/, '//***@')}; it may hold host or host:port entries, separated by commas.`,
    })
  }
  const { TOOL_ALLOW_PRIVATE_HOSTS } = testConfig(database, {
    TOOL_ALLOW_PRIVATE_HOSTS: ' localhost , 10.0.0.1:81,',
  })
  t.same(TOOL_ALLOW_PRIVATE_HOSTS, [
    { hostname: 'localhost', port: null },
    { hostname: '10.0.0.1', port: 81 },
  ])
  t.same(testConfig(database).TOOL_ALLOW_PRIVATE_HOSTS, [])
})

test('an entry with a port allows that port alone, the scheme’s own included', async t => {
  const allowed = ['localhost', '127.0.0.1:8080', 'crm.internal:443'].map(
    entry => allowedHost(entry) ?? t.fail(entry),
  )
  const isAllowed = (url: string) => isAllowedHost(new URL(url), allowed as never)
  t.ok(isAllowed('http://localhost:1/'))
  t.ok(isAllowed('http://127.0.0.1:8080/'))
  t.ok(isAllowed('http://2130706433:8080/'), 'the same address, written otherwise')
  t.ok(isAllowed('https://crm.internal/'))
  t.notOk(isAllowed('http://crm.internal/'))
  t.notOk(isAllowed('http://127.0.0.1/'))
  t.notOk(isAllowed('http://127.0.0.2:8080/'))
  t.notOk(isAllowed('http://evil.localhost/'))
})
