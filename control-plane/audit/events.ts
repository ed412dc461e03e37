import type { AuditEventName } from '../../shared/contract/audit.js'
import type { Role } from '../../shared/contract/common.js'

interface Named {
  name: string
}

/** What a key, connection, model or other resource is called when it is made, changed or removed. */
interface Changed extends Named {
  /** Names of the fields whose values differ from before; never the values. */
  changed: string[]
}

interface RouteSet {
  toolId: string
  toolName: string
  /** null: the default binding. */
  promptAlias: string | null
  toToolAlias: string | null
  fromToolAlias: string | null
  toPinnedVersionNumber: number | null
  off: boolean
}

/** Stops compiling when an event of the contract has no metadata here, or metadata no event there. */
type OfEveryEvent<
  M extends Record<AuditEventName, object> & Record<Exclude<keyof M, AuditEventName>, never>,
> = M

/**
 * What each audit row's `metadata` holds: ids and names, never a secret, a prompt's text or a criterion (spec 1,
 * Events; spec 4, section 6).
 */
export type AuditMetadata = OfEveryEvent<{
  prompt_created: Named
  prompt_renamed: { from: string; to: string }
  prompt_deleted: Named
  version_committed: { versionNumber: number; versionId: string }
  /** `versionNumber` null: the alias was removed. */
  prompt_alias_promoted: { alias: string; versionNumber: number | null; fromVersionNumber: number | null }
  tool_created: Named & { toolId: string }
  tool_renamed: { toolId: string; from: string; to: string }
  tool_deleted: Named & { toolId: string }
  tool_version_committed: {
    via: 'api' | 'dashboard' | 'sync'
    source: 'code' | 'dashboard' | 'api'
    toolId: string
    toolName: string
    versionNumber: number
  }
  tool_version_superseded: {
    toolId: string
    toolName: string
    alias: string
    supersededVersionNumber: number
    newVersionNumber: number
    supersededSource: 'code' | 'dashboard' | 'api'
  }
  tool_alias_promoted: {
    toolId: string
    toolName: string
    alias: string
    versionNumber: number
    fromVersionNumber: number | null
  }
  prompt_tool_route_set: RouteSet
  prompt_tool_route_removed: Pick<RouteSet, 'toolId' | 'toolName' | 'promptAlias' | 'fromToolAlias'>
  api_key_generated: { apiKeyId: string; name: string; teamScoped: boolean }
  api_key_revoked: { apiKeyId: string; teamScoped: boolean }
  member_invited: { inviteId: string; email: string; role: Role }
  member_joined: { role: Role; inviteId: string }
  member_role_updated: { from: Role; to: Role }
  /** The personal keys that died with the membership: one act, one row. */
  member_removed: { role: Role; revokedApiKeyIds: string[] }
  team_renamed: { from: string; to: string }
  connection_created: Named & { connectionId: string; provider: string }
  connection_updated: Changed & { connectionId: string }
  connection_deleted: Named & { connectionId: string }
  gateway_model_created: Named & { modelId: string }
  gateway_model_updated: Changed & { modelId: string }
  gateway_model_deleted: Named & { modelId: string }
  virtual_key_created: Named & { virtualKeyId: string }
  virtual_key_updated: Changed & { virtualKeyId: string }
  virtual_key_revoked: Named & { virtualKeyId: string }
  budget_created: { budgetId: string; virtualKeyId: string | null; period: string; limitUsd: number }
  budget_updated: {
    budgetId: string
    virtualKeyId: string | null
    changed: string[]
    period: string
    limitUsd: number
  }
  budget_deleted: { budgetId: string; virtualKeyId: string | null; period: string; limitUsd: number }
  secret_set: Named & { removed: boolean }
  trace_settings_updated: { changed: string[] }
  dataset_created: Named & { datasetId: string }
  dataset_deleted: Named & { datasetId: string }
  eval_rule_created: Named & { ruleId: string; enabled: boolean }
  eval_rule_updated: Changed & { ruleId: string; enabled: boolean }
  eval_rule_deleted: Named & { ruleId: string }
}>

/** What an event is about, for the views that narrow the trail to one prompt, tool or person. */
export interface AuditSubject {
  promptId?: string
  toolId?: string
  /** The person the event was performed on; only of `member_role_updated` and `member_removed`. */
  targetId?: string
}
