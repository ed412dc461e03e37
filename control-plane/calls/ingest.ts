import type { ChargeRecord } from '../../shared/spool/record.js'
import { isAboutData, isTooMuch, refusal, retried } from '../db/failures.js'
import { inTransaction, type Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { alertAfterCharges } from '../notifications/budget-alerts.js'
import { writeSpans } from '../traces/ingest.js'
import { hiddenKeys } from '../traces/payload.js'
import type { SpanWrite } from '../traces/span-write.js'
import {
  addDailySpend,
  type DailySpend,
  findIngestTeams,
  insertCharges,
  insertDeadLetters,
} from './queries.js'
import { type DeadLetter, type ReadCall, readBatch, withoutPayload } from './read-batch.js'
import { spanOf } from './span-of.js'

/**
 * Takes what a proxy's spool ships (design D6): charges, the day's spend, spans and traces of finished calls.
 *
 * Failure stance: a batch is answered after its commit, so a kill at any moment leaves it to be sent again; primary
 * keys make a second time count nothing. A record that cannot be stored goes to the dead letters and the rest is
 * stored: one poisoned record must not block a spool for ever. When the database is away or slow nothing is judged,
 * the error goes to the shipper and it tries again.
 */
export async function ingestCalls(
  deps: Pick<Deps, 'sql' | 'log' | 'now' | 'config' | 'jobs'>,
  body: Buffer,
): Promise<{ accepted: number; rejected: number }> {
  const { calls, dead, lines } = await readBatch(body)
  const batch = await prepare(deps.sql, calls, dead)
  dead.push(...(await store(deps, batch)))
  const spenders = batch.filter(call => call.charge.costNano > 0).map(call => call.charge.teamId)
  await alertAfterCharges(deps, [...new Set(spenders)])
  if (dead.length > 0) {
    await insertDeadLetters(deps.sql, dead)
    const reasons = dead.slice(0, 5).map(letter => letter.reason)
    deps.log.error({ rejected: dead.length, reasons }, 'call records went to the dead letters')
  }
  return { accepted: lines - dead.length, rejected: dead.length }
}

interface Call {
  charge: ChargeRecord
  span: SpanWrite | null
}

/** Resolves teams and redacts. A record of a team that does not exist is dead. */
async function prepare(sql: Sql, read: readonly ReadCall[], dead: DeadLetter[]): Promise<Call[]> {
  if (read.length === 0) return []
  const teamIds = [...new Set(read.map(call => call.charge.teamId))]
  const teams = await findIngestTeams(sql, teamIds)
  const hiddenOf = new Map(teams.map(team => [team.id, hiddenKeys(team.redactKeys)]))
  const batch: Call[] = []
  for (const { charge, span, length } of read) {
    const hidden = hiddenOf.get(charge.teamId)
    if (hidden === undefined) dead.push({ reason: 'no such team', record: withoutPayload({ charge, span }) })
    else batch.push({ charge, span: span === null ? null : spanOf(span, hidden, length) })
  }
  return batch
}

/**
 * Commits everything in one transaction. When PostgreSQL refuses a value, the batch is halved until the record at
 * fault stands alone; its charge is then stored without its span if that can be.
 *
 * @returns what could not be stored.
 */
async function store(deps: Pick<Deps, 'sql' | 'now'>, batch: readonly Call[]): Promise<DeadLetter[]> {
  try {
    await retried(() => commit(deps, batch))
    return []
  } catch (error) {
    if (!isAboutData(error) && !(isTooMuch(error) && batch.length > 1)) throw error
    const [only] = batch
    if (only !== undefined && batch.length === 1) {
      // Where the charge is refused too, the one letter has both.
      if (only.span !== null) await store(deps, [{ ...only, span: null }])
      return [{ reason: refusal(error), record: withoutPayload(only) }]
    }
    const half = Math.ceil(batch.length / 2)
    return [...(await store(deps, batch.slice(0, half))), ...(await store(deps, batch.slice(half)))]
  }
}

async function commit(deps: Pick<Deps, 'sql' | 'now'>, batch: readonly Call[]): Promise<void> {
  if (batch.length === 0) return
  await inTransaction(deps.sql, async tx => {
    const charges = batch.map(call => call.charge)
    const spend = dailySpend(charges, await insertCharges(tx, charges))
    await writeSpans(
      tx,
      batch.flatMap(call => call.span ?? []),
      deps.now(),
      { repeated: 'keep', foreign: 'derive' },
    )
    // Last: every batch of a team wants these few rows, so they are held for the shortest time.
    if (spend.length > 0) await addDailySpend(tx, spend)
  })
}

const NO_KEY = '00000000-0000-0000-0000-000000000000'

/** What the new ones among the charges add to each team's, key's and UTC day's spend. */
function dailySpend(
  charges: readonly ChargeRecord[],
  inserted: readonly { teamId: string; requestId: string }[],
): DailySpend[] {
  const fresh = new Set(inserted.map(row => `${row.teamId} ${row.requestId}`))
  const days = new Map<string, DailySpend>()
  for (const { teamId, requestId, virtualKeyId, admittedAtMs, costNano } of charges) {
    // Taken out once counted: a batch may hold one charge twice.
    if (!fresh.delete(`${teamId} ${requestId}`)) continue
    const day = new Date(admittedAtMs).toISOString().slice(0, 10)
    const key = `${teamId} ${virtualKeyId} ${day}`
    const held = days.get(key)
    if (held === undefined) {
      days.set(key, { teamId, virtualKeyId: virtualKeyId ?? NO_KEY, day, costNano, requests: 1 })
    } else {
      held.costNano += costNano
      held.requests += 1
    }
  }
  return [...days.values()]
}
