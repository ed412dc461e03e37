import { periodLetter } from './batches.js'
import {
  type AdmitCall,
  type BudgetCounter,
  type BudgetPeriod,
  type BudgetSpend,
  HOLD_TTL_MS,
  type Hold,
  type Ledger,
  type Verdict,
} from './ledger.js'
import type { PostgresStore } from './postgres-store.js'
import type { LedgerTuning } from './redis-ledger.js'
import { type TeamTurn, Turns } from './turns.js'

/**
 * The ledger on PostgreSQL, for installations without Redis: the functions of migrations/0004_ledger.sql, one round trip
 * a call, a lock per team. One process asks for one team at a time and what comes meanwhile goes together next, so
 * that batches grow under load and waiting for the lock does not take up the connections.
 */
export class PostgresLedger implements Ledger {
  private readonly turns: Turns
  private readonly busy = new Set<string>()
  private readonly ttlMs: number
  private readonly offsetMs: number

  constructor(
    private readonly store: PostgresStore,
    tuning: LedgerTuning = {},
  ) {
    this.ttlMs = tuning.holdTtlMs ?? HOLD_TTL_MS
    this.offsetMs = tuning.clockOffsetMs ?? 0
    this.turns = new Turns(
      '',
      turns => this.send(turns),
      teamId => this.busy.has(teamId),
    )
  }

  admit(call: AdmitCall): Promise<Verdict> {
    return this.turns.admit(call)
  }

  settle(hold: Hold, actual: { costNano: number; tokens: number }): Promise<void> {
    return this.turns.settle(hold, actual)
  }

  release(hold: Hold): Promise<void> {
    return this.turns.settle(hold, { costNano: 0, tokens: 0 })
  }

  extend(hold: Hold, estimateNano: number): Promise<void> {
    return this.turns.extend(hold, estimateNano)
  }

  renew(holds: readonly Hold[]): Promise<void> {
    return this.turns.renew(holds)
  }

  async look(teamId: string, credentialId: string): Promise<{ epoch: number; revoked: boolean }> {
    const [row] = await this.store.query(
      sql => sql`
        select coalesce((select epoch from ledger_teams where team_id = ${teamId}), 0) as epoch,
          exists (
            select from ledger_revoked where team_id = ${teamId} and credential_id = ${credentialId}
          ) as revoked`,
    )
    return { epoch: Number(row?.epoch), revoked: row?.revoked === true }
  }

  async publish(teamId: string, change: { epoch: number; revokedIds?: readonly string[] }): Promise<void> {
    const revoked = textArray(change.revokedIds ?? [])
    await this.store.query(sql => sql`select ledger_publish(${teamId}, ${change.epoch}, ${revoked}::uuid[])`)
  }

  async retract(teamId: string, from: number, to: number): Promise<void> {
    await this.store.query(
      sql => sql`update ledger_teams set epoch = ${to} where team_id = ${teamId} and epoch = ${from}`,
    )
  }

  async spend(teamId: string, budgets: readonly BudgetPeriod[]): Promise<(BudgetSpend | null)[]> {
    if (budgets.length === 0) return []
    const items = textArray(budgets.map(budget => `${budget.budgetId} ${periodLetter(budget.period)}`))
    const rows = await this.store.query(
      sql => sql`
        select settled_nano, held_nano from ledger_spend(${teamId}, ${items}::text[], ${this.offsetMs})`,
    )
    return rows.map(row =>
      row.settled_nano === null
        ? null
        : { settledNano: Number(row.settled_nano), heldNano: Number(row.held_nano) },
    )
  }

  async seed(teamId: string, counters: readonly BudgetCounter[]): Promise<void> {
    if (counters.length === 0) return
    const items = textArray(counters.map(counterItem))
    await this.store.query(sql => sql`select ledger_seed(${teamId}, ${items}::text[])`)
  }

  async raise(teamId: string, counters: readonly BudgetCounter[]): Promise<void> {
    const items = textArray(counters.map(counterItem))
    await this.store.query(sql => sql`select ledger_raise(${teamId}, ${items}::text[], ${this.offsetMs})`)
  }

  ping(): Promise<void> {
    return this.store.ping()
  }

  async close(): Promise<void> {
    this.turns.end()
    await this.store.close()
  }

  private send(turns: ReadonlyMap<string, TeamTurn>): void {
    for (const [teamId, turn] of turns) {
      this.busy.add(teamId)
      void this.drain(teamId, turn)
    }
  }

  /** Never throws: failures go to the batches. */
  private async drain(teamId: string, turn: TeamTurn): Promise<void> {
    while (!turn.isEmpty) await this.ask(teamId, turn.takeOneOfEach())
    this.busy.delete(teamId)
    this.turns.endOf(teamId)
  }

  private async ask(teamId: string, turn: TeamTurn): Promise<void> {
    const [extend, settle, renew, admit] = [turn.extends[0], turn.settles[0], turn.renews[0], turn.admits[0]]
    const quiet = [extend, settle, renew].filter(batch => batch !== undefined)
    try {
      const rows = await this.store.query(
        sql => sql`
          select ledger_turn(${teamId}, ${textArray(extend?.items)}::text[],
            ${textArray(settle?.items)}::text[], ${textArray(renew?.items)}::text[],
            ${textArray(admit?.profiles)}::text[], ${textArray(admit?.items)}::text[],
            ${this.ttlMs}, ${this.offsetMs}) as answer`,
        late => {
          if (admit !== undefined) this.turns.giveBack(admit.holdsIn(String(late[0]?.answer)))
        },
      )
      for (const batch of quiet) batch.done.resolve()
      admit?.answer(String(rows[0]?.answer))
    } catch (cause) {
      for (const batch of quiet) batch.done.fail(cause)
      admit?.fail(cause)
    }
  }
}

const counterItem = (counter: BudgetCounter): string =>
  `${counter.budgetId} ${counter.periodKey} ${counter.settledNano}`

/** An array as PostgreSQL reads it from a text parameter. */
const textArray = (items: readonly string[] = []): string =>
  `{${items.map(item => `"${item.replace(/["\\]/g, '\\$&')}"`).join()}}`
