import { randomUUID } from 'node:crypto'
import type { Actor } from '../audit/record.js'
import type { Deps } from '../deps.js'
import { addConnection, changeConnection } from '../gateway/connections/change-connection.js'
import { addModel } from '../gateway/models/register-model.js'
import { listDemoConnections } from './queries.js'
import { DEMO_KEY, DEMO_MODEL, DEMO_PATH } from './routes.js'

/** USD per million tokens: small, but enough for a first call to show a cost. */
const DEMO_PRICING = {
  inputPerMTok: 0.5,
  outputPerMTok: 1.5,
  cachedInputPerMTok: null,
  cacheWritePerMTok: null,
}

const LABEL = 'Demo (built in)'

/** A connection to the demo provider, and its model under the name `demo`. */
export async function addDemoModel(deps: Deps, owner: Actor, controlPlaneUrl: string): Promise<string> {
  const id = randomUUID()
  const config = { base_url: controlPlaneUrl + DEMO_PATH }
  const input = {
    id,
    provider: 'openai_compatible' as const,
    label: LABEL,
    apiKey: DEMO_KEY,
    config,
  }
  await addConnection(deps, input, owner)
  await addModel(deps, owner, {
    id: randomUUID(),
    publicName: DEMO_MODEL,
    connectionId: id,
    upstreamModel: DEMO_MODEL,
    pricing: DEMO_PRICING,
    maxOutputTokens: 4096,
    contextWindow: null,
  })
  return DEMO_MODEL
}

/** The control plane may listen elsewhere than at the last start; the connections to its demo provider follow it. */
export async function followDemoProvider(deps: Deps, controlPlaneUrl: string): Promise<void> {
  const baseUrl = controlPlaneUrl + DEMO_PATH
  const mark = { label: LABEL, keyLastFour: DEMO_KEY.slice(-4), path: DEMO_PATH }
  for (const { teamId, id, config } of await listDemoConnections(deps.sql, mark)) {
    if (config.base_url === baseUrl) continue
    const moved = { config: { ...config, base_url: baseUrl }, apiKey: DEMO_KEY }
    await changeConnection(deps, { teamId, userId: null }, id, moved)
  }
}
