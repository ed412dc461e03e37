import { test } from 'tap'
import { deleteSecret } from '../../../shared/contract/secrets.js'
import { executionScene } from './execution-scene.js'

test('arguments are percent-encoded in the url, text as text and the rest as JSON', async t => {
  const { upstream, makeTool, outcome, last } = await executionScene(t)
  const id = await makeTool({
    url: `${upstream.url}/users/{{arg.id}}/{{ arg.kind }}?n={{arg.n}}&f={{arg.flag}}`,
    query: [{ name: 'filter', value: 'x-{{arg.filter}}' }],
  })
  await outcome(id, { id: 'a/b?c#d', kind: 'ä ö', n: 1.5, flag: false, filter: { a: ['&', 1] } })
  t.equal(
    last().url,
    '/users/a%2Fb%3Fc%23d/%C3%A4%20%C3%B6?n=1.5&f=false&filter=x-%7B%22a%22%3A%5B%22%26%22%2C1%5D%7D',
  )
})

test('a missing argument drops the header or query value that is nothing but it, and is empty text elsewhere', async t => {
  const { upstream, makeTool, outcome, last } = await executionScene(t)
  const id = await makeTool({
    url: `${upstream.url}/call?u={{arg.gone}}`,
    headers: [
      { name: 'X-Alone', value: '{{arg.gone}}' },
      { name: 'X-With', value: 'is {{arg.gone}}.' },
    ],
    query: [
      { name: 'alone', value: '{{arg.gone}}' },
      { name: 'null', value: '{{arg.nothing}}' },
      { name: 'with', value: '-{{arg.gone}}-' },
      { name: 'empty', value: '{{arg.empty}}' },
    ],
  })
  await outcome(id, { nothing: null, empty: '' })
  t.equal(last().url, '/call?u=&with=--&empty=')
  t.equal(last().headers['x-alone'], undefined)
  t.equal(last().headers['x-with'], 'is .')
})

test('a path keeps its shape: no missing segment, none that climbs out', async t => {
  const { upstream, makeTool, execute, last } = await executionScene(t)
  const id = await makeTool({ url: `${upstream.url}/v1/items/{{arg.id}}`, method: 'DELETE' })
  for (const args of [{}, { id: null }, { id: '' }]) {
    const { status, error } = await execute(id, args)
    t.same([status, error?.message], [400, 'arguments.id: Required'])
  }
  for (const bad of ['..', '.', '%2e%2e', '%2E.']) {
    const { status, error } = await execute(id, { id: bad })
    if (bad.includes('%')) t.equal(status, 200, `${bad} is text and is encoded again`)
    else t.match(error, { code: 'VALIDATION_ERROR', message: /^arguments\.id: .*relative path/ }, bad)
  }
  t.match(last().url, /^\/v1\/items\/%252E\.$/)
  t.equal((await execute(id, { id: '../../admin' })).status, 200)
  t.equal(last().url, '/v1/items/..%2F..%2Fadmin')
  const mixed = await makeTool({ url: `${upstream.url}/v1/.{{arg.id}}/x` })
  t.equal((await execute(mixed, { id: '.' })).status, 400)
})

test('an argument in a header cannot start another one', async t => {
  const { makeTool, execute, last, upstream } = await executionScene(t)
  const id = await makeTool({ headers: [{ name: 'X-City', value: '{{arg.city}}' }] })
  for (const city of ['a\r\nX-Evil: 1', 'a\nb', 'a\rb', 'a\u007fb', 'a\u0001b']) {
    const { status, error } = await execute(id, { city })
    t.equal(status, 400, JSON.stringify(city))
    t.match(error?.message, /^arguments\.city: .*header/)
  }
  t.equal(upstream.requests.length, 0)
  await execute(id, { city: 'Łódź 😀' })
  const sent = Buffer.from(String(last().headers['x-city']), 'latin1').toString('utf8')
  t.equal(sent, 'Łódź 😀', 'letters outside ASCII go as UTF-8')
})

test('secrets are filled into url, query and headers', async t => {
  const { upstream, makeTool, outcome, secret, last } = await executionScene(t)
  await secret('TOKEN', 's3cr3t+/=&value')
  await secret('TENANT', 'acme inc')
  const id = await makeTool({
    url: `${upstream.url}/{{secret.TENANT}}/call?k={{secret.TOKEN}}`,
    headers: [{ name: 'Authorization', value: 'Bearer {{secret.TOKEN}}' }],
    query: [{ name: 'token', value: '{{secret.TOKEN}}' }],
  })
  await outcome(id)
  const encoded = encodeURIComponent('s3cr3t+/=&value')
  t.equal(last().url, `/acme%20inc/call?k=${encoded}&token=${encoded}`)
  t.equal(last().headers.authorization, 'Bearer s3cr3t+/=&value')
  await secret('TOKEN', 'new')
  await outcome(id)
  t.equal(last().headers.authorization, 'Bearer new', 'a new value holds for the next call')
})

test('a secret that was removed since refuses the call', async t => {
  const { cp, people, makeTool, execute, secret, upstream } = await executionScene(t)
  await secret('TOKEN', 'value')
  const id = await makeTool({ headers: [{ name: 'X-Key', value: '{{secret.TOKEN}}' }] })
  await cp.call(deleteSecret, { as: people.owner.personalKey, params: { name: 'TOKEN' } })
  const { status, error } = await execute(id)
  t.equal(status, 400)
  t.match(error?.message, /Unknown secret '\{\{secret\.TOKEN\}\}'/)
  t.equal(upstream.requests.length, 0)
})

test('an argument that spells a secret reference stays text', async t => {
  const { makeTool, outcome, secret, last } = await executionScene(t)
  await secret('TOKEN', 'canary-value')
  const id = await makeTool({
    method: 'POST',
    headers: [
      { name: 'X-Key', value: '{{secret.TOKEN}}' },
      { name: 'X-Text', value: '{{arg.text}}' },
    ],
  })
  await outcome(id, { text: '{{secret.TOKEN}}' })
  t.equal(last().headers['x-text'], '{{secret.TOKEN}}')
  t.equal(last().headers['x-key'], 'canary-value')
  t.same(JSON.parse(last().body), { text: '{{secret.TOKEN}}' })
})

test('POST, PUT and PATCH without a requestTransform send the arguments as a JSON body', async t => {
  const { makeTool, outcome, last } = await executionScene(t)
  for (const method of ['POST', 'PUT', 'PATCH']) {
    await outcome(await makeTool({ method }), { a: 1, b: ['x'] })
    t.same([last().method, JSON.parse(last().body)], [method, { a: 1, b: ['x'] }])
    t.equal(last().headers['content-type'], 'application/json')
  }
  for (const method of ['GET', 'DELETE']) {
    await outcome(await makeTool({ method }), { a: 1 })
    t.same([last().method, last().body, last().headers['content-type']], [method, '', undefined])
  }
  const custom = await makeTool({
    method: 'POST',
    headers: [{ name: 'Content-Type', value: 'application/vnd.api+json' }],
  })
  await outcome(custom, { a: 1 })
  t.equal(last().headers['content-type'], 'application/vnd.api+json')
})

test('a requestTransform gets url, method, headers, query, body and args, and returns the request to send', async t => {
  const { upstream, makeTool, outcome, last } = await executionScene(t)
  const id = await makeTool({
    method: 'POST',
    url: `${upstream.url}/v1/{{arg.kind}}`,
    headers: [{ name: 'X-One', value: 'one' }],
    query: [{ name: 'q', value: '{{arg.q}}' }],
    requestTransform: `function transform({ url, method, headers, query, body, args }) {
      return { url: url + '/more', method: 'PUT', headers: { ...headers, 'X-Two': 2 },
        query: { ...query, list: ['a', 'b'], gone: null }, body: { wrapped: args, seen: { method, headers, query, body } } }
    }`,
  })
  await outcome(id, { kind: 'books', q: 'x y' })
  t.equal(last().method, 'PUT')
  t.equal(last().url, '/v1/books/more?q=x%20y&list=a&list=b')
  t.equal(last().headers['x-one'], 'one')
  t.equal(last().headers['x-two'], '2')
  t.same(JSON.parse(last().body), {
    wrapped: { kind: 'books', q: 'x y' },
    seen: {
      method: 'POST',
      headers: { 'x-one': 'one' },
      query: { q: 'x y' },
      body: { kind: 'books', q: 'x y' },
    },
  })
})

test('a field that a requestTransform leaves out stays; text is sent as text, null as no body', async t => {
  const { makeTool, outcome, last } = await executionScene(t)
  const send = async (source: string) => {
    const id = await makeTool({
      method: 'POST',
      headers: [{ name: 'X-A', value: 'a' }],
      requestTransform: source,
    })
    await outcome(id, { n: 1 })
    return last()
  }
  const kept = await send('function transform(r) { r.headers["x-b"] = "b"; return r }')
  t.same([kept.headers['x-a'], kept.headers['x-b'], kept.body], ['a', 'b', '{"n":1}'])
  const partial = await send('function transform() { return { body: "a=1&b=2" } }')
  t.same([partial.url, partial.headers['x-a'], partial.body], ['/call', 'a', 'a=1&b=2'])
  t.match(partial.headers['content-type'], /^text\/plain/)
  const form = await send(
    'function transform() { return { body: "a=1", headers: { "content-type": "application/x-www-form-urlencoded" } } }',
  )
  t.same(
    [form.headers['content-type'], form.headers['x-a']],
    ['application/x-www-form-urlencoded', undefined],
  )
  t.equal((await send('function transform() { return { body: null } }')).body, '')
})

test('a requestTransform that fails, or returns what cannot be sent, is a transform error and calls nothing', async t => {
  const { makeTool, outcome, upstream } = await executionScene(t)
  const sources: [string, RegExp][] = [
    ['throw new Error("no city")', /requestTransform: no city/],
    ['for (;;) {}', /requestTransform: It ran longer than/],
    ['return 5', /must return the request to send/],
    ['return null', /must return the request to send/],
    ['return { url: "/relative" }', /url must be an absolute URL/],
    ['return { method: "TRACE" }', /method must be/],
    ['return { headers: "a" }', /headers must be an object/],
    ['return { query: { a: { b: 1 } } }', /query\.a must be text/],
    ['return { headers: { Host: "evil" } }', /Host/i],
    ['return { headers: { "x-a": "a\\r\\nb: 1" } }', /line break/],
    ['return { headers: { "bad name": "a" } }', /bad name/],
    ['return Promise.resolve({})', /not a promise/],
  ]
  for (const [statement, message] of sources) {
    const id = await makeTool({ requestTransform: `function transform(r) { ${statement} }` })
    t.match(
      await outcome(id),
      { status: 'error', result: null, error: { type: 'transform', message } },
      statement,
    )
  }
  t.equal(upstream.requests.length, 0)
})

test('a requestTransform cannot reach a private address', async t => {
  const { makeTool, outcome, upstream } = await executionScene(t)
  const { port } = new URL(upstream.url)
  const urls = [
    `http://localhost:${port}/`,
    `http://[::1]:${port}/`,
    'http://169.254.169.254/',
    'http://2130706433/',
  ]
  for (const url of [...urls, 'file:///etc/passwd', `http://user@127.0.0.1:${port}/`]) {
    const id = await makeTool({ requestTransform: `function transform(r) { return { url: '${url}' } }` })
    t.match(await outcome(id), { error: { type: 'transport', code: 'address_refused' } }, url)
  }
  t.equal(upstream.requests.length, 0)
})

test('a requestTransform may place a secret but neither read it nor take it to another origin', async t => {
  const { makeTool, outcome, secret, last, upstream } = await executionScene(t)
  await secret('TOKEN', 'canary "value"')
  const headers = [{ name: 'X-Key', value: 'Key {{secret.TOKEN}}' }]
  const moved = await makeTool({
    headers,
    method: 'POST',
    requestTransform: `function transform({ url, headers, args }) {
      return { url: url + '?k=' + encodeURIComponent(headers['x-key']), headers: {}, body: { key: headers['x-key'], length: headers['x-key'].length } }
    }`,
  })
  await outcome(moved)
  const body = JSON.parse(last().body)
  t.equal(body.key, 'Key canary "value"', 'placed in the body, quoted as JSON')
  t.not(body.length, 'Key canary "value"'.length, 'what the transform saw was a placeholder')
  t.equal(last().url, `/call?k=Key%20${encodeURIComponent('canary "value"')}`)
  const calls = upstream.requests.length
  for (const where of [
    "'http://1.1.1.1/'",
    "url.replace('127.0.0.1', 'example.com')",
    "'https' + url.slice(4)",
  ]) {
    const id = await makeTool({
      headers,
      requestTransform: `function transform({ url }) { return { url: ${where} } }`,
    })
    t.match(await outcome(id), { error: { type: 'transform', message: /another origin/ } }, where)
  }
  t.equal(upstream.requests.length, calls)
})
