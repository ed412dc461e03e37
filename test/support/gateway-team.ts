import { randomBytes } from 'node:crypto'
import { createApiKey } from '../../shared/contract/api-keys.js'
import { signUp } from '../../shared/contract/auth.js'
import type { ProviderKind } from '../../shared/contract/common.js'
import { createConnection } from '../../shared/contract/connections.js'
import type { Endpoint, Result } from '../../shared/contract/endpoint.js'
import { createModel } from '../../shared/contract/models.js'
import { createVirtualKey } from '../../shared/contract/virtual-keys.js'
import type { CallInput, Credential } from './control-plane.js'
import type { System } from './system.js'

export interface GatewayTeam {
  /** The owner's session. */
  session: Credential
  /** The owner's personal API key. */
  apiKey: Credential
  connectionId: string
}

/** USD per million tokens: a call of some tokens costs a sum that one can follow. */
export const PRICING = { inputPerMTok: 10, outputPerMTok: 30, cachedInputPerMTok: 1, cacheWritePerMTok: null }

/** Calls an endpoint and insists on its success. */
export async function expect<E extends Endpoint>(
  system: System,
  endpoint: E,
  input: CallInput<E>,
): Promise<Result<E>> {
  const answer = await system.call(endpoint, input)
  if (answer.error !== null) throw new Error(`${endpoint.method} ${endpoint.path}: ${answer.text}`)
  return answer.body
}

/** A person signs up through the API, makes a key, and connects a provider: what the README tells a newcomer to do. */
export async function gatewayTeam(
  system: System,
  provider: ProviderKind,
  baseUrl: string,
): Promise<GatewayTeam> {
  const email = `owner-${randomBytes(4).toString('hex')}@agh.test`
  const body = { email, password: 'a long password' }
  const signedUp = await system.call(signUp, { body })
  const cookie = signedUp.headers['set-cookie']?.split(';')[0]
  if (cookie === undefined) throw new Error(`No session: ${signedUp.text}`)
  const session = { cookie }
  const { key } = await expect(system, createApiKey, { as: session, body: { name: 'CI' } })
  const apiKey = { key }
  const connection = await expect(system, createConnection, {
    as: apiKey,
    body: { provider, label: 'The fake', apiKey: 'sk-fake', config: { base_url: baseUrl } },
  })
  return { session, apiKey, connectionId: connection.id }
}

/** Registers a model under its own name, priced. */
export const addModel = (system: System, team: GatewayTeam, name: string) =>
  expect(system, createModel, {
    as: team.apiKey,
    body: { publicName: name, connectionId: team.connectionId, upstreamModel: name, pricing: PRICING },
  })

/** @returns the virtual key's id, and itself as a credential. */
export async function addVirtualKey(
  system: System,
  team: GatewayTeam,
  settings: Omit<NonNullable<CallInput<typeof createVirtualKey>['body']>, 'name'> = {},
): Promise<{ id: string; key: string }> {
  return expect(system, createVirtualKey, { as: team.apiKey, body: { name: 'app', ...settings } })
}

/** A completion as an application sends it. */
export const complete = (
  system: Pick<System, 'baseUrl'>,
  key: string,
  body: object,
  headers: Record<string, string> = {},
) =>
  fetch(`${system.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
