import { randomUUID } from 'node:crypto'
import t from 'tap'
import {
  createConnection,
  deleteConnection,
  getConnection,
  listConnections,
  updateConnection,
} from '../../../shared/contract/connections.js'
import { createModel } from '../../../shared/contract/models.js'
import { startControlPlane, testConfig } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

const KEY = 'sk-the-secret-of-the-provider-9876'
const OPENAI = { provider: 'openai', label: 'Main', apiKey: KEY } as const

t.test('connections: 2xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.admin.session

  t.test('the key is masked for ever: no answer and no row holds it in the clear', async t => {
    const created = await cp.call(createConnection, { as, body: OPENAI })
    t.equal(created.status, 201)
    t.match(created.body, { provider: 'openai', label: 'Main', keyLastFour: '9876', config: {} })
    t.equal(created.body.createdBy, ours.admin.userId)
    const { id } = created.body
    const read = await cp.call(getConnection, { as: ours.viewer.session, params: { id } })
    const listed = await cp.call(listConnections, { as: ours.teamKey })
    const patched = await cp.call(updateConnection, { as, params: { id }, body: { label: 'Renamed' } })
    for (const answer of [created, read, listed, patched]) {
      t.notMatch(answer.text, KEY.slice(0, 20))
      t.notMatch(answer.text, 'sealed')
    }
    t.same(Object.keys(read.body).sort(), [
      'config',
      'createdAt',
      'createdBy',
      'id',
      'keyLastFour',
      'label',
      'provider',
      'updatedAt',
    ])
    const [row] = await cp.deps.sql<
      { sealedKey: string }[]
    >`select sealed_key from connections where id = ${id}`
    t.notMatch(row?.sealedKey, KEY)
    t.equal(cp.deps.vault.open(row?.sealedKey ?? '', { teamId: ours.teamId, rowId: id }), KEY)
    t.throws(() => cp.deps.vault.open(row?.sealedKey ?? '', { teamId: ours.teamId, rowId: randomUUID() }))
  })

  t.test('the list is newest first', async t => {
    const label = async () => (await cp.call(listConnections, { as })).body.map(row => row.label)
    await cp.call(createConnection, { as, body: { ...OPENAI, label: 'Second' } })
    await cp.call(createConnection, { as, body: { ...OPENAI, label: 'Third' } })
    t.same((await label()).slice(0, 2), ['Third', 'Second'])
  })

  t.test('a new apiKey rotates the stored one', async t => {
    const { id } = (await cp.call(createConnection, { as, body: OPENAI })).body
    const rotated = await cp.call(updateConnection, {
      as,
      params: { id },
      body: { apiKey: ' sk-next-1234\n' },
    })
    t.equal(rotated.body.keyLastFour, '1234')
    const [row] = await cp.deps.sql<
      { sealedKey: string }[]
    >`select sealed_key from connections where id = ${id}`
    t.equal(cp.deps.vault.open(row?.sealedKey ?? '', { teamId: ours.teamId, rowId: id }), 'sk-next-1234')
  })

  t.test('base_url loses its trailing slash; other config keys are kept as sent', async t => {
    const config = {
      base_url: 'HTTPS://Example.com:443/v1//',
      organization: 'org_1',
      nested_key: { inner_key: 1 },
    }
    const body = { ...OPENAI, provider: 'openai_compatible', config } as const
    const created = await cp.call(createConnection, { as, body })
    t.same(created.body.config, { ...config, base_url: 'https://example.com/v1' })
  })

  t.test('a model server of one’s own is allowed by default', async t => {
    const config = { base_url: 'http://127.0.0.1:11434/v1' }
    const created = await cp.call(createConnection, {
      as,
      body: { ...OPENAI, provider: 'openai_compatible', config },
    })
    t.equal(created.status, 201)
  })

  t.test('a base_url may move within its origin without a new key', async t => {
    const { id } = (await cp.call(createConnection, { as, body: OPENAI })).body
    const config = { base_url: 'https://api.openai.com/v2/' }
    const moved = await cp.call(updateConnection, { as, params: { id }, body: { config } })
    t.same(moved.body.config, { base_url: 'https://api.openai.com/v2' })
  })

  t.test('a deleted connection is gone', async t => {
    const { id } = (await cp.call(createConnection, { as, body: OPENAI })).body
    t.equal((await cp.call(deleteConnection, { as, params: { id } })).status, 204)
    t.equal((await cp.call(getConnection, { as, params: { id } })).status, 404)
    t.equal((await cp.call(deleteConnection, { as, params: { id } })).status, 404)
  })
})

t.test('connections: 400', async t => {
  const cp = await startControlPlane(t)
  const { admin } = await team(cp)
  const as = admin.session
  const refusal = async (body: Record<string, unknown>) =>
    (await cp.call(createConnection, { as, body: { ...OPENAI, ...body } as never })).error

  t.test('openai_compatible requires base_url', async t => {
    const message = 'config.base_url: Required'
    t.same(await refusal({ provider: 'openai_compatible' }), { code: 'VALIDATION_ERROR', message })
    t.same(await refusal({ provider: 'openai_compatible', config: {} }), {
      code: 'VALIDATION_ERROR',
      message,
    })
  })

  t.test('base_url is a valid http or https URL without credentials, query or fragment', async t => {
    for (const base_url of ['not a url', 'ftp://example.com', 'file:///etc/passwd', '//example.com', ''])
      t.equal((await refusal({ config: { base_url } }))?.message, 'config.base_url: Invalid url', base_url)
    for (const base_url of ['https://user:pass@example.com/v1', 'https://user@example.com'])
      t.match((await refusal({ config: { base_url } }))?.message, 'credentials', base_url)
    for (const base_url of [
      'https://example.com/v1?x=1',
      'https://example.com/v1#',
      'https://example.com/v1?',
    ])
      t.match((await refusal({ config: { base_url } }))?.message, 'query or fragment', base_url)
  })

  t.test('link-local and metadata hosts are refused always', async t => {
    for (const host of [
      '169.254.169.254',
      '0xa9fea9fe',
      '[fe80::1]',
      '[::ffff:169.254.169.254]',
      'metadata.google.internal',
    ])
      t.match((await refusal({ config: { base_url: `http://${host}/v1` } }))?.message, 'not allowed', host)
  })

  t.test('fields are checked', async t => {
    t.equal((await refusal({ apiKey: undefined }))?.message, 'Required')
    t.equal((await refusal({ apiKey: '  ' }))?.message, 'String must contain at least 1 character(s)')
    t.equal((await refusal({ apiKey: 'two words' }))?.message, 'Invalid')
    t.equal((await refusal({ label: '' }))?.message, 'String must contain at least 1 character(s)')
    t.match((await refusal({ provider: 'azure' }))?.message, 'Invalid enum value')
  })

  t.test('moving the origin of base_url needs apiKey, from and to the default too', async t => {
    const message = 'Changing the origin of base_url needs apiKey.'
    const { id } = (await cp.call(createConnection, { as, body: OPENAI })).body
    const patch = (body: Record<string, unknown>) => cp.call(updateConnection, { as, params: { id }, body })
    for (const base_url of [
      'https://evil.example/v1',
      'http://api.openai.com/v1',
      'https://api.openai.com:8443/v1',
    ])
      t.same((await patch({ config: { base_url } })).error, { code: 'VALIDATION_ERROR', message }, base_url)
    t.equal(
      (await patch({ config: { base_url: 'https://other.example/v1' }, apiKey: 'sk-new-0001' })).status,
      200,
    )
    t.same((await patch({ config: {} })).error, { code: 'VALIDATION_ERROR', message })
    t.equal((await patch({ config: { base_url: 'https://other.example/v2' } })).status, 200)
  })

  t.test('provider is immutable: another one is refused, its own is ignored', async t => {
    const { id } = (await cp.call(createConnection, { as, body: OPENAI })).body
    const patch = (body: Record<string, unknown>) => cp.call(updateConnection, { as, params: { id }, body })
    t.equal((await patch({ provider: 'anthropic', label: 'x' })).error?.code, 'VALIDATION_ERROR')
    t.equal((await patch({ provider: 'openai', label: 'x' })).body.provider, 'openai')
  })

  t.test('an empty PATCH is refused', async t => {
    const { id } = (await cp.call(createConnection, { as, body: OPENAI })).body
    const { error } = await cp.call(updateConnection, { as, params: { id }, body: {} })
    t.equal(error?.message, 'At least one of label, config or apiKey must be provided.')
  })
})

t.test('PROVIDER_PRIVATE_HOSTS=deny refuses private hosts when they are written', async t => {
  const config = testConfig('postgres://127.0.0.1/unused', { PROVIDER_PRIVATE_HOSTS: 'deny' })
  const cp = await startControlPlane(t, { config })
  const { owner } = await team(cp)
  for (const host of [
    '127.0.0.1',
    'localhost',
    '10.0.0.7',
    '[::1]',
    '2130706433',
    'ollama',
    'gpu.internal',
  ]) {
    const body = { ...OPENAI, config: { base_url: `http://${host}:11434/v1` } }
    t.equal((await cp.call(createConnection, { as: owner.session, body })).status, 400, host)
  }
  const body = { ...OPENAI, config: { base_url: 'https://models.example.com/v1' } }
  t.equal((await cp.call(createConnection, { as: owner.session, body })).status, 201)
})

t.test('connections: 403, 404, 409', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const theirs = await team(cp)
  const { id } = (await cp.call(createConnection, { as: ours.owner.session, body: OPENAI })).body

  t.test('only owners and admins write; any role and a team-scoped key read', async t => {
    for (const as of [ours.editor.session, ours.viewer.personalKey, ours.teamKey]) {
      t.equal((await cp.call(createConnection, { as, body: OPENAI })).status, 403)
      t.equal((await cp.call(updateConnection, { as, params: { id }, body: { label: 'x' } })).status, 403)
      t.equal((await cp.call(deleteConnection, { as, params: { id } })).status, 403)
      t.equal((await cp.call(listConnections, { as })).status, 200)
      t.equal((await cp.call(getConnection, { as, params: { id } })).status, 200)
    }
    t.equal((await cp.call(listConnections, { as: ours.virtualKey })).status, 401)
  })

  t.test('another team’s connection answers byte for byte like a missing one', async t => {
    const as = theirs.owner.session
    for (const missing of [randomUUID(), 'not-a-uuid']) {
      const pairs = [
        [getConnection, {}],
        [updateConnection, { body: { label: 'x' } }],
        [deleteConnection, {}],
      ] as const
      for (const [endpoint, input] of pairs) {
        const foreign = await cp.call(endpoint, { as, params: { id }, ...input } as never)
        const absent = await cp.call(endpoint, { as, params: { id: missing }, ...input } as never)
        t.equal(foreign.status, 404)
        t.equal(foreign.text, absent.text)
        t.equal(foreign.error?.message, 'Connection not found.')
      }
    }
    t.same((await cp.call(listConnections, { as })).body, [])
  })

  t.test('a connection that models use cannot be deleted; the answer names them', async t => {
    const as = ours.owner.session
    for (const publicName of ['zeta', 'alpha'])
      await cp.call(createModel, { as, body: { publicName, connectionId: id, upstreamModel: 'gpt-4o' } })
    const { status, error } = await cp.call(deleteConnection, { as, params: { id } })
    t.equal(status, 409)
    t.same(error, { code: 'CONFLICT', message: 'The connection is used by models: alpha, zeta.' })
  })
})
