import { z } from 'zod'
import { id, idParams, pageOf, pageQuery, timestamp } from './common.js'
import { endpoint } from './endpoint.js'

/** The 39 events of the trail (spec 1, Events; spec 4, section 6). */
export const auditEventNames = [
  'prompt_created',
  'prompt_renamed',
  'prompt_deleted',
  'version_committed',
  'prompt_alias_promoted',
  'tool_created',
  'tool_renamed',
  'tool_deleted',
  'tool_version_committed',
  'tool_version_superseded',
  'tool_alias_promoted',
  'prompt_tool_route_set',
  'prompt_tool_route_removed',
  'api_key_generated',
  'api_key_revoked',
  'member_invited',
  'member_joined',
  'member_role_updated',
  'member_removed',
  'team_renamed',
  'connection_created',
  'connection_updated',
  'connection_deleted',
  'gateway_model_created',
  'gateway_model_updated',
  'gateway_model_deleted',
  'virtual_key_created',
  'virtual_key_updated',
  'virtual_key_revoked',
  'budget_created',
  'budget_updated',
  'budget_deleted',
  'secret_set',
  'trace_settings_updated',
  'dataset_created',
  'dataset_deleted',
  'eval_rule_created',
  'eval_rule_updated',
  'eval_rule_deleted',
] as const
export const auditEventName = z.enum(auditEventNames)
export type AuditEventName = z.infer<typeof auditEventName>

/** A person as the user record has them: members who were removed since still have a name. */
const person = z.object({ id, email: z.string(), name: z.string().nullable() })

const promptAuditEvent = z.object({
  id,
  event: auditEventName,
  /** What the event is about: ids and names, never a secret or a prompt's text. */
  metadata: z.record(z.string(), z.unknown()),
  createdAt: timestamp,
})
const toolAuditEvent = promptAuditEvent.extend({ promptId: id.nullable() })
const teamAuditEvent = toolAuditEvent.extend({
  /** Who acted; null where no person did. */
  actor: person.nullable(),
  /** The person whom `member_role_updated` or `member_removed` was performed on; null for every other event. */
  target: person.nullable(),
})

/** Comma-separated event names; repeated parameters add up, a blank one is no filter. */
const eventNames = z.union([z.string(), z.array(z.string())]).transform((given, context) => {
  const names = [given].flat().flatMap(text => text.split(','))
  const asked = names.map(name => name.trim()).filter(name => name !== '')
  const unknown = asked.find(name => !auditEventName.safeParse(name).success)
  if (unknown !== undefined) {
    context.addIssue({ code: 'custom', message: `Unknown event name '${unknown.slice(0, 64)}'.` })
    return z.NEVER
  }
  return asked as AuditEventName[]
})

const group = 'audit'

export const listPromptAudit = endpoint({
  method: 'GET',
  path: '/prompts/:id/audit',
  summary: 'What happened to a prompt, its versions, aliases and bindings; newest first.',
  group,
  access: 'member',
  params: idParams,
  query: pageQuery,
  response: pageOf(promptAuditEvent),
})

export const listToolAudit = endpoint({
  method: 'GET',
  path: '/tools/:id/audit',
  summary: 'What happened to a tool, its versions and aliases, and its bindings to prompts; newest first.',
  group,
  access: 'member',
  params: idParams,
  query: pageQuery,
  response: pageOf(toolAuditEvent),
})

export const listTeamAudit = endpoint({
  method: 'GET',
  path: '/teams/:id/audit',
  summary: 'Every audit event of the team, newest first; `event` and `actorId` narrow it and its total.',
  group,
  access: 'session-manager',
  params: idParams,
  query: pageQuery.extend({ event: eventNames.optional(), actorId: z.uuid().optional() }),
  response: pageOf(teamAuditEvent),
})

export const listAuditActors = endpoint({
  method: 'GET',
  path: '/teams/:id/audit/actors',
  summary: 'Everybody who acted in the team, removed members included, by email.',
  group,
  access: 'session-manager',
  params: idParams,
  response: z.object({ data: z.array(person.extend({ eventCount: z.number().int() })) }),
})
