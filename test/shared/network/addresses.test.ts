import t from 'tap'
import { hostRefusal, refusal } from '../../../shared/network/addresses.js'

/** Hosts as a hostile user writes them into a URL; each leads, or may lead, to something that is not public. */
const HOSTILE = `127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 0 0.0.0.0
  localhost localhost. LOCALHOST foo.localhost [::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1]
  [0:0:0:0:0:ffff:127.0.0.1] [::127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b:1::7f00:1] [2002:7f00:1::]
  [2001:0:4136:e378:8000:63bf:80ff:fffe] [fe80::1] [fe80::1%25lo] [fc00::1] [fd00:ec2::254] [fec0::1] [ff02::1]
  [2001:db8::1] [100::1] [3fff::1] 169.254.169.254 0xa9fea9fe 2852039166 169.254.170.2 100.64.0.1 100.100.100.200
  192.0.0.192 168.63.129.16 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 198.18.0.1 192.0.2.1 203.0.113.5
  224.0.0.1 240.0.0.1 255.255.255.255 ①②⑦.⓪.⓪.① 127。0。0。1 １２７.0.0.1 127.0.0.1. metadata.google.internal
  instance-data metadata kubernetes.default.svc foo.local %31%32%37.0.0.1 127.0.0.1%2523 ①69.254.169.254`
  .trim()
  .split(/\s+/)

/** What a URL parser makes of a host: null when it refuses the URL itself. */
const parsed = (host: string): string | null =>
  URL.canParse(`http://${host}:8080/x`) ? new URL(`http://${host}:8080/x`).hostname : null

t.test('64 hostile hosts: none passes as public', async t => {
  t.equal(HOSTILE.length, 64)
  for (const host of HOSTILE) {
    const hostname = parsed(host)
    if (hostname === null) t.pass(`${host}: not a URL`)
    else t.type(hostRefusal(hostname, 'public'), 'string', host)
  }
})

t.test('public addresses and names pass under both policies', async t => {
  const hosts = [
    '93.184.216.34',
    '8.8.8.8',
    '[2606:2800:220:1::1]',
    'api.openai.com',
    'api.example.co.uk',
    'xn--bcher-kva.example',
  ]
  for (const host of hosts) {
    t.equal(hostRefusal(parsed(host) as string, 'public'), null, host)
    t.equal(hostRefusal(parsed(host) as string, 'private-allowed'), null, host)
  }
})

t.test('a model server of one’s own passes where private hosts are allowed', async t => {
  const hosts = `127.0.0.1 localhost 0.0.0.0 [::1] 10.1.2.3 172.20.0.5 192.168.0.9 100.64.7.7 [fd12:3456::1] ollama
    gpu.internal [::ffff:10.0.0.1] 2130706433`
  for (const host of hosts.trim().split(/\s+/)) {
    const hostname = parsed(host) as string
    t.equal(hostRefusal(hostname, 'private-allowed'), null, host)
    t.type(hostRefusal(hostname, 'public'), 'string', host)
  }
})

t.test(
  'link-local and cloud metadata addresses are refused under every policy, however they are written',
  async t => {
    const hosts = `169.254.169.254 0xa9fea9fe 2852039166 0251.0376.0251.0376 169.254.170.2 100.100.100.200 192.0.0.192
    168.63.129.16 [fe80::1] [fd00:ec2::254] [fd20:ce::254] [::ffff:169.254.169.254] [::ffff:a9fe:a9fe]
    [::169.254.169.254] [64:ff9b::169.254.169.254] [64:ff9b:1::a9fe:a9fe] [2002:a9fe:a9fe::1]
    [2001:0:a9fe:a9fe:8000:63bf:80ff:fffe] [2001:0:4136:e378:8000:63bf:5601:5601] [fd00::5efe:169.254.169.254]
    [fd00::200:5efe:169.254.169.254] [::ffff:0:169.254.169.254] [::ffff:100.100.100.200] metadata.google.internal
    metadata metadata.google.internal. instance-data 224.0.0.1 255.255.255.255 [ff02::1] ①69.254.169.254`
    for (const host of hosts.trim().split(/\s+/)) {
      const hostname = parsed(host) as string
      t.type(hostRefusal(hostname, 'private-allowed'), 'string', host)
      t.type(hostRefusal(hostname, 'public'), 'string', host)
    }
  },
)

t.test('the edges of each refused range are exact', async t => {
  const inside = `9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0
    172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 168.63.129.15
    168.63.129.17 2000:: 2001:200:: 2001:db7:: 2001:db9:: 2003:: 3ffe:: 3fff:1000::`
  for (const address of inside.trim().split(/\s+/)) t.equal(refusal(address, 'public'), null, address)
  const outside = `10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.255.255.255 169.254.0.0
    169.254.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 239.255.255.255
    0.255.255.255 1fff:: 2001:: 2001:1ff:: 2002:: 3fff:: 3fff:fff:: 4000:: ::ffff:10.0.0.0 fdff:: febf:: 2001:db8:ffff::`
  for (const address of outside.trim().split(/\s+/)) t.type(refusal(address, 'public'), 'string', address)
})

t.test('what is not an address is refused, not guessed', async t => {
  for (const text of [
    '',
    'example.com',
    '1.2.3',
    '1.2.3.4.5',
    '::g',
    '1:2:3',
    'fe80::1%eth0',
    '1.1.1.1%eth0',
  ]) {
    t.type(refusal(text, 'public'), 'string', JSON.stringify(text))
    t.type(refusal(text, 'private-allowed'), 'string', JSON.stringify(text))
  }
})

t.test('brackets of a URL and every spelling of an IPv6 address mean the same', async t => {
  for (const spelling of ['::1', '[::1]', '0::1', '0:0:0:0:0:0:0:1', '0000:0000::0001', '::0.0.0.1']) {
    t.equal(refusal(spelling, 'public'), 'a loopback address', spelling)
  }
  t.equal(refusal('2606:4700:4700::1111', 'public'), null)
  t.equal(refusal('2606:4700:4700:0:0:0:0:1111', 'public'), null)
})
