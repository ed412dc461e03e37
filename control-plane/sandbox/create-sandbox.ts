import { parseGuestJson } from './guest-json.js'
import type { Outcome } from './messages.js'
import type { Sandbox, Verdict } from './sandbox.js'
import { type PoolSettings, WorkerPool } from './worker-pool.js'

/** Measured in the reliability notes, 5.2: an honest transform takes 0.6 ms, a killed worker is back after some 60. */
const DEFAULTS: PoolSettings = {
  size: 2,
  interruptMs: 50,
  wallMs: 150,
  waitingPerTeam: 64,
  waitingMax: 512,
}
/** UTF-16 units. A response of 1 MB and what surrounds it; sources and schemas are written by people. */
const INPUT_MAX = 4 * 1024 * 1024
const SOURCE_MAX = 64 * 1024
const SCHEMA_MAX = 64 * 1024

/** The sandbox of a process. No thread is started before it is used. */
export function createSandbox(settings: Partial<PoolSettings> = {}): Sandbox {
  const pool = new WorkerPool({ ...DEFAULTS, ...settings })
  return {
    checkTransform: async (source, team = '') => {
      if (source.length > SOURCE_MAX) return tooLong('The source')
      return withValue(await pool.run({ kind: 'check-transform', source }, team), () => null)
    },
    runTransform: async (source, input, team = '') => {
      const text = JSON.stringify(input) ?? 'null'
      if (text.length > INPUT_MAX) return tooLong('The input', '4 MB')
      return withValue(await pool.run({ kind: 'run-transform', source, input: text }, team), value => value)
    },
    checkSchema: async (schema, team = '') => {
      const text = schemaText(schema)
      if (text === null) return { ok: false, message: 'It must be a JSON object.' }
      if (text.length > SCHEMA_MAX) return tooLong('The schema')
      return withValue(await pool.run({ kind: 'check-schema', schema: text }, team), () => null)
    },
    validate: async (schema, value, team = '') => {
      const [text, valueText] = [schemaText(schema), JSON.stringify(value) ?? 'null']
      if (text === null) return { ok: false, message: 'It must be a JSON object.' }
      if (text.length > SCHEMA_MAX) return tooLong('The schema')
      if (valueText.length > INPUT_MAX) return tooLong('The value', '4 MB')
      const outcome = await pool.run({ kind: 'validate', schema: text, value: valueText }, team)
      return withValue(outcome, problems => problems as string[])
    },
    close: () => pool.close(),
  }
}

/** A schema that came in from outside is JSON already; one that cannot be written as JSON is none. */
function schemaText(schema: unknown): string | null {
  try {
    return JSON.stringify(schema) ?? null
  } catch {
    return null
  }
}

const tooLong = (what: string, most = '64 KB'): Verdict<never> => ({
  ok: false,
  message: `${what} is longer than ${most}.`,
})

function withValue<T>(outcome: Outcome, read: (value: unknown) => T): Verdict<T> {
  if (!outcome.ok) return outcome
  const parsed = parseGuestJson(outcome.json)
  return parsed.ok ? { ok: true, value: read(parsed.value) } : parsed
}
