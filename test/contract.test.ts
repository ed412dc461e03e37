/**
 * Walks every endpoint of the contract: it is served, it refuses each credential and role that it must, and another
 * team's resource is byte for byte the answer that an unknown id gets. The expectations stand here in full and are not
 * read from the server's policy.
 */
import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import type { Role } from '../shared/contract/common.js'
import type { Access, Endpoint } from '../shared/contract/endpoint.js'
import { endpoints } from '../shared/contract/index.js'
import {
  type Answered,
  type ControlPlane,
  type Credential,
  startControlPlane,
} from './support/control-plane.js'
import { createForeignResources, foreignCases, snapshotOf } from './support/foreign.js'
import { type SeededTeam, team } from './support/seed.js'

const refusals = {
  401: { code: 'UNAUTHORIZED', message: 'Authentication required.' },
  role: { code: 'FORBIDDEN', message: 'Insufficient role for this action.' },
  person: { code: 'FORBIDDEN', message: 'Team-scoped keys carry no user identity.' },
}
/** `pass` is whatever the handler then says about an empty request: anything but the three refusals. */
type Verdict = 'pass' | keyof typeof refusals

interface Expected {
  session: Record<Role, Verdict>
  personalKey: Record<Role, Verdict>
  teamKey: Verdict
  virtualKey: Verdict
  nobody: Verdict
  internal: Verdict
}

const all = (verdict: Verdict): Record<Role, Verdict> => ({
  owner: verdict,
  admin: verdict,
  editor: verdict,
  viewer: verdict,
})
const pass = all('pass')
const none = all(401)
const writers: Record<Role, Verdict> = { ...pass, viewer: 'role' }
const managers: Record<Role, Verdict> = { ...writers, editor: 'role' }
const owners: Record<Role, Verdict> = { ...managers, admin: 'role' }
const refused = { virtualKey: 401, nobody: 401, internal: 401 } as const

const expected: Record<Access, Expected> = {
  public: {
    session: pass,
    personalKey: pass,
    teamKey: 'pass',
    virtualKey: 'pass',
    nobody: 'pass',
    internal: 'pass',
  },
  member: { session: pass, personalKey: pass, teamKey: 'pass', ...refused },
  person: { session: pass, personalKey: pass, teamKey: 'person', ...refused },
  writer: { session: writers, personalKey: writers, teamKey: 'role', ...refused },
  manager: { session: managers, personalKey: managers, teamKey: 'role', ...refused },
  owner: { session: owners, personalKey: owners, teamKey: 'role', ...refused },
  session: { session: pass, personalKey: none, teamKey: 401, ...refused },
  'session-manager': { session: managers, personalKey: none, teamKey: 401, ...refused },
  ingest: { session: pass, personalKey: pass, teamKey: 'pass', ...refused, virtualKey: 'pass' },
  'model-list': { session: pass, personalKey: pass, teamKey: 'pass', ...refused, virtualKey: 'pass' },
  completion: { session: writers, personalKey: writers, teamKey: 'pass', ...refused, virtualKey: 'pass' },
  internal: { session: none, personalKey: none, teamKey: 401, ...refused, internal: 'pass' },
}

/** The proxy answers these itself; its own suite walks their credentials. */
const served = endpoints.filter(endpoint => endpoint.access !== 'completion')
const nameOf = ({ method, path }: Endpoint) => `${method} ${path}`

test('no two endpoints share a method and a path', async t => {
  const names = endpoints.map(endpoint => nameOf(endpoint).replace(/:\w+/g, ':'))
  t.same(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  )
})

test('every endpoint is served and refuses each credential and role that it must', async t => {
  const cp = await startControlPlane(t)
  for (const endpoint of served) {
    const people = await team(cp)
    const wanted = expected[endpoint.access]
    const verdicts: Record<string, Verdict> = {}
    const wantedFlat: Record<string, Verdict> = {}
    for (const [name, as, verdict] of callers(cp, people, wanted)) {
      wantedFlat[name] = verdict
      verdicts[name] = verdictOf(await emptyCall(cp, endpoint, as), t.fail.bind(t))
    }
    t.same(verdicts, wantedFlat, nameOf(endpoint))
  }
})

test('a cookie-authenticated write is refused unless it comes from the service’s own pages', async t => {
  const cp = await startControlPlane(t)
  const accesses: Access[] = [
    'member',
    'person',
    'writer',
    'manager',
    'owner',
    'session',
    'session-manager',
    'ingest',
  ]
  for (const endpoint of served.filter(one => accesses.includes(one.access))) {
    const { owner } = await team(cp)
    const verdict = async (headers: Record<string, string>) =>
      verdictOf(
        await emptyCall(cp, endpoint, { cookie: owner.session.cookie ?? '' }, headers),
        t.fail.bind(t),
      )
    const isRead = endpoint.method === 'GET'
    for (const headers of foreignPages) {
      const answer = await emptyCall(cp, endpoint, owner.session, headers)
      if (isRead) t.not(answer.status, 403, nameOf(endpoint))
      else t.same(answer.error, { code: 'FORBIDDEN', message: 'Cross-site requests are not allowed.' })
    }
    t.equal(await verdict({ origin: 'http://agh.test' }), 'pass', nameOf(endpoint))
  }
})

test('a team’s resource is, for another team, byte for byte an unknown one, and stays as it is', async t => {
  const cp = await startControlPlane(t)
  const [mine, foreign] = [await team(cp), await team(cp)]
  const resources = await createForeignResources(cp, foreign)
  const withParams = served.filter(
    ({ params, access }) => params !== undefined && access !== 'public' && access !== 'internal',
  )
  for (const endpoint of withParams) {
    const found = foreignCases.find(one => one.matches.test(endpoint.path))
    if (found === undefined) {
      t.fail(`${nameOf(endpoint)} has no case in test/support/foreign.ts`)
      continue
    }
    if (found.makes?.includes(endpoint.method)) continue
    const body = found.bodies?.[endpoint.method]
    const ask = async (params: Record<string, string>) =>
      (await cp.call(endpoint, {
        as: mine.owner.session,
        params,
        ...(body !== undefined && { body }),
      })) as Answered<unknown>
    const theirs = await ask(found.params(resources, mine))
    const unknown = await ask(found.unknown(mine))
    t.equal(theirs.status, 404, nameOf(endpoint))
    t.equal(theirs.text, unknown.text, nameOf(endpoint))
  }
  t.same(await snapshotOf(cp, foreign.teamId), resources.snapshot, 'nothing of theirs changed')
})

const foreignPages: Record<string, string>[] = [
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { origin: 'http://agh.test.evil.example' },
  { origin: '', 'sec-fetch-site': 'cross-site' },
  { origin: '', 'sec-fetch-site': 'same-site' },
]

function callers(cp: ControlPlane, people: SeededTeam, wanted: Expected): [string, Credential, Verdict][] {
  const roles = ['viewer', 'editor', 'admin', 'owner'] as const
  return [
    ['nobody', {}, wanted.nobody],
    ['a stranger’s key', { key: `aghapi_sk_${'x'.repeat(40)}` }, wanted.nobody],
    ['a stranger’s session', { cookie: `agh_session=${'x'.repeat(40)}` }, wanted.nobody],
    ['virtual key', people.virtualKey, wanted.virtualKey],
    ['team key', people.teamKey, wanted.teamKey],
    ['internal', { key: cp.deps.config.internalToken }, wanted.internal],
    ...roles.map((role): [string, Credential, Verdict] => [
      `${role}’s key`,
      people[role].personalKey,
      wanted.personalKey[role],
    ]),
    // Sessions last: signing out is one of the endpoints.
    ...roles.map((role): [string, Credential, Verdict] => [
      `${role}’s session`,
      people[role].session,
      wanted.session[role],
    ]),
  ]
}

function emptyCall(
  cp: ControlPlane,
  endpoint: Endpoint,
  as: Credential,
  headers: Record<string, string> = {},
): Promise<Answered<unknown>> {
  const names = [...endpoint.path.matchAll(/:(\w+)/g)].map(match => match[1] ?? '')
  const params = Object.fromEntries(names.map(name => [name, randomUUID()]))
  const call = cp.call as (endpoint: Endpoint, input: object) => Promise<Answered<unknown>>
  return call(endpoint, { params, as, headers, ...(endpoint.method !== 'GET' && { body: {} }) })
}

function verdictOf(answer: Answered<unknown>, fail: (message: string) => void): Verdict {
  if (answer.status >= 500) fail(answer.text)
  const matched = Object.entries(refusals).find(
    ([, refusal]) => answer.error?.code === refusal.code && answer.error.message === refusal.message,
  )
  return matched === undefined ? 'pass' : matched[0] === '401' ? 401 : (matched[0] as Verdict)
}
