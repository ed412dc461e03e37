import { pino } from 'pino'
import t from 'tap'
import { openSecrets } from '../../../control-plane/secrets/secrets.js'
import { deleteSecret, listSecrets, setSecret } from '../../../shared/contract/secrets.js'
import { startControlPlane } from '../../support/control-plane.js'
import { type SeededTeam, team } from '../../support/seed.js'

const VALUE = 'canary-value-of-a-secret'

t.test('secrets: 200 and 204', async t => {
  const cp = await startControlPlane(t)
  const { teamId, owner, admin, viewer, teamKey } = await team(cp)
  const put = (name: string, value: string, as = owner.session) =>
    cp.call(setSecret, { as, params: { name }, body: { value } })

  t.test(
    'a secret is set, replaced, listed by name and forgotten, and its value is never answered',
    async t => {
      const before = Date.now()
      const set = await put('B_KEY', VALUE)
      t.equal(set.status, 200)
      t.same(Object.keys(set.body).sort(), ['name', 'updatedAt'])
      t.equal(set.body.name, 'B_KEY')
      t.ok(Date.parse(set.body.updatedAt) >= before - 1)
      await put('A', VALUE, admin.personalKey)
      await put(`Z${'9'.repeat(63)}`, VALUE)
      const replaced = await put('B_KEY', 'another value')
      for (const as of [owner.session, viewer.session, viewer.personalKey, teamKey]) {
        const list = await cp.call(listSecrets, { as })
        t.same(
          list.body.map(row => row.name),
          ['A', 'B_KEY', `Z${'9'.repeat(63)}`],
        )
        t.equal(list.body[1]?.updatedAt, replaced.body.updatedAt)
        t.notMatch(list.text + set.text, VALUE)
      }
      t.same(
        await openSecrets(cp.deps, teamId, ['A', 'B_KEY', 'NONE']),
        new Map([
          ['A', VALUE],
          ['B_KEY', 'another value'],
        ]),
      )
      const gone = await cp.call(deleteSecret, { as: owner.session, params: { name: 'A' } })
      t.equal(gone.status, 204)
      t.equal(gone.text, '')
      const again = await cp.call(deleteSecret, { as: owner.session, params: { name: 'A' } })
      t.same(again.error, { code: 'NOT_FOUND', message: 'Secret not found.' })
      t.equal(again.status, 404)
    },
  )

  t.test('values are encrypted where they lie, bound to their team and row', async t => {
    await put('SEALED', VALUE)
    await put('OTHER', 'other')
    const { sql } = cp.deps
    const [row] = await sql`select * from secrets where team_id = ${teamId} and name = 'SEALED'`
    t.match(row?.sealedValue, /^v1\./)
    t.notMatch(JSON.stringify(row), VALUE)
    await sql`update secrets set sealed_value = ${row?.sealedValue} where team_id = ${teamId} and name = 'OTHER'`
    await t.rejects(openSecrets(cp.deps, teamId, ['OTHER']), 'a seal copied to another row does not open')
    t.equal((await openSecrets(cp.deps, teamId, ['SEALED'])).get('SEALED'), VALUE)
    const theirs = await team(cp)
    await sql`update secrets set team_id = ${theirs.teamId} where team_id = ${teamId} and name = 'SEALED'`
    await t.rejects(openSecrets(cp.deps, theirs.teamId, ['SEALED']), 'nor in another team')
    await sql`delete from secrets where name in ('SEALED', 'OTHER')`
  })

  t.test('two writers of one secret at once leave one that opens', async t => {
    const values = Array.from({ length: 8 }, (_, index) => `value ${index}`)
    const answers = await Promise.all(values.map(value => put('RACED', value)))
    t.same([...new Set(answers.map(answer => answer.status))], [200])
    const stored = (await openSecrets(cp.deps, teamId, ['RACED'])).get('RACED')
    t.ok(stored !== undefined && values.includes(stored))
  })
})

t.test('secrets: 4xx', async t => {
  const cp = await startControlPlane(t)
  const ours = await team(cp)
  const as = ours.owner.session

  t.test('names and values are checked', async t => {
    const refusal = async (name: string, body: object) => {
      const { status, error } = await cp.call(setSecret, { as, params: { name }, body: body as never })
      t.equal(status, 400, name)
      t.equal(error?.code, 'VALIDATION_ERROR')
      return error?.message
    }
    const pattern = 'A secret’s name must match ^[A-Z][A-Z0-9_]{0,63}$.'
    for (const name of ['lower', '_A', '9A', 'A-B', 'A B', 'Ä', 'A'.repeat(65), 'A\n', 'A\u0000']) {
      t.equal(await refusal(name, { value: VALUE }), pattern)
    }
    t.equal(await refusal('A', {}), 'Required')
    t.equal(await refusal('A', { value: '' }), 'String must contain at least 1 character(s)')
    t.equal(await refusal('A', { value: 5 }), 'Expected string, received number')
    t.equal(
      await refusal('A', { value: 'x'.repeat(16_385) }),
      'String must contain at most 16384 character(s)',
    )
  })

  t.test('only owners and admins write, any role lists', async t => {
    for (const caller of [ours.editor.session, ours.viewer.personalKey, ours.teamKey]) {
      const set = await cp.call(setSecret, { as: caller, params: { name: 'A' }, body: { value: VALUE } })
      t.equal(set.status, 403)
      t.equal((await cp.call(deleteSecret, { as: caller, params: { name: 'A' } })).status, 403)
      t.equal((await cp.call(listSecrets, { as: caller })).status, 200)
    }
    t.equal((await cp.call(listSecrets, { as: ours.virtualKey })).status, 401)
  })

  t.test('another team’s secret of the same name is another one', async t => {
    const theirs = await team(cp)
    const set = (who: SeededTeam, value: string) =>
      cp.call(setSecret, { as: who.owner.session, params: { name: 'SHARED' }, body: { value } })
    await set(theirs, 'theirs')
    const missing = await cp.call(deleteSecret, { as, params: { name: 'SHARED' } })
    const unknown = await cp.call(deleteSecret, { as, params: { name: 'UNKNOWN' } })
    t.equal(missing.text, unknown.text)
    t.same((await cp.call(listSecrets, { as })).body, [])
    await set(ours, 'ours')
    t.equal((await openSecrets(cp.deps, theirs.teamId, ['SHARED'])).get('SHARED'), 'theirs')
    t.equal((await openSecrets(cp.deps, ours.teamId, ['SHARED'])).get('SHARED'), 'ours')
  })
})

t.test('setting and forgetting a secret is recorded without its value', async t => {
  const cp = await startControlPlane(t)
  const { teamId, admin } = await team(cp)
  const as = admin.session
  await cp.call(setSecret, { as, params: { name: 'A_KEY' }, body: { value: VALUE } })
  await cp.call(deleteSecret, { as, params: { name: 'A_KEY' } })
  await cp.call(deleteSecret, { as, params: { name: 'A_KEY' } })
  const rows = await cp.deps.sql`
    select event, actor_id, metadata from audit_events where team_id = ${teamId} order by position`
  t.same(
    [...rows],
    [
      { event: 'secret_set', actorId: admin.userId, metadata: { name: 'A_KEY', removed: false } },
      { event: 'secret_set', actorId: admin.userId, metadata: { name: 'A_KEY', removed: true } },
    ],
  )
})

t.test('a secret’s value is in no line of the log, whatever comes of the request', async t => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const cp = await startControlPlane(t, { log })
  const { owner, viewer } = await team(cp)
  const put = (name: string, value: string, as = owner.session) =>
    cp.call(setSecret, { as, params: { name }, body: { value } })
  t.equal((await put('A', VALUE)).status, 200)
  t.equal((await put('bad', VALUE)).status, 400)
  t.equal((await put('A', VALUE.repeat(1_000))).status, 400)
  t.equal((await put('A', VALUE, viewer.session)).status, 403)
  await cp.deps.sql`alter table secrets rename to elsewhere`
  const failed = await put('A', VALUE)
  t.equal(failed.status, 500)
  t.notMatch(failed.text, VALUE)
  t.ok(lines.some(line => line.includes('request failed')))
  t.notMatch(lines.join(''), VALUE)
})
