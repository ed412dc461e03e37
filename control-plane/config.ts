import { z } from 'zod'
import { readEnvironment, sharedEnvironment } from '../shared/config/environment.js'
import { internalToken } from '../shared/secrets/derive.js'

const environment = z.object({
  ...sharedEnvironment,
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }).describe('a postgres:// URL'),
  SMTP_URL: z
    .url({ protocol: /^smtps?$/ })
    .optional()
    .describe('an smtp:// or smtps:// URL'),
  MAIL_FROM: z
    .string()
    .regex(/^[^\r\n<>]*<?[^\s<>@]+@[^\s<>@]+>?$/)
    .default('agh <agh@localhost>')
    .describe('a sender such as agh <agh@example.com>'),
  SIGNUP: z.enum(['first', 'open', 'closed']).default('first').describe('first, open or closed'),
})

/** The control plane's environment under its own names, and what follows from it. */
export type Config = z.output<typeof environment> & {
  /** The public origin, without a trailing slash: APP_URL, else the proxy's own address. */
  appUrl: string
  /** What the proxy proves itself with. */
  internalToken: string
}

/** @throws ConfigError one line that names the variable, what it holds and what it may hold (spec 4, section 1). */
export function readConfig(env: Record<string, string | undefined> = process.env): Config {
  const read = readEnvironment(environment, env)
  return {
    ...read,
    appUrl: (read.APP_URL ?? originOf(read.HOST, read.PORT)).replace(/\/+$/, ''),
    internalToken: internalToken(read.AGH_SECRET),
  }
}

/** An address to listen on is not always one to go to: 0.0.0.0 and :: mean every interface. */
function originOf(host: string, port: number): string {
  if (host === '0.0.0.0' || host === '::') return `http://localhost:${port}`
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
