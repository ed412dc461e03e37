/** A fake provider, the two programs, and a team with one model and one key: where most completion tests start. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { readTrace } from '../../shared/contract/traces.js'
import { type FakeProvider, startFakeProvider } from './fake-provider.js'
import { addModel, addVirtualKey, type GatewayTeam, gatewayTeam } from './gateway-team.js'
import { type System, startSystem } from './system.js'

export const MODEL = 'gpt-fake'
export const hello = { model: MODEL, messages: [{ role: 'user', content: 'Hello' }] }

export interface Scene {
  system: System
  fake: FakeProvider
  team: GatewayTeam
  key: string
}

export async function scene(t: Test, redisUrl?: string): Promise<Scene> {
  const fake = await startFakeProvider()
  t.teardown(() => fake.stop())
  const system = await startSystem(t, redisUrl === undefined ? {} : { redisUrl })
  const team = await gatewayTeam(system, 'openai_compatible', fake.baseUrl('openai'))
  await addModel(system, team, MODEL)
  const { key } = await addVirtualKey(system, team)
  return { system, fake, team, key }
}

/** A trace with at least `spans` spans, as soon as it has them. */
export async function traceOf({ system, team }: Scene, id: string | null, spans = 1) {
  for (let attempt = 0; attempt < 200; attempt++) {
    const answer = await system.call(readTrace, { as: team.apiKey, params: { id: id ?? '' } })
    if (answer.error === null && answer.body.spans.length >= spans) return answer.body
    await sleep(25)
  }
  throw new Error(`trace ${id} did not arrive with ${spans} spans`)
}

export const errorOf = async (response: Response) => {
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  return `${response.status} ${error.code} ${error.message}`
}
