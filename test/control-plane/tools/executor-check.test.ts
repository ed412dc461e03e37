import t from 'tap'
import { setSecret } from '../../../shared/contract/secrets.js'
import { startControlPlane, testConfig } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { http, PUBLIC_URL, toolbox } from './scene.js'

const CANNOT_BE_CALLED = /^The executor's URL cannot be called: /

t.test('an executor is checked when its version is committed', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.owner.session
  const { create, commit } = toolbox(cp, as)
  await cp.call(setSecret, { as, params: { name: 'KEY' }, body: { value: 'v' } })
  const { id } = await create('checked')
  const passes = async (executor: object, name = JSON.stringify(executor)) => {
    const answer = await commit(id, { executor })
    t.equal(answer.status, 201, `${name} ${answer.error?.message ?? ''}`)
  }
  const refusal = async (executor: object, fields: object = {}) => {
    const { status, error } = await commit(id, { executor, ...fields })
    t.equal(status, 400, JSON.stringify(executor))
    t.equal(error?.code, 'VALIDATION_ERROR')
    return error?.message ?? ''
  }

  t.test('a URL that leads to an address which is not public is refused', async t => {
    for (const host of [
      '127.0.0.1',
      '127.0.0.1:8080',
      '2130706433',
      '0x7f.1',
      'localhost',
      'localhost.',
      '10.0.0.1',
      '172.16.0.1',
      '192.168.1.1',
      '100.64.0.1',
      '169.254.169.254',
      '0.0.0.0',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '[fd00::1]',
      '[fe80::1]',
    ]) {
      t.match(await refusal(http({ url: `http://${host}/x` })), CANNOT_BE_CALLED, host)
    }
    t.match(
      await refusal(http({ url: 'http://127.0.0.1/{{arg.a}}?k={{secret.KEY}}#{{arg.a}}' })),
      CANNOT_BE_CALLED,
      'templated',
    )
  })

  t.test('a URL must be an absolute http or https URL without credentials', async t => {
    for (const url of [
      '',
      ' ',
      '/relative',
      'example.com/x',
      'https://',
      'http://a b/',
      'https:\\\\1.1.1.1\\',
    ]) {
      t.match(await refusal(http({ url })), /^executor\.url: /, url)
    }
    for (const url of [
      'https://1.1.1.1/a b',
      'https://1.1.1.1/a\nb',
      '\thttps://1.1.1.1/',
      'https://1.1.1.1\\@2',
    ]) {
      t.equal(await refusal(http({ url })), 'executor.url: Invalid url')
    }
    for (const url of [
      'ftp://1.1.1.1/',
      'file:///etc/passwd',
      'javascript:1',
      'https://user:pass@1.1.1.1/',
    ]) {
      await refusal(http({ url }))
    }
    t.equal(
      await refusal(http({ url: 'x'.repeat(8_193) })),
      'executor.url: String must contain at most 8192 character(s)',
    )
  })

  t.test('neither a secret nor an argument stands in the scheme, host or port', async t => {
    for (const url of [
      'https://{{secret.KEY}}/x',
      'https://{{arg.host}}/x',
      'https://{{arg.host}}.example.com/x',
      'https://1.1.1.1:{{arg.port}}/x',
      'https://{{secret.KEY}}@1.1.1.1/x',
      'https://user:{{secret.KEY}}@1.1.1.1/x',
      'https://1.1.1.1{{arg.rest}}',
      '{{arg.scheme}}://1.1.1.1/x',
      'https{{arg.s}}://1.1.1.1/x',
      '{{arg.url}}',
      '{{secret.KEY}}',
      'https:{{arg.slashes}}1.1.1.1/',
      'https:///{{arg.host}}/x',
      'https:/{{arg.host}}/x',
      'https:{{arg.host}}',
    ]) {
      const message = await refusal(http({ url }))
      t.match(
        message,
        /^executor\.url: (References may not stand in the scheme, host or port\.|Invalid url)$/,
        url,
      )
    }
  })

  t.test('arguments and secrets stand in path, query, query values and header values', async () => {
    await passes(
      http({
        url: `${PUBLIC_URL}/{{arg.path}}/{{secret.KEY}}?a={{arg.q}}&b={{secret.KEY}}`,
        headers: [{ name: 'Authorization', value: 'Bearer {{secret.KEY}}' }],
        query: [{ name: 'q', value: 'x{{arg.q}}y{{ secret.KEY }}' }],
      }),
    )
    await passes(http({ url: 'https://1.1.1.1?{{arg.query}}' }))
  })

  t.test('any other template reference is refused, wherever it stands', async t => {
    const other = "'{{env.HOME}}' is not a reference; use {{arg.NAME}} or {{secret.NAME}}."
    t.equal(await refusal(http({ url: `${PUBLIC_URL}/{{env.HOME}}` })), `executor.url: ${other}`)
    t.equal(
      await refusal(http({ headers: [{ name: 'a', value: '{{env.HOME}}' }] })),
      `executor.headers.0.value: ${other}`,
    )
    t.equal(
      await refusal(
        http({
          query: [
            { name: 'a', value: 'b' },
            { name: 'c', value: 'x{{env.HOME}}' },
          ],
        }),
      ),
      `executor.query.1.value: ${other}`,
    )
    t.equal(
      await refusal(http({ query: [{ name: '{{arg.a}}', value: 'b' }] })),
      'executor.query.0.name: References may stand in values only.',
    )
    await refusal(http({ headers: [{ name: '{{arg.a}}', value: 'b' }] }))
  })

  t.test('a secret that the team does not have is refused by name', async t => {
    const unknown = (name: string) => `Unknown secret '{{secret.${name}}}'.`
    t.equal(await refusal(http({ url: `${PUBLIC_URL}/{{secret.NOPE}}` })), unknown('NOPE'))
    t.equal(await refusal(http({ query: [{ name: 'a', value: '{{secret.NOPE}}' }] })), unknown('NOPE'))
    t.equal(
      await refusal(http({ headers: [{ name: 'a', value: '{{secret.KEY}}{{secret.nope}}' }] })),
      unknown('nope'),
    )
    const theirs = await team(cp)
    await cp.call(setSecret, { as: theirs.owner.session, params: { name: 'THEIRS' }, body: { value: 'v' } })
    t.equal(await refusal(http({ url: `${PUBLIC_URL}/{{secret.THEIRS}}` })), unknown('THEIRS'))
  })

  t.test('a header is a header, and none that belongs to the connection or the framing', async t => {
    const header = (name: string, value = 'v') => refusal(http({ headers: [{ name, value }] }))
    for (const name of ['a b', 'a:', 'a\r\nb', 'ä', 'a\u0000', '(a)']) {
      t.match(await header(name), /header name|NUL/, JSON.stringify(name))
    }
    for (const name of [
      'Host',
      'content-length',
      'Transfer-Encoding',
      'CONNECTION',
      'keep-alive',
      'upgrade',
      'te',
      'trailer',
      'expect',
      'proxy-authorization',
      'Proxy-Connection',
    ]) {
      t.equal(await header(name), `executor.headers.0.name: '${name}' is set by the service itself.`)
    }
    for (const value of ['a\r\nEvil: 1', 'a\nb', 'a\rb', '\u0001', '\u007f']) {
      t.match(await header('x-a', value), /^executor\.headers\.0\.value: A header value/)
      t.match(await header('x-a', `{{arg.a}}${value}`), /^executor\.headers\.0\.value: A header value/)
    }
    await passes(http({ headers: [{ name: 'x-a', value: 'tab\tand é and 世界' }] }))
    t.equal(await header(''), 'executor.headers.0.name: String must contain at least 1 character(s)')
    t.equal(await refusal(http({ headers: { a: 'b' } })), 'executor.headers: Expected array, received object')
    t.equal(await refusal(http({ headers: [{ name: 'a' }] })), 'executor.headers.0.value: Required')
  })

  t.test('a mapping or a body template is refused, with the way to do it', async t => {
    const mapping =
      'executor.argMapping: argMapping must be empty; use {{arg.NAME}} in query, header or url instead.'
    t.equal(await refusal(http({ argMapping: { city: 'q' } })), mapping)
    t.equal(await refusal(http({ argMapping: ['city'] })), mapping)
    for (const bodyTemplate of ['{}', '', null, {}]) {
      t.equal(
        await refusal(http({ bodyTemplate })),
        'executor.bodyTemplate: bodyTemplate is not supported; use requestTransform to build a body.',
      )
    }
  })

  t.test('a transform must parse and define a function named transform', async t => {
    for (const field of ['requestTransform', 'responseTransform', 'failureWhen']) {
      const syntax = await refusal(http({ [field]: 'function transform( {' }))
      t.match(syntax, new RegExp(`^executor\\.${field}: `))
      const other = await refusal(http({ [field]: 'function other() { return 1 }' }))
      t.match(other, new RegExp(`^executor\\.${field}: .*transform`))
      await passes(http({ [field]: 'function transform(input) { return null }' }))
      await passes(http({ [field]: 'const transform = input => null' }))
    }
    await refusal(http({ responseTransform: 'const transform = 5' }))
    await refusal(http({ responseTransform: ' '.repeat(65_537) }))
  })

  t.test('schemas are checked: their form, size, depth and references', async t => {
    const schemas = (parametersSchema: unknown) => refusal({ type: 'client' }, { parametersSchema })
    t.equal(
      await schemas({ type: 'string' }),
      "parametersSchema.type: Arguments are an object; type must be 'object'.",
    )
    t.match(
      await schemas({ type: 'object', properties: { a: { type: 'text' } } }),
      /^parametersSchema: .*type/,
    )
    t.match(
      await schemas({ properties: { a: { $ref: 'https://example.com/s.json' } } }),
      /^parametersSchema: /,
    )
    t.match(await schemas({ description: 'x'.repeat(65_536) }), /^parametersSchema: /)
    let deep: object = {}
    for (let level = 0; level < 40; level++) deep = { properties: { a: deep } }
    t.match(await schemas(deep), /^parametersSchema: /)
    t.match(await refusal(http({ resultSchema: { type: 'text' } })), /^executor\.resultSchema: /)
    t.equal(
      await refusal(http({ resultSchema: 'text' })),
      'executor.resultSchema: Expected object, received string',
    )
    t.equal((await commit(id, { parametersSchema: {} })).status, 201, 'an empty schema takes anything')
    const local = {
      type: 'object',
      $defs: { a: { type: 'string' } },
      properties: { a: { $ref: '#/$defs/a' } },
    }
    t.equal((await commit(id, { parametersSchema: local })).status, 201)
  })

  t.test('text that could not be read back is refused', async t => {
    const nul = 'Text must not contain the NUL character.'
    t.equal(await refusal({ type: 'client' }, { parametersSchema: { description: 'a\u0000' } }), nul)
    t.equal(await refusal({ type: 'client' }, { parametersSchema: { properties: { '\u0000': {} } } }), nul)
    t.equal(await refusal(http({ query: [{ name: 'a', value: '\u0000' }] })), nul)
    t.equal(await refusal({ type: 'client' }, { description: 'a\u0000' }), nul)
    const half = 'Text must not contain half of a surrogate pair.'
    t.equal(await refusal({ type: 'client' }, { parametersSchema: { title: '\ud800' } }), half)
    await passes(
      http({ responseTransform: "function transform() { return '\\u0000' }" }),
      'as an escape in code',
    )
    t.equal((await commit(id, { parametersSchema: { title: '😀' } })).status, 201)
  })
})

t.test('a host that the operator allows may be private, at its port alone when one is given', async t => {
  const config = testConfig('postgres://ignored', { TOOL_ALLOW_PRIVATE_HOSTS: '127.0.0.1:9999,localhost' })
  const cp = await startControlPlane(t, { config })
  const { owner } = await team(cp)
  const { create, commit } = toolbox(cp, owner.session)
  const { id } = await create('private')
  const status = async (url: string) => (await commit(id, { executor: http({ url }) })).status
  t.equal(await status('http://127.0.0.1:9999/x'), 201)
  t.equal(await status('http://localhost:1234/x'), 201)
  t.equal(await status('http://127.0.0.1:9998/x'), 400)
  t.equal(await status('http://10.0.0.1/x'), 400)
})
