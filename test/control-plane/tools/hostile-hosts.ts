/** 64 ways to write a host that is not public (reliability notes, 5.3): loopback, private, metadata, disguised. */
export const hostileHosts: readonly string[] = [
  // IPv4 loopback in every form that URL parsers know.
  ...[
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '2130706433',
    '0x7f000001',
    '0x7f.0.0.1',
    '0177.0.0.1',
    '017700000001',
  ],
  ...['0', '0.0.0.0', '127.0.0.1.', '①②⑦.⓪.⓪.①', '127。0。0。1', '１２７.0.0.1', '%31%32%37.0.0.1'],
  // Names.
  ...[
    'localhost',
    'localhost.',
    'LOCALHOST',
    'foo.localhost',
    'foo.local',
    'kubernetes.default.svc',
    'metadata',
  ],
  ...['metadata.google.internal', 'instance-data', '127.0.0.1%2523'],
  // IPv6: loopback, unspecified, and IPv4 inside.
  ...[
    '[::1]',
    '[::]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:ffff:127.0.0.1]',
  ],
  ...['[::127.0.0.1]', '[64:ff9b::127.0.0.1]', '[64:ff9b:1::7f00:1]', '[2002:7f00:1::]'],
  ...['[2001:0:4136:e378:8000:63bf:80ff:fffe]'],
  // IPv6: link-local, private, multicast, documentation.
  ...[
    '[fe80::1]',
    '[fe80::1%25lo]',
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[fec0::1]',
    '[ff02::1]',
    '[2001:db8::1]',
  ],
  ...['[100::1]', '[3fff::1]'],
  // Cloud metadata.
  ...['169.254.169.254', '0xa9fea9fe', '2852039166', '169.254.170.2', '100.100.100.200', '192.0.0.192'],
  ...['168.63.129.16', '①69.254.169.254'],
  // The other networks that are not public.
  ...['100.64.0.1', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '198.18.0.1', '192.0.2.1'],
  ...['203.0.113.5', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
]
