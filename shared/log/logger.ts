import { destination, type Logger, pino } from 'pino'

export type { Logger } from 'pino'

/**
 * Names of fields that must never reach a log: credentials, prompts, completions (spec 4, section 1, LOG_LEVEL).
 * They are censored at the top level and one and two levels down, which is as deep as agh's own log objects go.
 */
const secretFields = [
  'authorization',
  'cookie',
  'password',
  'passwordHash',
  'apiKey',
  'key',
  'sealedKey',
  'secret',
  'token',
  'prompt',
  'messages',
  'completion',
  'input',
  'output',
  'variables',
]

/**
 * Structured logs, one JSON object a line, on standard output.
 *
 * @param name the program: `proxy` or `control-plane`.
 * @param level a value of LOG_LEVEL.
 */
export function createLogger(name: string, level: string): Logger {
  const headerFields = ['["set-cookie"]', '["x-agh-internal"]', '["x-api-key"]', '["x-goog-api-key"]']
  const dotted = secretFields.flatMap(field => [field, `*.${field}`, `*.*.${field}`])
  const bracketed = headerFields.flatMap(field => [field, `*${field}`, `*.*${field}`])
  return pino(
    {
      name,
      level,
      base: { name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: [...dotted, ...bracketed], censor: '[redacted]' },
      serializers: { error: pino.stdSerializers.err, err: pino.stdSerializers.err },
    },
    destination({ fd: 1, sync: true }),
  )
}
