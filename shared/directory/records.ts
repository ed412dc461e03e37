import type { ProviderKind, Role } from '../contract/common.js'
import type { Period } from '../ledger/period.js'

/** What the control plane tells a proxy about one credential. Cached by the proxy until the team's epoch moves. */
export interface CredentialRecord {
  /** Names the credential in the ledger's revocation marker: key id, or session id. */
  id: string
  teamId: string
  kind: 'virtual_key' | 'api_key' | 'team_api_key' | 'session'
  /** The person behind it; null for virtual and team-scoped keys. */
  userId: string | null
  /** The person's role in the team; null for virtual and team-scoped keys. */
  role: Role | null
  /** Public names; null = every model. Only virtual keys restrict. */
  allowedModels: string[] | null
  allowedProviders: ProviderKind[] | null
  maxRpm: number | null
  maxTpm: number | null
  cacheTtlSeconds: number | null
}

export interface ConnectionRecord {
  id: string
  provider: ProviderKind
  /** Holds the version segment, no trailing slash. Always set: the vendor's default when the connection has none. */
  baseUrl: string
  /** `v1.<kid>.<nonce>.<ciphertext>`; opened by `shared/secrets/vault.ts` with team and connection id as associated data. */
  sealedKey: string
}

/** USD per million tokens, as registered. Missing cache prices fall back to the input price. */
export interface PricingRecord {
  inputPerMTok: number
  outputPerMTok: number
  cachedInputPerMTok: number | null
  cacheWritePerMTok: number | null
}

export interface ModelRecord {
  id: string
  publicName: string
  connectionId: string
  upstreamModel: string
  pricing: PricingRecord | null
  maxOutputTokens: number | null
  contextWindow: number | null
  createdAtMs: number
  updatedAtMs: number
}

export interface BudgetRecord {
  id: string
  /** null = team-wide. */
  virtualKeyId: string | null
  period: Period
  capNano: number
}

/** A team's configuration as of `epoch`. Budgets are sorted team-wide first, then by id, so that a refusal is stable. */
export interface TeamRecord {
  teamId: string
  epoch: number
  capturePayloads: boolean
  redactKeys: string[]
  connections: ConnectionRecord[]
  models: ModelRecord[]
  budgets: BudgetRecord[]
}

/** Answer of `POST /internal/directory`. `team` is null when the proxy's `knownEpoch` is current. */
export interface DirectoryAnswer {
  credential: CredentialRecord | null
  team: TeamRecord | null
}

/** A message of a stored prompt; its content is a template (spec 1, prompt version). */
export interface PromptMessage {
  role: string
  content: string
  cache_control?: { type: 'ephemeral' } | undefined
}

/** An item of `tools` in a completions request. */
export interface ToolDefinition {
  type: 'function'
  function: { name: string; description?: string | undefined; parameters: Record<string, unknown> }
}

/** The version that a prompt's alias serves, with the tools bound to that alias as of now. */
export interface PromptRecord {
  promptId: string
  versionId: string
  versionNumber: number
  /** The bound model's publicName. */
  model: string | null
  messages: PromptMessage[]
  tools: ToolDefinition[]
}

/** `{ name, alias? }` or `{ name, version }` of a call (spec 4, section 5). */
export interface ToolReference {
  name: string
  alias: string | null
  version: number | null
}

/** Something that a call names and the team does not have: the public message, `Prompt not found.` */
export interface MissingRecord {
  missing: string
}

/** Answer of `POST /internal/references`: what was asked for, each thing found or missing. */
export interface ReferencesAnswer {
  prompt: PromptRecord | MissingRecord | null
  tools: (ToolDefinition | MissingRecord)[]
  /** Whether the team has the version; null when none was asked for. */
  promptVersionKnown: boolean | null
}
