import { type Test, test } from 'tap'
import { acceptInvite, getMe, switchTeam } from '../../shared/contract/auth.js'
import { createInvite, listMembers } from '../../shared/contract/teams.js'
import { addModel, complete, expect, gatewayTeam } from '../support/gateway-team.js'
import { testRedis } from '../support/redis.js'
import { errorOf, hello, scene } from '../support/scene.js'

async function switching(t: Test, redisUrl?: string): Promise<void> {
  const { system, fake, team } = await scene(t, redisUrl)
  const other = await gatewayTeam(system, 'openai_compatible', fake.baseUrl('openai'))
  await addModel(system, other, 'theirs')
  const { user, team: mine } = await expect(system, getMe, { as: team.session })
  const { team: theirs } = await expect(system, getMe, { as: other.session })
  const invite = await expect(system, createInvite, {
    as: other.session,
    params: { id: theirs.id },
    body: { email: user?.email ?? '', role: 'editor' },
  })
  const token = invite.url.split('/').at(-1) ?? ''
  await expect(system, acceptInvite, { as: team.session, params: { token }, body: {} })
  t.equal(
    (await expect(system, listMembers, { as: other.session, params: { id: theirs.id } })).data.length,
    2,
  )

  const cookie = { cookie: (team.session as { cookie: string }).cookie, origin: 'http://agh.test' }
  const ask = async (model: string) => {
    const response = await fetch(`${system.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...cookie },
      body: JSON.stringify({ ...hello, model }),
    })
    return response.status === 200 ? 'answered' : errorOf(response)
  }
  for (let round = 0; round < 4; round++) {
    await expect(system, switchTeam, { as: team.session, body: { teamId: theirs.id } })
    t.equal(await ask('theirs'), 'answered')
    t.match(await ask(hello.model), /^400 VALIDATION_ERROR Model/)
    await expect(system, switchTeam, { as: team.session, body: { teamId: mine.id } })
    t.equal(await ask(hello.model), 'answered')
    t.match(await ask('theirs'), /^400 VALIDATION_ERROR Model/)
  }
  t.equal((await complete(system, 'agh_sk_nobody', hello)).status, 401)
}

test('a switched session acts in its new team with the very next call, on Redis', async t => {
  const redis = testRedis(t)
  if (redis !== null) await switching(t, redis.url)
})

test('a switched session acts in its new team with the very next call, on PostgreSQL', async t =>
  switching(t))
