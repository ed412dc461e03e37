import type { ProviderKind } from '../../shared/contract/common.js'
import type {
  BudgetRecord,
  CredentialRecord,
  ModelRecord,
  TeamRecord,
} from '../../shared/directory/records.js'
import type { BudgetLimit } from '../../shared/ledger/ledger.js'
import type { Vault } from '../../shared/secrets/vault.js'
import { type TokenPrices, tokenPrices } from '../chat/pricing.js'

/** A team's configuration, indexed once per load so that a call costs look-ups and no allocation. */
export interface Team {
  readonly teamId: string
  readonly epoch: number
  readonly capturePayloads: boolean
  readonly redactKeys: readonly string[]
  /** In the control plane's order. */
  readonly models: readonly TeamModel[]
  readonly modelByName: ReadonlyMap<string, TeamModel>
  /** A connection whose key cannot be opened (sealed under another AGH_SECRET) is missing here. */
  readonly connectionById: ReadonlyMap<string, TeamConnection>
  readonly budgets: readonly BudgetRecord[]
  /** Team-wide budgets first, then the key's own: the order of refusal. The same array for the same key every time. */
  budgetsFor(virtualKeyId: string | null): readonly BudgetLimit[]
}

export interface TeamModel extends ModelRecord {
  /** Null: no configured price. */
  readonly prices: TokenPrices | null
  /** The provider's model id as a header can carry it. */
  readonly upstreamModelHeader: string
}

export interface TeamConnection {
  readonly id: string
  readonly provider: ProviderKind
  readonly baseUrl: string
  /** In the clear, in memory alone. */
  readonly apiKey: string
}

/** What authentication finds. One object per cached credential: the hot path allocates nothing. */
export interface DirectoryEntry {
  readonly credential: CredentialRecord
  readonly team: Team
  /** Every budget that applies to the credential, as the ledger takes them. */
  readonly budgets: readonly BudgetLimit[]
}

export const directoryEntry = (credential: CredentialRecord, team: Team): DirectoryEntry => ({
  credential,
  team,
  budgets: team.budgetsFor(credential.kind === 'virtual_key' ? credential.id : null),
})

/**
 * Indexes a team's record and opens its provider keys.
 *
 * @param onSealed told of each connection whose key does not open; the team's other connections go on working.
 */
export function buildTeam(
  record: TeamRecord,
  vault: Vault,
  onSealed: (connectionId: string, error: unknown) => void,
): Team {
  const models = record.models.map(model => ({
    ...model,
    prices: model.pricing === null ? null : tokenPrices(model.pricing),
    upstreamModelHeader: headerText(model.upstreamModel),
  }))
  return {
    teamId: record.teamId,
    epoch: record.epoch,
    capturePayloads: record.capturePayloads,
    redactKeys: record.redactKeys,
    models,
    modelByName: new Map(models.map(model => [model.publicName, model])),
    connectionById: openConnections(record, vault, onSealed),
    budgets: record.budgets,
    budgetsFor: budgetIndex(record.budgets),
  }
}

/** Percent-encoded wherever it is not printable ASCII: models of one's own have names in any script. */
const headerText = (text: string) => text.replace(/[^\x20-\x7e]+/g, encodeURIComponent)

function openConnections(
  record: TeamRecord,
  vault: Vault,
  onSealed: (connectionId: string, error: unknown) => void,
): ReadonlyMap<string, TeamConnection> {
  const opened = new Map<string, TeamConnection>()
  for (const { id, provider, baseUrl, sealedKey } of record.connections) {
    try {
      const apiKey = vault.open(sealedKey, { teamId: record.teamId, rowId: id })
      opened.set(id, { id, provider, baseUrl, apiKey })
    } catch (error) {
      onSealed(id, error)
    }
  }
  return opened
}

function budgetIndex(records: readonly BudgetRecord[]): Team['budgetsFor'] {
  const limit = ({ id, period, capNano }: BudgetRecord): BudgetLimit => ({ budgetId: id, period, capNano })
  const teamWide: readonly BudgetLimit[] = records.filter(budget => budget.virtualKeyId === null).map(limit)
  const byKey = new Map<string, readonly BudgetLimit[]>()
  for (const budget of records) {
    if (budget.virtualKeyId === null) continue
    byKey.set(budget.virtualKeyId, [...(byKey.get(budget.virtualKeyId) ?? teamWide), limit(budget)])
  }
  return virtualKeyId => (virtualKeyId === null ? teamWide : (byKey.get(virtualKeyId) ?? teamWide))
}
