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
