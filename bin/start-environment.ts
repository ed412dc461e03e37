/** The environment of `agh start`, and what it hands to the programs that it starts. */
import { z } from 'zod'
import { type Config, readConfig } from '../control-plane/config.js'
import { type ProxyConfig, readProxyConfig } from '../proxy/config.js'
import { readEnvironment, sharedEnvironment } from '../shared/config/environment.js'

/** A vendor's own variable, and the provider that it stands for (spec 4, section 1). */
export const VENDOR_KEYS = {
  openai: 'OPENAI_API_KEY',
  anthropic: 'ANTHROPIC_API_KEY',
  google: 'GEMINI_API_KEY',
} as const

const schema = z.object({
  ...sharedEnvironment,
  // Made at the first start when unset; the rest of its rule is the same.
  AGH_SECRET: sharedEnvironment.AGH_SECRET.optional().describe('at least 32 bytes'),
})

export type StartEnvironment = z.output<typeof schema>

/** @throws ConfigError one line for the first invalid variable. */
export const readStartEnvironment = (env: NodeJS.ProcessEnv): StartEnvironment => readEnvironment(schema, env)

export interface Settled {
  DATABASE_URL: string
  AGH_SECRET: string
  DATA_DIR: string
  PORT: number
  CONTROL_PLANE_PORT: number
}

export interface Programs {
  env: NodeJS.ProcessEnv
  proxy: ProxyConfig
  controlPlane: Config
}

/**
 * The environment of both programs: the user's own, with what the start has settled. Vendor keys stay out of it, they
 * are in the database, encrypted. @throws ConfigError for variables that only one of them reads.
 */
export function programEnvironment(env: NodeJS.ProcessEnv, settled: Settled): Programs {
  const merged: NodeJS.ProcessEnv = { PROXY_WORKERS: '1', ...withoutVendorKeys(env) }
  for (const [name, value] of Object.entries(settled)) merged[name] = String(value)
  return { env: merged, proxy: readProxyConfig(merged), controlPlane: readConfig(merged) }
}

function withoutVendorKeys(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const vendor: readonly string[] = Object.values(VENDOR_KEYS)
  return Object.fromEntries(Object.entries(env).filter(([name]) => !vendor.includes(name)))
}
