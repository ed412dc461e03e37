import { z } from 'zod'
import { type AllowedHost, allowedHost } from '../network/allowed-hosts.js'
import { withoutCredentials } from './without-credentials.js'

/** A start-up error that is one line for the person at the terminal, without a stack. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigError'
  }
}

/**
 * Reads a process's environment.
 *
 * @throws ConfigError one line that names the variable, what it holds and what it may hold (spec 4, section 1).
 *   A URL's credentials and any secret's value are masked.
 */
export function readEnvironment<S extends z.ZodObject>(
  schema: S,
  env: Record<string, string | undefined>,
): z.output<S> {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  )
  const result = schema.safeParse(given)
  if (result.success) return result.data
  const issue = result.error.issues[0]
  const name = String(issue?.path[0] ?? 'environment')
  const field = schema.shape[name] as z.ZodType | undefined
  const allowed = field?.description ?? issue?.message ?? 'another value'
  const held = given[name]
  throw new ConfigError(
    held === undefined
      ? `${name} is not set; it may hold ${allowed}.`
      : `${name} holds ${JSON.stringify(masked(name, held))}; it may hold ${allowed}.`,
  )
}

function masked(name: string, value: string): string {
  if (/SECRET|TOKEN|PASSWORD|_KEY$/.test(name)) return `${value.length} characters`
  return name.endsWith('_URL') || value.includes('://') ? withoutCredentials(value) : value
}

const portNumber = z.coerce.number().int().min(0).max(65535)

const hosts = z.string().transform((text, context) => {
  const entries = text.split(',').map(entry => entry.trim())
  const read = entries.filter(entry => entry !== '').map(allowedHost)
  if (!read.includes(null)) return read.filter(entry => entry !== null)
  context.addIssue({ code: 'custom' })
  return z.NEVER
})

/** The variables that both programs read (spec 4, section 1). Each description says what the variable may hold. */
export const sharedEnvironment = {
  HOST: z.string().default('127.0.0.1').describe('a host name or an IP address'),
  PORT: portNumber.default(8787).describe('a port from 0 to 65535'),
  CONTROL_PLANE_HOST: z.string().default('127.0.0.1').describe('a host name or an IP address'),
  CONTROL_PLANE_PORT: portNumber.default(8788).describe('a port from 0 to 65535'),
  DATABASE_URL: z
    .url({ protocol: /^postgres(ql)?$/ })
    .optional()
    .describe('a postgres:// URL'),
  REDIS_URL: z
    .string()
    .regex(/^rediss?:\/\/[^\s]+$/)
    .optional()
    .describe('a redis:// or rediss:// URL; several, separated by commas, name a cluster'),
  DATA_DIR: z.string().default('./data').describe('a directory'),
  AGH_SECRET: z
    .string()
    .refine(text => Buffer.byteLength(text) >= 32)
    .describe('at least 32 bytes'),
  APP_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('an http:// or https:// URL'),
  METRICS_TOKEN: z.string().optional().describe('any text'),
  PROVIDER_PRIVATE_HOSTS: z.enum(['allow', 'deny']).default('allow').describe('allow or deny'),
  LEDGER_DOWN: z.enum(['closed', 'open']).default('closed').describe('closed or open'),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('fatal, error, warn, info, debug, trace or silent'),
  TOOL_ALLOW_PRIVATE_HOSTS: hosts
    .default([] as AllowedHost[])
    .describe('host or host:port entries, separated by commas'),
}
