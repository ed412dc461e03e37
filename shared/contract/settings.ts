import { z } from 'zod'
import { endpoint } from './endpoint.js'

/** What a team keeps of its calls (spec 4, section 4). */
export const traceSettings = z.object({
  /** Whether prompts and completions are stored when the call itself does not say. Default false. */
  capturePayloads: z.boolean(),
  /** Attribute and JSON key names whose values are never stored, at any depth; compared without regard to case. */
  redactKeys: z.array(z.string().min(1).max(200)).max(200),
  /** Traces received longer ago than this are deleted. Default 90. */
  retentionDays: z.number().int().min(1).max(3650),
})
export type TraceSettings = z.infer<typeof traceSettings>

export const readTraceSettings = endpoint({
  method: 'GET',
  path: '/settings/traces',
  summary: 'Payload capture, redaction and retention of the team’s traces.',
  group: 'settings',
  access: 'member',
  response: traceSettings,
})

export const updateTraceSettings = endpoint({
  method: 'PATCH',
  path: '/settings/traces',
  summary: 'Changes any of the trace settings; holds for the next call on every proxy.',
  group: 'settings',
  access: 'manager',
  body: z.strictObject(traceSettings.partial().shape),
  response: traceSettings,
})
