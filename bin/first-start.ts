/**
 * What the first start on an empty database leaves in it: an owner, a team, a personal API key, a virtual key, and for
 * each vendor key in the environment a connection with a few current models; with none, the demo model (spec 4,
 * section 1). All of it through the control plane's own functions.
 *
 * The secrets are shown once, at the end of the start. A start that is broken off before that would leave an owner whose
 * password nobody knows; so they wait in a file of DATA_DIR until they have been shown.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createFirstOwner, type FirstOwner } from '../control-plane/auth/first-owner.js'
import { connectSql } from '../control-plane/db/sql.js'
import { addDemoModel, followDemoProvider } from '../control-plane/demo/connection.js'
import type { Deps } from '../control-plane/deps.js'
import { addConnection } from '../control-plane/gateway/connections/change-connection.js'
import { STARTER_MODELS } from '../control-plane/gateway/models/price-table.js'
import { listModelRows } from '../control-plane/gateway/models/queries.js'
import { addModel } from '../control-plane/gateway/models/register-model.js'
import { mintVirtualKey } from '../control-plane/gateway/virtual-keys/change-virtual-key.js'
import { createJobs } from '../control-plane/jobs/enqueue.js'
import { createSandbox } from '../control-plane/sandbox/create-sandbox.js'
import { urlHost } from '../proxy/config.js'
import { connectLedger } from '../shared/ledger/connect.js'
import { createLogger } from '../shared/log/logger.js'
import { deriveSecret } from '../shared/secrets/derive.js'
import { createVault } from '../shared/secrets/vault.js'
import { type Programs, VENDOR_KEYS } from './start-environment.js'

export interface FirstStart {
  email: string
  password: string
  apiKey: string
  virtualKey: string
  /** Public names, the one for the printed commands first. */
  models: string[]
  /** Call it when they have been shown. */
  shown(): void
}

type Vendor = keyof typeof VENDOR_KEYS
const VENDOR_LABELS: Record<Vendor, string> = { openai: 'OpenAI', anthropic: 'Anthropic', google: 'Google' }

/** @returns null when the database has users already; then only the demo connections are brought up to date. */
export async function prepareTeam(
  { controlPlane: config }: Programs,
  env: NodeJS.ProcessEnv,
): Promise<FirstStart | null> {
  const sql = connectSql(config.DATABASE_URL, { deadlineMs: 20_000, max: 2, name: 'agh-start' })
  const log = createLogger('start', 'error')
  const ledger = await connectLedger({ redisUrl: config.REDIS_URL, databaseUrl: config.DATABASE_URL, log })
  const deps: Deps = {
    config,
    sql,
    ledger,
    vault: createVault([deriveSecret(config.AGH_SECRET, 'provider-keys')]),
    // Nobody is written to: the owner is whoever reads the terminal.
    mail: { send: async () => {}, close: () => {} },
    jobs: createJobs(),
    // Starts no thread unless it is used.
    sandbox: createSandbox(),
    log,
    now: Date.now,
  }
  // Not CONTROL_PLANE_URL: the demo provider is on this machine, whatever way the proxy takes.
  const address = `http://${urlHost(config.CONTROL_PLANE_HOST)}:${config.CONTROL_PLANE_PORT}`
  const unshown = join(config.DATA_DIR, 'first-owner.json')
  try {
    const keep = (owner: FirstOwner) => writeFileSync(unshown, JSON.stringify(owner), { mode: 0o600 })
    const owner = (await createFirstOwner(sql, keep)) ?? waiting(unshown)
    if (owner === null) {
      if (config.PROVIDER_PRIVATE_HOSTS === 'allow') await followDemoProvider(deps, address)
      return null
    }
    const models = await addModels(deps, owner, address, env)
    const { key } = await mintVirtualKey(deps, randomUUID(), { name: 'First key' }, owner)
    const { email, password, apiKey } = owner
    return { email, password, apiKey, virtualKey: key, models, shown: () => rmSync(unshown, { force: true }) }
  } finally {
    await ledger.close()
    await sql.end({ timeout: 5 })
  }
}

const waiting = (file: string): FirstOwner | null =>
  existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as FirstOwner) : null

/** @returns the public names of the team's models; none when only the demo is left and it may not be reached. */
async function addModels(
  deps: Deps,
  owner: FirstOwner,
  address: string,
  env: NodeJS.ProcessEnv,
): Promise<string[]> {
  // A start that was broken off may have come as far as this.
  const earlier = await listModelRows(deps.sql, owner.teamId)
  if (earlier.length > 0) return earlier.map(model => model.publicName)
  const names: string[] = []
  for (const [vendor, variable] of Object.entries(VENDOR_KEYS) as [Vendor, string][]) {
    const apiKey = env[variable]
    if (apiKey) names.push(...(await addVendor(deps, owner, vendor, apiKey)))
  }
  if (names.length > 0) return names
  if (deps.config.PROVIDER_PRIVATE_HOSTS === 'deny') return []
  return [await addDemoModel(deps, owner, address)]
}

async function addVendor(deps: Deps, owner: FirstOwner, vendor: Vendor, apiKey: string): Promise<string[]> {
  const connectionId = randomUUID()
  const label = VENDOR_LABELS[vendor]
  await addConnection(deps, { id: connectionId, provider: vendor, label, apiKey, config: {} }, owner)
  for (const name of STARTER_MODELS[vendor]) {
    await addModel(deps, owner, {
      id: randomUUID(),
      publicName: name,
      connectionId,
      upstreamModel: name,
    })
  }
  return [...STARTER_MODELS[vendor]]
}
