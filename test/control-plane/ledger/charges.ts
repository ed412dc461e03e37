import { randomUUID } from 'node:crypto'
import { ingestCalls } from '../../../control-plane/calls/ingest.js'
import type { Deps } from '../../../control-plane/deps.js'
import type { Period } from '../../../shared/ledger/period.js'
import type { ChargeRecord } from '../../../shared/spool/record.js'

export interface StoredBudget {
  id: string
  virtualKeyId: string | null
  period: Period
  createdAt: Date
}

/** A budget straight into the table, as old as the test wants it. */
export async function budget(
  deps: Pick<Deps, 'sql'>,
  teamId: string,
  given: Partial<StoredBudget> & { period: Period },
): Promise<StoredBudget> {
  const row = { id: randomUUID(), virtualKeyId: null, createdAt: new Date(), ...given }
  await deps.sql`
    insert into budgets ${deps.sql({ ...row, teamId, limitUsd: 1000, updatedAt: row.createdAt })}`
  return row
}

export const charge = (
  teamId: string,
  given: Partial<ChargeRecord> & { costNano: number },
): ChargeRecord => ({
  requestId: randomUUID(),
  teamId,
  virtualKeyId: null,
  admittedAtMs: Date.now(),
  provider: 'openai',
  model: 'm',
  upstreamModel: 'm-1',
  promptVersionId: null,
  tokens: { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 },
  priced: true,
  estimated: false,
  cached: false,
  ...given,
})

/** Ships charges as a proxy's spool does. */
export async function ship(deps: Deps, ...charges: ChargeRecord[]): Promise<void> {
  const lines = charges.map(one => `${JSON.stringify({ charge: one, span: null })}\n`)
  const { rejected } = await ingestCalls(deps, Buffer.from(lines.join('')))
  if (rejected > 0) throw new Error(`${rejected} charges were rejected`)
}
